"""Simulated comparisons whose logging policy is optimised twice while they run."""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.evaluation.conclusion import Conclusion, conclude
from models.evaluation.sums import N_GROUPS, PreferenceSums, add_impression
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import Shown
from models.kernels.compilation import compiled
from models.logging_policy.compared_query import ComparedQuery, compared_query
from models.logging_policy.query_scores import ScoresPlan, optimised_scores
from streams.native.placing import placements_of_scores

THETA = np.array([1.0, 0.6, 0.4])
N_QUERIES, N_ITEMS = 3, 6
STAGES = (1_010, 1_010, 1_010)
"""Lists under each policy; sessions of five or twenty lists straddle two."""

ALPHA = 0.05
PLAN = ScoresPlan(steps=20)


class World(NamedTuple):
    """Queries, and users of two tastes, of whom each session has one.

    `rankings` [n_queries, 2, n_items], `relevance` and `taste` [n_queries, n_items]:
    relevance is that of the mean user, and the taste is added or taken away.
    """

    rankings: Integers
    relevance: Floats
    taste: Floats

    def query(self, number: int, relevance: Floats) -> ComparedQuery:
        """One of them, with some relevance."""
        return compared_query(self.rankings[number], relevance, THETA)

    @property
    def difference(self) -> float:
        """Clicks per list of the first ranker less those of the second."""
        found = [self.query(q, self.relevance[q]).difference for q in range(N_QUERIES)]
        return float(np.mean(found))


def world_of(rng: np.random.Generator, *, is_equal: bool) -> World:
    """Rankers that swap two pairs of items, which users like as much or do not."""
    rankings = np.empty((N_QUERIES, 2, N_ITEMS), np.int64)
    relevance = rng.uniform(0.2, 0.7, (N_QUERIES, N_ITEMS))
    for q in range(N_QUERIES):
        first = rng.permutation(N_ITEMS)
        rankings[q] = first, first[[3, 2, 1, 0, 4, 5]]
        if is_equal:
            relevance[q, first[3]] = relevance[q, first[0]]
            relevance[q, first[2]] = relevance[q, first[1]]
    return World(rankings, relevance, rng.uniform(-0.2, 0.2, relevance.shape))


class Lists(NamedTuple):
    """What was shown under one policy: [n] each, and `clicked` [n, n_items]."""

    queries: Integers
    units: Integers
    clicked: Flags


def shown_lists(
    world: World,
    scores: Floats,
    sessions: Integers,
    users: tuple[Integers, Integers],
    rng: np.random.Generator,
) -> Lists:
    """Lists of a policy; `scores` [n_queries, n_items], `users` hashes and tastes."""
    n, units, tastes = len(sessions), *users
    queries = rng.integers(0, N_QUERIES, n)
    keys = scores[queries] + rng.gumbel(size=(n, N_ITEMS))
    top = np.argsort(-keys, axis=1)[:, : len(THETA)]
    likes = world.relevance[queries] + tastes[sessions][:, None] * world.taste[queries]
    chances = THETA * np.take_along_axis(likes, top, axis=1)
    clicked = np.zeros((n, N_ITEMS), np.bool_)
    np.put_along_axis(clicked, top, rng.random(chances.shape) < chances, axis=1)
    return Lists(queries, units[sessions], clicked)


@compiled
def _add_all(  # noqa: PLR0913  a kernel takes plain arrays
    values: Floats,
    bounds: Floats,
    groups: Integers,
    totals: Integers,
    counts: Integers,
    possible: Integers,
    squares: Integers,
    wealth: Integers,
    impressions: Integers,
) -> None:
    preference, bound = np.zeros((2, 2)), np.zeros((2, 2))
    for i in range(len(values)):
        preference[0, 1], preference[1, 0] = values[i], -values[i]
        bound[0, 1] = bound[1, 0] = bounds[i]
        group = groups[i]
        add_impression(
            preference, bound, totals[group], counts, possible, squares, wealth,
            impressions[group : group + 1],
        )  # fmt: skip


