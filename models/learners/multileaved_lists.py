"""Multileaved lists of rankers that learners compare, compiled.

Ranks lie as [documents, rankers], from 1, so that all rankers are treated at once;
ranker 0 is the one that learns. Probabilities are summed, never reduced.
"""

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled

Ranks = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]

NO_TEAM = -1
"""Of documents on which all rankers agree."""


@compiled
def fill_shown_ranks(
    scores: Scores, order: Integers, rows: Integers, shown_ranks: Ranks
) -> None:
    """Fill where every ranker has the shown documents.

    Parameters
    ----------
    scores : [n, n_rankers]
    order : [n]
        Among equal scores the document with the smaller number comes first.
    rows : [k]
        The shown documents.
    shown_ranks : [k, n_rankers]
    """
    n, n_rankers = scores.shape
    shown_ranks[:] = 1
    for x in range(rows.shape[0]):
        own, mine = scores[rows[x]], shown_ranks[x]
        place = order[rows[x]]
        for other in range(n):
            against = scores[other]
            if order[other] < place:
                for r in range(n_rankers):
                    mine[r] += against[r] >= own[r]
            else:
                for r in range(n_rankers):
                    mine[r] += against[r] > own[r]


@compiled
def fill_ranks(scores: Scores, order: Integers, ranks: Ranks) -> None:
    """Fill the rank of every document for every ranker.

    Parameters
    ----------
    scores, ranks : [n, n_rankers]
    order : [n]
        Among equal scores the document with the smaller number comes first.
    """
    fill_shown_ranks(scores, order, np.arange(scores.shape[0]), ranks)


@compiled
def fill_ranks_with_own_ties(
    scores: Scores, ranks: Ranks, rng: np.random.Generator
) -> None:
    """The same, where every ranker breaks its ties by itself.

    Parameters
    ----------
    scores, ranks : [n, n_rankers]
    """
    n, n_rankers = scores.shape
    keys = np.empty((n, n_rankers), np.float32)
    for d in range(n):
        for r in range(n_rankers):
            keys[d, r] = rng.random()
    ranks[:] = 1
    for d in range(n):
        own, mine, key = scores[d], ranks[d], keys[d]
        for other in range(d):
            against, theirs, against_key = scores[other], ranks[other], keys[other]
            for r in range(n_rankers):
                is_tied = against[r] == own[r]
                is_behind = (against[r] > own[r]) | (
                    is_tied & (against_key[r] >= key[r])
                )
                mine[r] += is_behind
                theirs[r] += not is_behind


@compiled
def fill_order(order: Integers, rng: np.random.Generator) -> None:
    """Fill `order` [n] with a uniformly random permutation."""
    for d in range(order.shape[0]):
        other = min(int(rng.random() * (d + 1)), d)
        order[d] = order[other]
        order[other] = d


@compiled
def fill_shares(shares: Floats, tau: float) -> None:
    """Fill `shares` [n] with what ranks weigh when multileaving: 1 / rank^tau."""
    for rank in range(shares.shape[0]):
        shares[rank] = (rank + 1.0) ** -tau


@compiled
def draw_probabilistic(
    ranks: Ranks, shares: Floats, rows: Integers, rng: np.random.Generator
) -> None:
    """Fill `rows`: each place by a random ranker, drawn from its shares of the rest.

    Parameters
    ----------
    ranks : [n, n_rankers]
    shares : [n]
        What a rank weighs.
    rows : [k]
        With k <= n.

    References
    ----------
    Schuth et al. (SIGIR 2015), probabilistic multileaving.
    """
    n, n_rankers = ranks.shape
    left = np.arange(n)
    n_left = n
    for place in range(rows.shape[0]):
        r = min(int(rng.random() * n_rankers), n_rankers - 1)
        total = 0.0
        for i in range(n_left):
            total += shares[ranks[left[i], r] - 1]
        target = rng.random() * total
        chosen, reached = 0, 0.0
        for i in range(n_left):
            chosen = i
            reached += shares[ranks[left[i], r] - 1]
            if reached > target:
                break
        rows[place] = left[chosen]
        n_left -= 1
        for i in range(chosen, n_left):
            left[i] = left[i + 1]


