"""PDGD and the pairwise baseline with simulated users, for any ranker, compiled.

Linear PDGD has a faster loop of its own, in `linear_pdgd_loop`.
"""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import Users, click_on
from models.kernels.compilation import compiled
from models.learners.multileaved_lists import fill_order
from models.learners.pairwise import PairwiseConfig, add_preferences, draw_exploring
from models.learners.pdgd import PdgdConfig
from models.learners.reversed_pairs import Pairs, logged_pair_coefficients
from models.optimisers.kernel import Optimiser, step_served
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.rankers.layers import Shape, n_activations
from models.rankers.single_precision import bound_scores, fill_gradient, score_documents
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import World, any_query


class PairRules(NamedTuple):
    """How lists are made and preferences weighted.

    With `exploration` below 0 lists are Plackett-Luce and pairs weighted by PDGD.
    """

    pairs: Pairs
    exploration: float
    worst_first: bool


class PairLoop(RankerLoop):
    """PDGD or the pairwise baseline that lives with its users; see `RankerLoop`."""

    def __init__(
        self,
        config: PdgdConfig | PairwiseConfig,
        world: World,
        users: ClickModel,
        *,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(config, world, users, cutoff=cutoff, rng=rng)
        self._rules = _rules_of(config)
        self._ahead = rng.integers(len(world.offsets) - 1, size=1)

    def _live(self, shown: Integers) -> int:
        return live(
            self._world,
            self._users,
            self.parameters,
            self._shape,
            self._optimiser,
            self._rules,
            self._ahead,
            shown,
            self._rng,
        )


def _rules_of(config: PdgdConfig | PairwiseConfig) -> PairRules:
    if isinstance(config, PairwiseConfig):
        return PairRules(Pairs(False, True), config.exploration, config.worst_first)
    return PairRules(Pairs(config.all_observed, not config.biased), -1.0, False)


@compiled
def draw_list(
    scores: Floats, rules: PairRules, rows: Integers, rng: np.random.Generator
) -> None:
    """Fill the list that users see.

    Parameters
    ----------
    scores : [n]
        Of all candidates.
    rows : [k]
        With k <= n.
    """
    n = scores.shape[0]
    if rules.exploration < 0.0:
        blocks = np.empty((n + BLOCK - 1) // BLOCK)
        sample_list(scores, np.empty(n), blocks, rows, rng)
        return
    order = np.empty(n, np.int64)
    fill_order(order, rng)
    keys = scores[order] if rules.worst_first else -scores[order]
    ranking = order[np.argsort(keys, kind="mergesort")]
    draw_exploring(ranking, rules.exploration, rows, rng)


@compiled
def fill_coefficients(
    scores: Floats,
    rows: Integers,
    clicks: Flags,
    rules: PairRules,
    coefficients: Floats,
) -> int:
    """Fill every shown document's share of the gradient; returns the pairs.

    Parameters
    ----------
    scores : [n]
        Of all candidates.
    rows, clicks, coefficients : [k]
        Of the shown ones, in displayed order.
    """
    coefficients[:] = 0.0
    if rules.exploration >= 0.0:
        return add_preferences(clicks, coefficients)
    return logged_pair_coefficients(
        scores, rows, clicks, scores[rows], coefficients, rules.pairs
    )


@compiled
def live(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    users: Users,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    rules: PairRules,
    ahead: Integers,
    shown: Integers,
    rng: np.random.Generator,
) -> int:
    """Fill `shown` while parameters move; returns the number of updates.

    Parameters
    ----------
    parameters : [n_parameters]
    ahead : [1]
        The query of the next impression.
    shown : [n_impressions, 1 + cutoff]
        As `RankerLoop.run` returns it; -1 before.
    """
    offsets = world.offsets
    largest = np.max(offsets[1:] - offsets[:-1])
    activations = np.empty((largest, n_activations(shape)), np.float32)
    all_scores = np.empty(largest, np.float32)
    all_clicks = np.empty(shown.shape[1], np.bool_)
    all_coefficients = np.empty(shown.shape[1])
    gradient = np.empty(parameters.shape[0], np.float32)
    weights = parameters.astype(np.float32)
    n_updates = 0
    for i in range(shown.shape[0]):
        query = ahead[0]
        ahead[0] = any_query(offsets, rng)
        following = world.features[offsets[ahead[0]] : offsets[ahead[0] + 1]]
        first, last = offsets[query], offsets[query + 1]
        k = min(last - first, shown.shape[1] - 1)
        features = world.features[first:last]
        singles = all_scores[: last - first]
        score_documents(weights, shape, features, singles, activations, following)
        bound_scores(singles)
        scores = singles.astype(np.float64)
        shown[i, 0] = query
        rows, clicks = shown[i, 1 : k + 1], all_clicks[:k]
        draw_list(scores, rules, rows, rng)
        n_clicks = click_on(world.labels[first:last], rows, users, clicks, rng)
        if n_clicks in {0, k}:
            continue
        coefficients = all_coefficients[:k]
        if fill_coefficients(scores, rows, clicks, rules, coefficients) == 0:
            continue
        fill_gradient(
            gradient,
            coefficients.astype(np.float32),
            weights,
            shape,
            features[rows],
            activations[rows],
        )
        if step_served(parameters, weights, gradient, optimiser):
            n_updates += 1
    return n_updates
