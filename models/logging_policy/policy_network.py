"""LogOpt for any query: a network that is trained to log with little variance.

A pass takes queries in a seeded order; a step is one of Adam down the sum of E[x^2]
over a batch of them. Queries for which rankers do not differ teach nothing, and are
left out.

References
----------
Oosterhuis & de Rijke (ICTIR 2020), algorithm 1, with two hidden layers of 32 units.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.logging_policy.compared_query import ComparedQuery
from models.logging_policy.floor import LEAST, checked_floor, floored
from models.logging_policy.raised_shares import lead_through, raise_shares
from models.logging_policy.second_moment import add_second_moment
from models.optimisers import kernel
from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.rankers import layers
from models.rankers.ranker import Ranker


class ComparedQueries(NamedTuple):
    """Queries of two rankers, end to end.

    Parameters
    ----------
    offsets : [n_queries + 1]
        Items of query q are rows `offsets[q] : offsets[q + 1]`.
    relevance, differences : [n_items]
        See `models.logging_policy.compared_query.ComparedQuery`.
    examination : [n_ranks]
        Of lists of all queries; of those that are shorter the first ranks.
    """

    offsets: Integers
    relevance: Floats
    differences: Floats
    examination: Floats

    def query(self, number: int) -> ComparedQuery:
        """One of them, from 0."""
        span = slice(self.offsets[number], self.offsets[number + 1])
        relevance = self.relevance[span]
        n = len(relevance)
        return ComparedQuery(relevance, self.differences[span], self.examination[:n])

    @property
    def differing(self) -> Integers:
        """Queries in which some click tells anything."""
        tells = (self.relevance > 0.0) & (self.differences != 0.0)
        before = np.concatenate([[0], np.cumsum(tells)])
        return np.flatnonzero(np.diff(before[self.offsets]) > 0)


@dataclass(frozen=True)
class NetworkPlan:
    """How a network is trained.

    Parameters
    ----------
    epochs
        Passes over all queries, at least 1.
    batch
        Queries of a step, at least 1.
    n_lists
        Drawn of a query with many items, at least 2.
    floor
        Least P(looked at) of an item that matters; see `models.logging_policy.floor`.
    least_first
        P(comes first) that a service raises such an item to, which is trained with; see
        `models.logging_policy.raised_shares`. 0: scores are served as they come.
    optimiser
        Of the network's parameters.

    Raises
    ------
    ValueError
        Where a number is outside its range.
    """

    epochs: int = 15
    batch: int = 4
    n_lists: int = 30
    floor: float = LEAST
    least_first: float = 0.0
    optimiser: OptimiserConfig = field(
        default_factory=lambda: OptimiserConfig("adam", 0.01)
    )

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or self.n_lists < 2:
            raise ValueError(
                "epochs and batch must be at least 1, and n_lists 2; got "
                f"{self.epochs}, {self.batch} and {self.n_lists}"
            )
        checked_floor(self.floor)
        checked_floor(self.least_first)


def trained_policy(  # noqa: PLR0913  all that a training follows from
    ranker: Ranker,
    start: Floats,
    features: Floats,
    queries: ComparedQueries,
    plan: NetworkPlan,
    *,
    rng: np.random.Generator,
    on_epoch: Callable[[int, float], object] = lambda *_: None,
) -> Floats:
    """Parameters of a network whose policy logs with little variance, [n_parameters].

    Parameters
    ----------
    start : [n_parameters]
        Where training begins.
    features : [n_items, n_features]
        See `models.logging_policy.policy_features`.
    on_epoch
        Takes the number of each pass, from 1, and the mean of E[x^2] over the queries
        in which rankers differ, each under the policy that it met.

    Raises
    ------
    ValueError
        Where no query has anything to tell rankers apart by, features are not those of
        the ranker and the queries, or not all that matters can come first so often.
    """
    if features.shape != (len(queries.relevance), ranker.sizes[0]):
        raise ValueError(
            f"features must be {len(queries.relevance)} items by {ranker.sizes[0]}; "
            f"got {features.shape}"
        )
    differing = queries.differing
    if not len(differing):
        raise ValueError(
            "rankers must differ in what is looked at in some query; got none of "
            f"{len(queries.offsets) - 1}: their difference has no variance, and any "
            "lists will do"
        )
    n_matter = _most_that_matter(queries)
    if plan.least_first * n_matter > 1.0:
        raise ValueError(
            f"P(comes first) must be at most {1.0 / n_matter:.4g} for {n_matter} items "
            f"that rankers differ in; got {plan.least_first:.4g}: lower the floor"
        )
    parameters = np.array(start, np.float64)
    optimiser = optimiser_of(plan.optimiser, len(parameters))
    for number in range(1, plan.epochs + 1):
        total = _pass_over(
            rng.permutation(differing), *queries, np.ascontiguousarray(features),
            parameters, ranker.shape, plan.batch, plan.n_lists, plan.least_first,
            optimiser, rng,
        )  # fmt: skip
        on_epoch(number, total / len(differing))
    return parameters


def _most_that_matter(queries: ComparedQueries) -> int:
    """The most items with a difference that a query has."""
    before = np.concatenate([[0], np.cumsum(queries.differences != 0.0)])
    return int(np.diff(before[queries.offsets]).max())


def policy_scores(
    ranker: Ranker,
    parameters: Floats,
    features: Floats,
    queries: ComparedQueries,
    floor: float,
) -> Floats:
    """Log scores of all items under the policy of a network, [n_items].

    Parameters
    ----------
    parameters : [n_parameters]
    features : [n_items, n_features]
        See `models.logging_policy.policy_features`.
    floor
        Least P(looked at) of an item that matters.

    Raises
    ------
    ValueError
        Where no policy meets the floor.
    """
    scores = ranker.score(parameters, features)
    for number in queries.differing.tolist():
        span = slice(queries.offsets[number], queries.offsets[number + 1])
        scores[span] = floored(scores[span], queries.query(number), floor)
    return scores


@compiled
def _pass_over(  # noqa: PLR0913  a kernel takes plain arrays
    numbers: Integers,
    offsets: Integers,
    relevance: Floats,
    differences: Floats,
    examination: Floats,
    features: Floats,
    parameters: Floats,
    shape: layers.Shape,
    batch: int,
    n_lists: int,
    least_first: float,
    optimiser: kernel.Optimiser,
    rng: np.random.Generator,
) -> float:
    """One pass over queries by number; parameters are moved. The sum of E[x^2]."""
    longest = np.diff(offsets).max()
    order, scores = np.empty(longest, np.int64), np.empty(longest)
    slopes, propensities = np.empty(longest), np.empty(longest)
    is_raised = np.empty(longest, np.bool_)
    activations = np.empty((longest, layers.n_activations(shape)))
    gradient, taken, total = np.zeros(parameters.shape[0]), 0, 0.0
    for at in range(numbers.shape[0]):
        begin, end = offsets[numbers[at]], offsets[numbers[at] + 1]
        n = end - begin
        layers.score_rows(
            parameters, shape, features[begin:end], scores[:n], activations
        )
        if least_first > 0.0:
            raise_shares(scores[:n], differences[begin:end], least_first, is_raised[:n])
        slopes[:n] = 0.0
        items, pairs = add_second_moment(
            scores[:n], relevance[begin:end], differences[begin:end],
            examination[:n], n_lists, order, slopes[:n], propensities[:n], rng,
        )  # fmt: skip
        total += items + pairs
        if least_first > 0.0:
            lead_through(slopes[:n], scores[:n], is_raised[:n])
        layers.add_gradient(
            gradient, -slopes[:n], parameters, shape, features[begin:end], activations
        )
        taken += 1
        if taken == batch or at == numbers.shape[0] - 1:
            kernel.step(parameters, gradient, optimiser)
            gradient[:], taken = 0.0, 0
    return total
