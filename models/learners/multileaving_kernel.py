"""What learners by comparison need of multileaving, compiled.

Ranks lie as [documents, rankers], from 1, so that all rankers are treated at once;
ranker 0 is the one that learns. Probabilities are summed, never reduced.
"""

import math

import numpy as np
import numpy.typing as npt

from models.compilation import compiled

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Ranks = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Scores = npt.NDArray[np.float32]

CERTAIN = 1e-12
"""A preference below it is rounding."""

NO_TEAM = -1


@compiled
def fill_ranks(scores: Scores, order: Integers, ranks: Ranks) -> None:
    """Fill the rank of every document for every ranker.

    Parameters
    ----------
    scores, ranks : [n, n_rankers]
    order : [n]
        Among equal scores the document with the smaller number comes first.
    """
    n, n_rankers = scores.shape
    ranks[:] = 1
    for d in range(n):
        own, mine = scores[d], ranks[d]
        for other in range(n):
            against = scores[other]
            if order[other] < order[d]:
                for r in range(n_rankers):
                    mine[r] += against[r] >= own[r]
            else:
                for r in range(n_rankers):
                    mine[r] += against[r] > own[r]


@compiled
def fill_ranks_with_own_ties(
    scores: Scores, ranks: Ranks, rng: np.random.Generator
) -> None:
    """The same, where every ranker breaks its ties by itself."""
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
    """Fill a uniformly random permutation."""
    for d in range(order.shape[0]):
        other = min(int(rng.random() * (d + 1)), d)
        order[d] = order[other]
        order[other] = d


@compiled
def fill_shares(shares: Floats, tau: float) -> None:
    """Fill what a rank weighs in probabilistic multileaving: 1 / rank^tau."""
    for rank in range(shares.shape[0]):
        shares[rank] = (rank + 1.0) ** -tau


@compiled
def draw_probabilistic(
    ranks: Ranks, shares: Floats, rows: Integers, rng: np.random.Generator
) -> None:
    """Fill `rows`: each place by a random ranker, drawn from its shares of the rest.

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
    """The rank of a document by one ranker, from 1."""
    own, place = column[d], order[d]
    rank = 1
    for other in range(column.shape[0]):
        against = column[other]
        rank += (against > own) | ((against == own) & (order[other] < place))
    return rank


@compiled
def draw_rank(shares: Floats, is_taken: Flags, rng: np.random.Generator) -> int:
    """Which of the ranks that are left, counted from 1, by their shares."""
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
    """The document that is the nth best of those that are left."""
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
def fill_shown_ranks(
    scores: Scores, order: Integers, rows: Integers, shown_ranks: Ranks
) -> None:
    """Fill where every ranker has the shown documents, [k, n_rankers]."""
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
    """What one ranker's documents weigh that are not shown."""
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
    """How many are true."""
    found = 0
    for flag in flags:
        if flag:
            found += 1
    return found


@compiled
def chance_to_win(assignment: Floats, candidate: int, outcomes: Floats) -> float:
    """P(the candidate placed more clicked documents than ranker 0) - P(fewer).

    Exact over all assignments, by dynamic programming over the clicks: `outcomes`
    [2 * clicks + 1] is left with the distribution of the difference. It is 0 to
    the last bit for a candidate with the same ranks, as sums are symmetric.
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
    """Mark who is expected to win against ranker 0; returns how many."""
    outcomes = np.empty(2 * assignment.shape[0] + 1)
    is_winner[0] = False
    for candidate in range(1, assignment.shape[1]):
        is_winner[candidate] = chance_to_win(assignment, candidate, outcomes) > CERTAIN
    return count_true(is_winner)


@compiled
def fill_joint(assignment: Floats, candidate: int, joint: Floats) -> None:
    """Fill P(ranker 0 placed i and the candidate j of the clicked documents)."""
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
def draft_teams(
    ranks: Ranks, rows: Integers, teams: Integers, rng: np.random.Generator
) -> None:
    """Fill a team-draft list and whose each document is.

    What all rankers agree on at the top belongs to no team. After that, in rounds,
    every ranker in random order adds its best document that is left.

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


@compiled
def mark_team_winners(teams: Integers, clicks: Flags, is_winner: Flags) -> int:
    """Mark whose team got more clicks than that of ranker 0; returns how many."""
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
    """Mark who ranks this query better than ranker 0 does, by DCG; returns how many."""
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