@compiled
def draw_by_scores(
    scores: Scores,
    order: Integers,
    shares: Floats,
    rows: Integers,
    rng: np.random.Generator,
) -> None:
    """The same as `draw_probabilistic`, ranking only for rankers that are drawn.

    Parameters
    ----------
    scores : [n, n_rankers]
    order : [n]
        Among equal scores the document with the smaller number comes first.
    shares : [n]
        What a rank weighs.
    rows : [k]
        With k <= n.
    """
    n, n_rankers = scores.shape
    column = np.empty(n, np.float32)
    is_placed = np.zeros(n, np.bool_)
    is_taken = np.empty(n, np.bool_)
    for place in range(rows.shape[0]):
        r = min(int(rng.random() * n_rankers), n_rankers - 1)
        column[:] = scores[:, r]
        is_taken[:] = False
        for x in range(place):
            is_taken[rank_in(column, order, rows[x]) - 1] = True
        nth = draw_rank(shares, is_taken, rng)
        rows[place] = nth_best(column, order, is_placed, nth)
        is_placed[rows[place]] = True


@compiled
def rank_in(column: Scores, order: Integers, d: int) -> int:
    """The rank of a document by one ranker, from 1.

    Parameters
    ----------
    column, order : [n]
        The ranker's scores, and who comes first among equal ones.
    """
    own, place = column[d], order[d]
    rank = 1
    for other in range(column.shape[0]):
        against = column[other]
        rank += (against > own) | ((against == own) & (order[other] < place))
    return rank


@compiled
def draw_rank(shares: Floats, is_taken: Flags, rng: np.random.Generator) -> int:
    """Which of the ranks that are left, counted from 1, by their shares.

    Parameters
    ----------
    shares, is_taken : [n]
        By rank.
    """
    total = 0.0
    for rank in range(shares.shape[0]):
        if not is_taken[rank]:
            total += shares[rank]
    target = rng.random() * total
    nth, reached = 0, 0.0
    for rank in range(shares.shape[0]):
        if not is_taken[rank]:
            nth += 1
            reached += shares[rank]
            if reached > target:
                break
    return nth


@compiled
def nth_best(column: Scores, order: Integers, is_placed: Flags, nth: int) -> int:
    """The document that is the nth best of those that are left.

    Parameters
    ----------
    column, order, is_placed : [n]
        The ranker's scores, who comes first among equal ones, and who is not left.
    """
    is_out = is_placed.copy()
    best = -1
    for _ in range(nth):
        best = -1
        for d in range(column.shape[0]):
            if is_out[d]:
                continue
            if (
                best < 0
                or column[d] > column[best]
                or (column[d] == column[best] and order[d] < order[best])
            ):
                best = d
        is_out[best] = True
    return best


@compiled
def draft_teams(
    ranks: Ranks, rows: Integers, teams: Integers, rng: np.random.Generator
) -> None:
    """Fill a team-draft list and whose each document is.

    What all rankers agree on at the top belongs to no team. After that, in rounds,
    every ranker in random order adds its best document that is left.

    Parameters
    ----------
    ranks : [n, n_rankers]
    rows, teams : [k]
        With k <= n; `NO_TEAM` for documents of no team.

    References
    ----------
    Radlinski, Kurup & Joachims (CIKM 2008); Schuth et al. (CIKM 2014).
    """
    n, n_rankers = ranks.shape
    rankings = np.empty((n_rankers, n), np.int64)
    for d in range(n):
        for r in range(n_rankers):
            rankings[r, ranks[d, r] - 1] = d
    is_placed = np.zeros(n, np.bool_)
    place = 0
    while place < rows.shape[0] and np.all(rankings[:, place] == rankings[0, place]):
        rows[place], teams[place] = rankings[0, place], NO_TEAM
        is_placed[rows[place]] = True
        place += 1
    reached = np.zeros(n_rankers, np.int64) + place
    turns = np.empty(n_rankers, np.int64)
    turn = n_rankers
    while place < rows.shape[0]:
        if turn == n_rankers:
            fill_order(turns, rng)
            turn = 0
        r = int(turns[turn])
        while is_placed[rankings[r, reached[r]]]:
            reached[r] += 1
        rows[place] = rankings[r, reached[r]]
        teams[place] = r
        is_placed[rows[place]] = True
        place += 1
        turn += 1
