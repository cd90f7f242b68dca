"""PDGD that learns at every list, while lists come from what was served last.

With nothing served anew all lists come from the start: PDGD learns from the log of
another ranker, which it was not made for. Probabilities of pairs are those of the
ranker that showed the list, always; whether slopes are too is a setting of PDGD.

References
----------
Ai, Yang, Wang & Mao (TOIS 2021) for PDGD on logs; Oosterhuis & de Rijke (WSDM 2021),
section 8, for what becomes of it.
"""

import numpy as np

from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import Users, click_on
from models.kernels.compilation import compiled
from models.learners.parameters import UPDATED
from models.learners.pdgd import PdgdConfig
from models.learners.pdgd_kernel import PdgdOptions, learn_one
from models.learners.reversed_pairs import Pairs
from models.optimisers.kernel import Optimiser
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.rankers.layers import Shape
from rankstream.lab.closed_loops.policy_training import fill_world_scores
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import Floats, Integers, World, any_query


class ServedPdgdLoop(RankerLoop):
    """PDGD behind a ranker that is replaced when it is told so; see `RankerLoop`."""

    def __init__(
        self,
        config: PdgdConfig,
        world: World,
        users: ClickModel,
        *,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(config, world, users, cutoff=cutoff, rng=rng)
        pairs = Pairs(config.all_observed, not config.biased)
        self._options = PdgdOptions(pairs, config.counterfactual)
        self._scores = np.empty(len(self._world.labels))
        self.serve()

    def begin_at(self, parameters: Floats) -> None:
        """Learn on from `parameters` [n_parameters], and serve them."""
        super().begin_at(parameters)
        self.serve()

    def serve(self) -> None:
        """Show lists by what was learned so far, from now on."""
        fill_world_scores(self.parameters, self._shape, self._world, self._scores)

    def _live(self, shown: Integers) -> int:
        return live(
            self._world,
            self._users,
            self._scores,
            self.parameters,
            self._shape,
            self._optimiser,
            self._options,
            shown,
            self._rng,
        )


@compiled
def live(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    users: Users,
    served: Floats,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    options: PdgdOptions,
    shown: Integers,
    rng: np.random.Generator,
) -> int:
    """Fill `shown` while parameters move; returns the number of updates.

    Parameters
    ----------
    served : [n_documents]
        Scores that lists are drawn by.
    parameters : [n_parameters]
    shown : [n_impressions, 1 + cutoff]
        As `RankerLoop.run` returns it; -1 before.
    """
    largest = np.max(world.offsets[1:] - world.offsets[:-1])
    masses = np.empty(largest)
    all_blocks = np.empty((largest + BLOCK - 1) // BLOCK)
    all_clicks = np.empty(shown.shape[1], np.bool_)
    gradient = np.empty(parameters.shape[0])
    n_updates = 0
    for i in range(shown.shape[0]):
        query = any_query(world.offsets, rng)
        first, last = world.offsets[query], world.offsets[query + 1]
        n = last - first
        k = min(n, shown.shape[1] - 1)
        scores = served[first:last]
        shown[i, 0] = query
        rows, clicks = shown[i, 1 : k + 1], all_clicks[:k]
        blocks = all_blocks[: (n + BLOCK - 1) // BLOCK]
        sample_list(scores, masses, blocks, rows, rng)
        click_on(world.labels[first:last], rows, users, clicks, rng)
        became = learn_one(
            scores,
            rows,
            clicks,
            world.features[first:last][rows].astype(np.float64),
            parameters,
            shape,
            optimiser,
            options,
            gradient,
        )
        if became == UPDATED:
            n_updates += 1
    return n_updates
