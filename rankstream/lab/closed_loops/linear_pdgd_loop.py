"""PDGD with simulated cascade users in one compiled loop: sample, click, learn.

The learner ranks for the next impression with what it learned from the last one.
For benchmarks, learning curves and demonstrations; a pipeline does the same with
events in between.
"""

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import Users, click_on
from models.kernels.compilation import compiled
from models.kernels.prefetch import ask_for
from models.learners.pdgd import PdgdConfig
from models.learners.reversed_pairs import (
    PLAIN,
    WIDEST,
    add_pair_coefficients,
    logged_pair_coefficients,
)
from models.optimisers.kernel import Optimiser, step
from models.plackett_luce.list_sampler import BLOCK, sample_list
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import World, columns_of


class Columns(NamedTuple):
    """A world as the kernel reads it fastest.

    Parameters
    ----------
    values : [n_documents * n_features]
        Query by query, [n_features, documents of the query]: machines score several
        documents at once along the last axis.
    labels : [n_documents]
        Grades from 0.
    offsets : [n_queries + 1]
        Where the documents of each query begin, and the last ones end.
    """

    values: npt.NDArray[np.float32]
    labels: Integers
    offsets: Integers


class LinearPdgdLoop(RankerLoop):
    """Linear PDGD by plain gradient steps; see `RankerLoop`.

    The world is copied into the layout that the kernel wants.
    """

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
        _, labels, offsets = self._world
        self._columns = Columns(columns_of(self._world), labels, offsets)
        self._ahead = rng.integers(len(offsets) - 1, size=1)

    def _live(self, shown: Integers) -> int:
        return live(
            self._columns,
            self._users,
            self.parameters,
            self._optimiser,
            self._ahead,
            shown,
            self._rng,
        )


@compiled
def score_columns(
    parameters: Floats,
    values: npt.NDArray[np.float32],
    first: int,
    scores: Floats,
    ahead: int,
) -> None:
    """Fill `scores` of the query whose values begin at `first`, by a linear ranker.

    Meanwhile the first half of the values at `ahead` is asked for.

    Parameters
    ----------
    parameters : [n_features]
    values : [n_documents * n_features]
        Of all queries; see `Columns`.
    scores : [n]
        Of the documents of this query.
    """
    n_features, n = parameters.shape[0], scores.shape[0]
    columns = values[first : first + n_features * n].reshape((n_features, n))
    scores[:] = 0.0
    whole = n_features - n_features % 4
    for i in range(0, whole, 4):
        ask_for(values, ahead + i // 2 * n, ahead + (i // 2 + 2) * n)
        a, b = parameters[i], parameters[i + 1]
        c, e = parameters[i + 2], parameters[i + 3]
        for d in range(n):
            scores[d] += (a * columns[i, d] + b * columns[i + 1, d]) + (
                c * columns[i + 2, d] + e * columns[i + 3, d]
            )
    for i in range(whole, n_features):
        for d in range(n):
            scores[d] += parameters[i] * columns[i, d]


@compiled
def move_along_columns(  # noqa: PLR0913  a kernel takes plain arrays
    parameters: Floats,
    values: npt.NDArray[np.float32],
    first: int,
    n: int,
    rows: Integers,
    coefficients: Floats,
    optimiser: Optimiser,
    gradient: Floats,
    ahead: int,
) -> bool:
    """Move a linear ranker's parameters; asks for the second half at `ahead`.

    Parameters
    ----------
    parameters, gradient : [n_features]
        The gradient is scratch.
    values : [n_documents * n_features]
        Of all queries; see `Columns`. Those of this one, with n documents, begin at
        `first`.
    rows, coefficients : [k]
        Of the shown documents; rows count from the first of the query.
    """
    n_features, k = parameters.shape[0], rows.shape[0]
    half = n_features // 2 * n
    gradient[:] = 0.0
    for x in range(k):
        ask_for(
            values, ahead + half + half * x // k, ahead + half + half * (x + 1) // k
        )
        if coefficients[x] != 0.0:
            column = values[first + rows[x] : first + n_features * n : n]
            for i in range(n_features):
                gradient[i] += coefficients[x] * column[i]
    return step(parameters, gradient, optimiser)


@compiled
def list_coefficients(
    scores: Floats,
    rows: Integers,
    clicks: Flags,
    mass_below: float,
    coefficients: Floats,
) -> None:
    """Fill every shown document's share of the gradient.

    Parameters
    ----------
    scores : [n]
        Of all candidates.
    rows, clicks, coefficients : [k]
        Of the shown ones, in displayed order.
    mass_below
        As `sample_list` returns it.
    """
    shown = scores[rows] - scores.max()
    coefficients[:] = 0.0
    if mass_below < 0.0 or -shown.min() > WIDEST:
        logged_pair_coefficients(scores, rows, clicks, shown, coefficients, PLAIN)
        return
    rest = math.log(mass_below) if mass_below > 0.0 else -np.inf
    sizes = np.exp(shown)
    add_pair_coefficients(
        shown, sizes, mass_below, rest, clicks, shown, coefficients, PLAIN
    )


@compiled
def live(  # noqa: PLR0913  a kernel takes plain arrays
    world: Columns,
    users: Users,
    parameters: Floats,
    optimiser: Optimiser,
    ahead: Integers,
    shown: Integers,
    rng: np.random.Generator,
) -> int:
    """Fill `shown` while parameters move; returns the number of updates.

    Parameters
    ----------
    parameters : [n_features]
    ahead : [1]
        The query of the next impression.
    shown : [n_impressions, 1 + cutoff]
        As `RankerLoop.run` returns it; -1 before.
    """
    offsets = world.offsets
    n_queries, n_features = offsets.shape[0] - 1, parameters.shape[0]
    largest = np.max(offsets[1:] - offsets[:-1])
    all_scores = np.empty(largest)
    masses = np.empty(largest)
    blocks = np.empty((largest + BLOCK - 1) // BLOCK)
    gradient = np.empty(n_features)
    all_clicks = np.empty(largest, np.bool_)
    all_coefficients = np.empty(largest)
    n_updates = 0
    for i in range(shown.shape[0]):
        query = ahead[0]
        ahead[0] = min(int(rng.random() * n_queries), n_queries - 1)
        next_place = offsets[ahead[0]] * n_features
        first, last = offsets[query], offsets[query + 1]
        n = last - first
        k = min(n, shown.shape[1] - 1)
        place = first * n_features
        scores = all_scores[:n]
        score_columns(parameters, world.values, place, scores, next_place)
        shown[i, 0] = query
        rows = shown[i, 1 : k + 1]
        n_blocks = (n + BLOCK - 1) // BLOCK
        below = sample_list(scores, masses, blocks[:n_blocks], rows, rng)
        clicks = all_clicks[:k]
        n_clicks = click_on(world.labels[first:last], rows, users, clicks, rng)
        if n_clicks in {0, k}:
            continue
        coefficients = all_coefficients[:k]
        list_coefficients(scores, rows, clicks, below, coefficients)
        if move_along_columns(
            parameters,
            world.values,
            place,
            n,
            rows,
            coefficients,
            optimiser,
            gradient,
            next_place,
        ):
            n_updates += 1
    return n_updates
