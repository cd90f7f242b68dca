"""Who wins by the clicks on a multileaved list, compiled.

Ranks lie as in `models.learners.multileaved_lists`; what clicked documents say is
[clicked documents, rankers].
"""

import math

import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.learners.multileaved_lists import NO_TEAM

Ranks = npt.NDArray[np.int32]

CERTAIN = 1e-12
"""A preference below it is rounding."""


@compiled
def fill_assignment(
    shown_ranks: Ranks, shares: Floats, clicks: Flags, assignment: Floats
) -> int:
    """Fill who placed each clicked document; returns the number of clicks.

    Parameters
    ----------
    shown_ranks : [k, n_rankers]
        Of the shown documents, in displayed order.
    shares : [n]
        What a rank weighs.
    clicks : [k]
    assignment : [at least the clicks, n_rankers]
        Filled with P(ranker | clicked document, all above it).
    """
    k, n_rankers = shown_ranks.shape
    below = np.zeros(n_rankers)
    for r in range(n_rankers):
        below[r] = share_not_shown(shown_ranks[:, r], shares)
    place = n_clicks = count_true(clicks)
    for x in range(k - 1, -1, -1):
        for r in range(n_rankers):
            below[r] += shares[shown_ranks[x, r] - 1]
        if clicks[x]:
            place -= 1
            total = 0.0
            for r in range(n_rankers):
                assignment[place, r] = shares[shown_ranks[x, r] - 1] / below[r]
                total += assignment[place, r]
            for r in range(n_rankers):
                assignment[place, r] /= total
    return n_clicks


@compiled
def share_not_shown(shown_ranks: Ranks, shares: Floats) -> float:
    """What one ranker's documents weigh that are not shown.

    Parameters
    ----------
    shown_ranks : [k]
        Where the ranker has the shown documents.
    shares : [n]
        What a rank weighs.
    """
    is_shown = np.zeros(shares.shape[0], np.bool_)
    for x in range(shown_ranks.shape[0]):
        is_shown[shown_ranks[x] - 1] = True
    total = 0.0
    # From the least share on, so that a small one is not lost in a large sum.
    for rank in range(shares.shape[0] - 1, -1, -1):
        if not is_shown[rank]:
            total += shares[rank]
    return total


@compiled
def count_true(flags: Flags) -> int:
    """How many of `flags` [n] are true."""
    found = 0
    for flag in flags:
        if flag:
            found += 1
    return found


@compiled
def chance_to_win(assignment: Floats, candidate: int, outcomes: Floats) -> float:
    """P(the candidate placed more clicked documents than ranker 0) - P(fewer).

    Exact over all assignments, by dynamic programming over the clicks. It is 0 to
    the last bit for a candidate with the same ranks, as sums are symmetric.

    Parameters
    ----------
    assignment : [n_clicks, n_rankers]
        As `fill_assignment` fills it.
    outcomes : [2 * n_clicks + 1]
        Left with the distribution of the difference, from -n_clicks on.
    """
    n_clicks = assignment.shape[0]
    middle = n_clicks
    outcomes[:] = 0.0
    outcomes[middle] = 1.0
    for click in range(n_clicks):
        up, down = assignment[click, candidate], assignment[click, 0]
        stay = max(1.0 - (up + down), 0.0)
        before_left, before = 0.0, outcomes[middle - click - 1]
        for at in range(middle - click - 1, middle + click + 2):
            after = outcomes[at + 1] if at + 1 < outcomes.shape[0] else 0.0
            outcomes[at] = before * stay + (before_left * up + after * down)
            before_left, before = before, after
    win, lose = 0.0, 0.0
    for difference in range(n_clicks, 0, -1):
        win += outcomes[middle + difference]
        lose += outcomes[middle - difference]
    return win - lose


@compiled
def mark_winners(assignment: Floats, is_winner: Flags) -> int:
    """Mark who is expected to win against ranker 0; returns how many.

    Parameters
    ----------
    assignment : [n_clicks, n_rankers]
        As `fill_assignment` fills it.
    is_winner : [n_rankers]
    """
    outcomes = np.empty(2 * assignment.shape[0] + 1)
    is_winner[0] = False
    for candidate in range(1, assignment.shape[1]):
        is_winner[candidate] = chance_to_win(assignment, candidate, outcomes) > CERTAIN
    return count_true(is_winner)


