"""Comparisons on simulated users, as the tables of the literature measure them.

References
----------
Oosterhuis & de Rijke (CIKM 2017), section 5; Schuth et al. (SIGIR 2015).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers
from models.interleaving.method import Shown
from models.interleaving.optimized import Optimized
from models.interleaving.pairwise_preference import LARGEST_WEIGHT, agreement
from models.interleaving.pairwise_preference import draw as draw_pairwise
from models.interleaving.probabilistic import assignment_shares, expected_signs
from models.interleaving.probabilistic import draw as draw_soft
from models.interleaving.sample_scored import place_credits
from models.interleaving.team_draft import draft
from models.kernels.compilation import compiled

TEAM_DRAFT, OPTIMIZED, PROBABILISTIC, SAMPLE_SCORED, PAIRWISE = range(5)
NAMES = (
    "team-draft",
    "optimized",
    "probabilistic",
    "sample-scored",
    "pairwise-preference",
)
"""Methods by number, in the order of the published tables."""

TAU = 3.0

SOLVER_FAILURES = 0.97
"""Share of relaxed searches without an answer that explains the published errors of
optimized multileaving: one number, chosen so that six of them, of MQ2008, fit. With
other data it need not: they come out better than printed."""


class Users(NamedTuple):
    """A cascade: P(click | grade), P(stop | grade), and whether only clicks stop.

    `click` and `stop` [n_grades], in [0, 1].
    """

    click: Floats
    stop: Floats
    stop_requires_click: bool


class Queries(NamedTuple):
    """Rankings of all queries, end to end.

    `rankings` [n_rankers * n_rows] holds, of query i, [n_rankers, n_documents] from
    `n_rankers * offsets[i]` on; documents are numbered within their query. `labels`
    [n_rows], `offsets` [n_queries + 1].
    """

    rankings: Integers
    labels: Integers
    offsets: Integers
    n_rankers: int


def rank_by_features(
    features: npt.NDArray[np.floating],
    labels: Integers,
    offsets: Integers,
    *,
    rng: np.random.Generator,
) -> Queries:
    """Each feature as a ranker, highest first, ties in random order.

    Parameters
    ----------
    features : [n_rows, n_rankers]
    labels : [n_rows]
    offsets : [n_queries + 1]
    """
    n_rankers = features.shape[1]
    rankings = np.empty(n_rankers * len(labels), np.int64)
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        lots = rng.random((end - begin, n_rankers))
        order = np.lexsort((lots, -features[begin:end]), axis=0)
        rankings[n_rankers * begin : n_rankers * end] = order.T.ravel()
    return Queries(rankings, labels, offsets, n_rankers)


def preferences_after(  # noqa: PLR0913  two of them say what was published
    method: int,
    queries: Queries,
    users: Users,
    checkpoints: Integers,
    *,
    length: int,
    rng: np.random.Generator,
    published: bool = False,
) -> Floats:
    """Summed preferences after so many impressions of uniformly drawn queries.

    Parameters
    ----------
    method
        Place in `NAMES`.
    checkpoints : [n], rising
    published
        Average the pairs of pairwise preference, and let searches of optimized
        multileaving fail, as the published software does.

    Returns
    -------
    [n, n_rankers, n_rankers]
    """
    if method == OPTIMIZED:
        return _optimized_after(queries, users, checkpoints, length, published, rng)
    return _after(
        method,
        queries.rankings,
        queries.labels,
        queries.offsets,
        queries.n_rankers,
        users.click,
        users.stop,
        users.stop_requires_click,
        checkpoints,
        length,
        published,
        rng,
    )


@compiled
def clicks_on(
    labels: Integers,
    shown: Integers,
    click: Floats,
    stop: Floats,
    stop_requires_click: bool,
    rng: np.random.Generator,
) -> npt.NDArray[np.bool_]:
    """One user's clicks on a list. [k].

    Parameters
    ----------
    labels : [n_documents]
        Grades, from 0.
    shown : [k]
        Rows of the documents in displayed order.
    click, stop : [n_grades]
        Probabilities of each grade.
    """
    clicks = np.zeros(shown.shape[0], np.bool_)
    for place in range(shown.shape[0]):
        grade = labels[shown[place]]
        clicks[place] = rng.random() < click[grade]
        stops = rng.random() < stop[grade]
        if stops and (clicks[place] or not stop_requires_click):
            break
    return clicks


@compiled
def _after(  # noqa: PLR0913  compiled, so plain arrays
    method: int,
    rankings: Integers,
    labels: Integers,
    offsets: Integers,
    n_rankers: int,
    click: Floats,
    stop: Floats,
    stop_requires_click: bool,
    checkpoints: Integers,
    length: int,
    published: bool,
    rng: np.random.Generator,
) -> Floats:
    found = np.zeros((checkpoints.shape[0], n_rankers, n_rankers))
    total = np.zeros((n_rankers, n_rankers))
    done = 0
    for point in range(checkpoints.shape[0]):
        while done < checkpoints[point]:
            query = int(rng.random() * (offsets.shape[0] - 1))
            begin, end = offsets[query], offsets[query + 1]
            lists = rankings[n_rankers * begin : n_rankers * end]
            lists = lists.reshape((n_rankers, end - begin))
            k = min(length, end - begin)
            teams = lists[0, :0]
            if method == PAIRWISE:
                shown = draw_pairwise(lists, k, rng)
            elif method == PROBABILISTIC:
                shown = draw_soft(lists, k, TAU, rng)
            else:
                shown, teams = draft(lists, k, rng)
            clicks = clicks_on(
                labels[begin:end], shown, click, stop, stop_requires_click, rng
            )
            if clicks.any():
                _add(method, lists, shown, teams, clicks, published, total)
            done += 1
        found[point] = total
    return found


@compiled
def _add(  # noqa: PLR0913  compiled, so plain arrays
    method: int,
    lists: Integers,
    shown: Integers,
    teams: Integers,
    clicks: npt.NDArray[np.bool_],
    published: bool,
    total: Floats,
) -> None:
    if method == PROBABILISTIC:
        total += expected_signs(assignment_shares(lists, shown, clicks, TAU))
        return
    if method == PAIRWISE:
        credit = agreement(lists, shown, clicks, LARGEST_WEIGHT, published)
    elif method == SAMPLE_SCORED:
        credit = place_credits(lists, shown) @ clicks.astype(np.float64)
    else:
        owned = np.bincount(teams[clicks] + 1, minlength=lists.shape[0] + 1)
        credit = owned[1:].astype(np.float64)
    for n in range(lists.shape[0]):
        for m in range(lists.shape[0]):
            gap = credit[n] - credit[m]
            total[n, m] += gap if method == PAIRWISE else np.sign(gap)


def _optimized_after(
    queries: Queries,
    users: Users,
    checkpoints: Integers,
    length: int,
    published: bool,
    rng: np.random.Generator,
) -> Floats:
    failures = SOLVER_FAILURES if published else 0.0
    method = Optimized(n_lists=10, published=True, failures=failures)
    n_rankers = queries.n_rankers
    found = np.zeros((len(checkpoints), n_rankers, n_rankers))
    total = np.zeros((n_rankers, n_rankers))
    done = 0
    for point, checkpoint in enumerate(checkpoints.tolist()):
        for _ in range(checkpoint - done):
            query = int(rng.random() * (len(queries.offsets) - 1))
            begin, end = queries.offsets[query], queries.offsets[query + 1]
            lists = queries.rankings[n_rankers * begin : n_rankers * end]
            lists = lists.reshape((n_rankers, end - begin))
            combined = method.combine(lists, min(length, int(end - begin)), rng=rng)
            clicks = clicks_on(
                queries.labels[begin:end],
                combined.shown,
                users.click,
                users.stop,
                users.stop_requires_click,
                rng,
            )
            if clicks.any():
                total += method.infer(Shown(lists, *combined), clicks)
        done = checkpoint
        found[point] = total
    return found


def binary_error(preferences: Floats, truth: Floats) -> float:
    """Share of ordered pairs whose preference has not the sign of the truth.

    Equal truths count too: only a preference of exactly zero agrees with them.
    `preferences` and `truth` [n_rankers, n_rankers].
    """
    n = len(truth)
    wrong = np.sign(preferences) != np.sign(truth)
    np.fill_diagonal(wrong, val=False)
    return float(wrong.sum() / (n * (n - 1)))
