"""PDGD that shows lists by what it knew before: some impressions ago, or when served.

In a pipeline clicks arrive after a window, and snapshots at intervals; meanwhile
rankers serve older weights. Here every interaction waits in a queue before it is
learned from, with the scores that made its list. Or PDGD learns at every list, while
lists come from what was served last: with nothing served anew it learns from the log of
another ranker, which it was not made for. Probabilities of pairs are those of the
ranker that showed the list, always; whether slopes are too is a setting of PDGD.

References
----------
Ai, Yang, Wang & Mao (TOIS 2021) for PDGD on logs; Oosterhuis & de Rijke (WSDM 2021),
section 8, for what becomes of it.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import Users, click_on
from models.kernels.compilation import compiled
from models.learners.parameters import UPDATED
from models.learners.pdgd import PdgdConfig
from models.learners.pdgd_kernel import PdgdOptions, learn_one
from models.learners.reversed_pairs import Pairs
from models.optimisers.kernel import Optimiser
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.rankers.layers import Shape, n_activations, score_rows
from rankstream.lab.closed_loops.policy_training import fill_world_scores
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import World, any_query


class Queue(NamedTuple):
    """Interactions that were shown and not yet learned from, by turns.

    Parameters
    ----------
    shown : [n_places, 1 + cutoff]
        As a loop gives it, with one row for each place.
    scores : [n_places, most documents of a query]
        Those that made the lists.
    clicks : [n_places, cutoff]
    """

    shown: Integers
    scores: Floats
    clicks: Flags


class LaggingLoop(RankerLoop):
    """PDGD that learns from each list only `lag` impressions later.

    Parameters
    ----------
    lag
        Impressions that served parameters lack.
    """

    def __init__(
        self,
        config: PdgdConfig,
        world: World,
        users: ClickModel,
        *,
        lag: int,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        if lag < 0:
            raise ValueError(f"lag must not be negative; got {lag}")
        super().__init__(config, world, users, cutoff=cutoff, rng=rng)
        pairs = Pairs(config.all_observed, not config.biased)
        self._options = PdgdOptions(pairs, config.counterfactual)
        largest = int(np.diff(self._world.offsets).max())
        self._queue = Queue(
            np.full((lag + 1, 1 + cutoff), -1, np.int64),
            np.zeros((lag + 1, largest)),
            np.zeros((lag + 1, cutoff), np.bool_),
        )
        self._lived = 0
        self._served = np.empty(0)

    def _live(self, shown: Integers) -> int:
        n_updates = live(
            self._world,
            self._users,
            self._served,
            self.parameters,
            self._shape,
            self._optimiser,
            self._options,
            self._queue,
            self._lived,
            shown,
            self._rng,
        )
        self._lived += len(shown)
        return n_updates


class ServedPdgdLoop(LaggingLoop):
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
        super().__init__(config, world, users, lag=0, cutoff=cutoff, rng=rng)
        self._served = np.empty(len(self._world.labels))
        self.serve()

    def begin_at(self, parameters: Floats) -> None:
        """Learn on from `parameters` [n_parameters], and serve them."""
        super().begin_at(parameters)
        self.serve()

    def serve(self) -> None:
        """Show lists by what was learned so far, from now on."""
        fill_world_scores(self.parameters, self._shape, self._world, self._served)


@compiled
def learn_from(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    queue: Queue,
    place: int,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    options: PdgdOptions,
    gradient: Floats,
) -> bool:
    """Learn from one waiting interaction.

    Parameters
    ----------
    parameters, gradient : [n_parameters]
        The gradient is scratch.
    """
    query = queue.shown[place, 0]
    first, last = world.offsets[query], world.offsets[query + 1]
    k = min(last - first, queue.shown.shape[1] - 1)
    rows = queue.shown[place, 1 : k + 1]
    became = learn_one(
        queue.scores[place, : last - first],
        rows,
        queue.clicks[place, :k],
        world.features[first:last][rows].astype(np.float64),
        parameters,
        shape,
        optimiser,
        options,
        gradient,
    )
    return became == UPDATED


@compiled
def live(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    users: Users,
    served: Floats,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    options: PdgdOptions,
    queue: Queue,
    lived: int,
    shown: Integers,
    rng: np.random.Generator,
) -> int:
    """Fill `shown` while parameters move; returns the number of updates.

    Parameters
    ----------
    served : [n_documents]
        Scores that lists are drawn by; [0] where parameters as they are give them.
    parameters : [n_parameters]
    lived
        Impressions before these.
    shown : [n_impressions, 1 + cutoff]
        As `RankerLoop.run` returns it; -1 before.
    """
    largest = queue.scores.shape[1]
    activations = np.empty((largest, n_activations(shape)))
    masses = np.empty(largest)
    gradient = np.empty(parameters.shape[0])
    n_places = queue.shown.shape[0]
    n_updates = 0
    for i in range(shown.shape[0]):
        place = (lived + i) % n_places
        query = any_query(world.offsets, rng)
        first, last = world.offsets[query], world.offsets[query + 1]
        n = last - first
        k = min(n, shown.shape[1] - 1)
        scores = queue.scores[place, :n]
        if served.shape[0] > 0:
            scores[:] = served[first:last]
        else:
            features = world.features[first:last]
            score_rows(parameters, shape, features, scores, activations)
        shown[i, 0] = query
        rows = shown[i, 1 : k + 1]
        blocks = np.empty((n + BLOCK - 1) // BLOCK)
        sample_list(scores, masses[:n], blocks, rows, rng)
        clicks = queue.clicks[place, :k]
        click_on(world.labels[first:last], rows, users, clicks, rng)
        queue.shown[place] = shown[i]
        # The place of the next impression holds the one that has waited longest.
        oldest = (place + 1) % n_places
        if lived + i + 1 >= n_places and learn_from(
            world, queue, oldest, parameters, shape, optimiser, options, gradient
        ):
            n_updates += 1
    return n_updates