@compiled
def fill_joint(assignment: Floats, candidate: int, joint: Floats) -> None:
    """Fill P(ranker 0 placed i and the candidate j of the clicked documents).

    Parameters
    ----------
    assignment : [n_clicks, n_rankers]
        As `fill_assignment` fills it.
    joint : [n_clicks + 1, n_clicks + 1]
        By i and j; for candidate 0 only j = 0 is above 0.
    """
    n_clicks = assignment.shape[0]
    joint[:] = 0.0
    joint[0, 0] = 1.0
    for click in range(n_clicks):
        own = assignment[click, 0]
        up = assignment[click, candidate] if candidate > 0 else 0.0
        stay = max(1.0 - own - up, 0.0)
        for i in range(click + 1, -1, -1):
            for j in range(click + 1 - i, -1, -1):
                mass = joint[i, j] * stay
                if i > 0:
                    mass += joint[i - 1, j] * own
                if j > 0:
                    mass += joint[i, j - 1] * up
                joint[i, j] = mass


@compiled
def share_of(part: float, whole: float) -> float:
    """A probability within another, with what rounding leaves cut off."""
    if whole <= 0.0:
        return 0.0
    return min(max(part / whole, 0.0), 1.0)


@compiled
def mark_winners_by_sample(
    assignment: Floats, n_samples: int, is_winner: Flags, rng: np.random.Generator
) -> int:
    """Mark who won more of `n_samples` sampled assignments than ranker 0 did.

    The counts are drawn, not sampled one by one: first how often ranker 0 placed
    each number of the clicked documents, the same for all candidates, then for each
    candidate how often it had more and how often less. Each candidate's count has
    exactly the distribution of a sample; among candidates only what they share
    through ranker 0 is kept.

    Parameters
    ----------
    assignment : [n_clicks, n_rankers]
        As `fill_assignment` fills it.
    is_winner : [n_rankers]
    """
    n_clicks = assignment.shape[0]
    joint = np.empty((n_clicks + 1, n_clicks + 1))
    times = np.zeros(n_clicks + 1, np.int64)
    fill_joint(assignment, 0, joint)
    left, mass = n_samples, 1.0
    for i in range(n_clicks + 1):
        times[i] = rng.binomial(left, share_of(joint[i, 0], mass)) if left else 0
        left -= times[i]
        mass -= joint[i, 0]
    times[0] += left
    is_winner[0] = False
    for candidate in range(1, assignment.shape[1]):
        fill_joint(assignment, candidate, joint)
        score = 0
        for i in range(n_clicks + 1):
            if times[i] == 0:
                continue
            more, fewer = joint[i, i + 1 :].sum(), joint[i, :i].sum()
            whole = joint[i].sum()
            wins = rng.binomial(times[i], share_of(more, whole))
            rest = times[i] - wins
            losses = 0
            if rest > 0 and fewer > 0.0:
                losses = rng.binomial(rest, share_of(fewer, whole - more))
            score += wins - losses
        is_winner[candidate] = score > 0
    return count_true(is_winner)


@compiled
def mark_team_winners(teams: Integers, clicks: Flags, is_winner: Flags) -> int:
    """Mark whose team got more clicks than that of ranker 0; returns how many.

    Parameters
    ----------
    teams, clicks : [k]
        Of the shown documents.
    is_winner : [n_rankers]
    """
    counts = np.zeros(is_winner.shape[0], np.int64)
    for x in range(teams.shape[0]):
        if clicks[x] and teams[x] != NO_TEAM:
            counts[teams[x]] += 1
    for r in range(is_winner.shape[0]):
        is_winner[r] = counts[r] > counts[0]
    return count_true(is_winner)


@compiled
def mark_better_rankers(
    ranks: Ranks, labels: Integers, cutoff: int, is_winner: Flags
) -> int:
    """Mark who ranks this query better than ranker 0 does, by DCG; returns how many.

    Parameters
    ----------
    ranks : [n, n_rankers]
    labels : [n]
        Grades from 0.
    is_winner : [n_rankers]
    """
    gains = np.zeros(is_winner.shape[0])
    for d in range(ranks.shape[0]):
        if labels[d] > 0:
            gain = 2.0 ** labels[d] - 1.0
            for r in range(ranks.shape[1]):
                if ranks[d, r] <= cutoff:
                    gains[r] += gain / math.log2(ranks[d, r] + 1.0)
    for r in range(is_winner.shape[0]):
        is_winner[r] = gains[r] > gains[0] + CERTAIN
    return count_true(is_winner)