def credited(
    world: World,
    scores: Floats,
    lists: Lists,
    method: LoggingPolicy,
    sums: PreferenceSums,
) -> None:
    """Add what lists of a policy say, as the fold does, to sums."""
    weights, bounds = np.empty((N_QUERIES, N_ITEMS)), np.empty(N_QUERIES)
    for q in range(N_QUERIES):
        under = method.under(scores[q], placements_of_scores)
        each = Shown(world.rankings[q], np.arange(N_ITEMS), np.empty(0, np.int64))
        credit = under.weights(each, len(THETA))
        weights[q] = credit[0] - credit[1]
        bounds[q] = under.bounds(world.rankings[q], len(THETA))[0, 1]
    judging = [method.judging(unit) for unit in lists.units.tolist()]
    kept = np.array([rest is not None for rest in judging])
    groups = np.array(
        [rest % N_GROUPS for rest in judging if rest is not None], np.int64
    )
    values = (weights[lists.queries] * lists.clicked).sum(axis=1)[kept]
    _add_all(values, bounds[lists.queries][kept], groups, *sums.arrays())


def _policies(
    world: World,
    seen: list[tuple[Floats, Lists]],
    groups: int,
    rng: np.random.Generator,
) -> Floats:
    """Scores for all queries, by clicks of the training groups of all stages."""
    clicks, looks = np.zeros((2, N_QUERIES, N_ITEMS))
    for propensities, lists in seen:
        fits = lists.units % 20 < groups
        for q in range(N_QUERIES):
            own = fits & (lists.queries == q)
            clicks[q] += lists.clicked[own].sum(axis=0)
            looks[q] += own.sum() * propensities[q]
    relevance = np.clip(clicks / np.maximum(looks, 1.0), 0.01, 1.0)
    return np.array(
        [
            optimised_scores(world.query(q, relevance[q]), PLAN, rng=rng)
            for q in range(N_QUERIES)
        ]
    )


def experiment(
    world: World, per_session: int, *, on_all: bool, rng: np.random.Generator
) -> Conclusion:
    """What is concluded after all lists.

    Parameters
    ----------
    per_session
        Lists of a session, one after the other.
    on_all
        Whether policies are fitted on clicks of the lists that they are judged by.
    """
    n = sum(STAGES)
    n_sessions = -(-n // per_session)
    users = (
        rng.integers(0, 2**60, n_sessions),
        rng.choice(np.array([-1, 1]), n_sessions),
    )
    sessions = np.arange(n) // per_session
    method = LoggingPolicy(
        examination=tuple(THETA.tolist()), length=len(THETA), groups=0 if on_all else 20
    )
    sums, seen, begin = PreferenceSums.empty(2), list[tuple[Floats, Lists]](), 0
    scores = np.zeros((N_QUERIES, N_ITEMS))
    for size in STAGES:
        if seen:
            scores = _policies(world, seen, 20 if on_all else 16, rng)
        lists = shown_lists(world, scores, sessions[begin : begin + size], users, rng)
        credited(world, scores, lists, method, sums)
        seen.append((placements_of_scores(scores, len(THETA)) @ THETA, lists))
        begin += size
    return conclude(sums, ALPHA, planned=n / 5, typical_square=1.0)


class Coverage(NamedTuple):
    """Of how many experiments the interval held the truth, and the mean width."""

    sessions: float
    fixed: float
    came: float
    to_come: float
    width: float


def coverage(
    n_runs: int,
    per_session: int,
    *,
    is_equal: bool,
    on_all: bool = False,
    seed: int = 0,
) -> Coverage:
    """Shares over experiments, each in a world of its own."""
    held, widths = np.zeros(4), np.zeros(n_runs)
    for run in range(n_runs):
        rng = np.random.default_rng([seed, run])
        world = world_of(rng, is_equal=is_equal)
        found = experiment(world, per_session, on_all=on_all, rng=rng)
        truth = world.difference
        ends = (found.sessions, found.fixed, found.came, found.to_come)
        held += [low <= truth <= high for ((low, high),) in ends]
        widths[run] = np.ptp(found.sessions[0])
    sessions, fixed, came, to_come = (held / n_runs).tolist()
    return Coverage(sessions, fixed, came, to_come, float(widths.mean()))
