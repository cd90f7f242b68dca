"""Duels between rankers, against enumeration and against real sampling."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from models.learners import multileaved_lists as lists
from models.learners import multileaved_verdicts as verdicts

Floats = npt.NDArray[np.float64]
Ranks = npt.NDArray[np.int32]

TAU = 3.0


def random_ranks(n: int, n_rankers: int, seed: int) -> Ranks:
    """Full rankings of n documents, [n, n_rankers]."""
    rng = np.random.default_rng(seed)
    columns = [rng.permutation(n) + 1 for _ in range(n_rankers)]
    return np.stack(columns, axis=1).astype(np.int32)


def shares_of(n: int) -> Floats:
    """What ranks weigh."""
    shares = np.empty(n)
    lists.fill_shares(shares, TAU)
    return shares


def assignments(
    ranks: Ranks, rows: tuple[int, ...]
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Every way in which rankers can have made a list, with its probability."""
    n, n_rankers = ranks.shape
    for teams in itertools.product(range(n_rankers), repeat=len(rows)):
        probability = 1.0
        for place, (row, team) in enumerate(zip(rows, teams, strict=True)):
            left = [d for d in range(n) if d not in rows[:place]]
            weights = {d: float(ranks[d, team]) ** -TAU for d in left}
            probability *= weights[row] / sum(weights.values()) / n_rankers
        yield teams, probability


def assignment_of(ranks: Ranks, rows: tuple[int, ...], clicks: list[bool]) -> Floats:
    """The kernel's P(ranker | clicked document)."""
    found = np.empty((sum(clicks), ranks.shape[1]))
    shown = np.ascontiguousarray(ranks[list(rows)])
    n_clicks = verdicts.fill_assignment(
        shown, shares_of(len(ranks)), np.array(clicks), found
    )
    assert n_clicks == sum(clicks)
    return found


@pytest.mark.parametrize("n_shown", [2, 4])
def test_assignments_equal_enumeration(n_shown: int) -> None:
    """Who placed a clicked document, given the list, cut or whole."""
    for seed in range(10):
        ranks = random_ranks(4, 3, seed)
        rows = tuple(np.random.default_rng(seed).permutation(4)[:n_shown].tolist())
        clicks = [x % 2 == seed % 2 for x in range(n_shown)]
        clicks[0] = True
        found = assignment_of(ranks, rows, clicks)
        expected = np.zeros((n_shown, 3))
        for teams, probability in assignments(ranks, rows):
            for place, team in enumerate(teams):
                expected[place, team] += probability
        expected /= expected.sum(axis=1, keepdims=True)

        assert found == pytest.approx(expected[np.array(clicks)], abs=1e-14)


def test_a_denominator_that_keeps_placed_documents_is_caught() -> None:
    """Without renewing what is left, assignments differ from enumeration."""
    ranks = random_ranks(4, 2, 3)
    rows, clicks = (2, 0, 1), [False, True, True]
    found = assignment_of(ranks, rows, clicks)
    wrong = ranks[[0, 1]].astype(float) ** -TAU
    wrong /= wrong.sum(axis=1, keepdims=True)

    assert np.abs(found - wrong).max() > 0.01


@pytest.mark.parametrize("by_scores", [False, True])
def test_lists_are_drawn_with_their_probabilities(*, by_scores: bool) -> None:
    """Frequencies of all lists of two out of three agree with enumeration."""
    ranks, n_draws = random_ranks(3, 3, 1), 40_000
    rng = np.random.default_rng(2)
    rows, order = np.empty(2, np.int64), np.arange(3)
    scores = -ranks.astype(np.float32)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(n_draws):
        if by_scores:
            lists.draw_by_scores(scores, order, shares_of(3), rows, rng)
        else:
            lists.draw_probabilistic(ranks, shares_of(3), rows, rng)
        key = tuple(rows.tolist())
        counts[key] = counts.get(key, 0) + 1
    for pair in itertools.permutations(range(3), 2):
        expected = sum(probability for _, probability in assignments(ranks, pair))
        deviation = np.sqrt(expected * (1.0 - expected) / n_draws)
        assert abs(counts.get(pair, 0) / n_draws - expected) < 4.5 * deviation


def sign_expectation(assignment: Floats, candidate: int) -> float:
    """Expected sign of the difference in clicks, over every assignment."""
    total = 0.0
    n_clicks, n_rankers = assignment.shape
    for teams in itertools.product(range(n_rankers), repeat=n_clicks):
        probability = np.prod([assignment[c, team] for c, team in enumerate(teams)])
        difference = teams.count(candidate) - teams.count(0)
        total += float(probability) * float(np.sign(difference))
    return total


def test_outcomes_equal_enumeration() -> None:
    """The expected sign of every duel, for one to four clicks."""
    for n_clicks, seed in itertools.product(range(1, 5), range(6)):
        ranks = random_ranks(6, 4, seed)
        clicks = [x < n_clicks for x in range(5)]
        assignment = assignment_of(ranks, (3, 1, 5, 0, 2), clicks)
        outcomes = np.empty(2 * n_clicks + 1)
        for candidate in range(1, 4):
            found = verdicts.chance_to_win(assignment, candidate, outcomes)
            expected = sign_expectation(assignment, candidate)
            assert found == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize("n_rankers", [2, 5, 50])
def test_rankers_that_rank_alike_never_win(n_rankers: int) -> None:
    """In probabilistic and team-draft comparison and by an oracle, on every list."""
    rng = np.random.default_rng(5)
    for trial in range(200):
        n = int(rng.integers(1, 13))
        same = rng.permutation(n).astype(np.int32) + 1
        ranks = np.repeat(same[:, None], n_rankers, axis=1)
        if n_rankers > 2:
            # Others may differ: only the last is a copy of the first.
            ranks[:, 1:-1] = random_ranks(n, n_rankers - 2, trial)
        k = min(n, 10)
        rows, teams = np.empty(k, np.int64), np.empty(k, np.int64)
        clicks = rng.random(k) < 0.5
        clicks[0] = True
        is_winner = np.ones(n_rankers, np.bool_)
        lists.draw_probabilistic(ranks, shares_of(n), rows, rng)
        assignment = np.empty((int(clicks.sum()), n_rankers))
        verdicts.fill_assignment(
            np.ascontiguousarray(ranks[rows]), shares_of(n), clicks, assignment
        )
        verdicts.mark_winners(assignment, is_winner)
        outcomes = np.empty(2 * len(assignment) + 1)
        chance = verdicts.chance_to_win(assignment, n_rankers - 1, outcomes)
        assert not is_winner[-1]
        assert abs(chance) < 1e-12
        verdicts.mark_better_rankers(ranks, rng.integers(3, size=n), 10, is_winner)
        assert not is_winner[-1]
        if n_rankers == 2:
            lists.draft_teams(ranks, rows, teams, rng)
            verdicts.mark_team_winners(teams, clicks, is_winner)
            assert not is_winner[-1]
            assert (teams == lists.NO_TEAM).all()


def sampled_winners(
    assignment: Floats, n_samples: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Who wins a sample of assignments, drawn one by one."""
    upper = np.cumsum(assignment, axis=1)
    placed = np.zeros((n_samples, assignment.shape[1]), np.int64)
    for click, bounds in enumerate(upper):
        draws = rng.random(n_samples) * bounds[-1]
        teams = np.searchsorted(bounds, draws, side="right")
        np.add.at(placed, (np.arange(n_samples), teams), 1)
        assert click < len(assignment)
    signs = np.sign(placed - placed[:, :1]).sum(axis=0)
    return np.asarray(signs > 0)


@pytest.mark.parametrize("n_clicks", [1, 2, 3])
@pytest.mark.parametrize("n_rankers", [2, 6])
def test_drawn_noise_is_that_of_real_sampling(n_rankers: int, n_clicks: int) -> None:
    """How often each candidate wins, ties included, and each pair of them together."""
    n_samples, n_trials = 200, 6_000
    rng = np.random.default_rng(7)
    near = np.ones((n_clicks, n_rankers)) + 0.1 * rng.random((n_clicks, n_rankers))
    near[:, 1] = near[:, 0]
    assignment = near / near.sum(axis=1, keepdims=True)
    drawn = np.zeros((n_trials, n_rankers), np.bool_)
    for trial in range(n_trials):
        verdicts.mark_winners_by_sample(assignment, n_samples, drawn[trial], rng)
    real = np.array(
        [sampled_winners(assignment, n_samples, rng) for _ in range(n_trials)]
    )
    error = np.sqrt(2.0 * 0.25 / n_trials)

    assert np.abs(drawn.mean(axis=0) - real.mean(axis=0)).max() < 4.5 * error
    assert 0.3 < real[:, 1].mean() < 0.5
    together = np.einsum("ti,tj->ij", drawn, drawn) / n_trials
    real_together = np.einsum("ti,tj->ij", real, real) / n_trials
    assert np.abs(together - real_together).max() < 0.05


def test_team_draft_follows_its_rounds() -> None:
    """AB and BA give AB and BA evenly, each document in the team that put it first."""
    ranks = np.array([[1, 2], [2, 1]], np.int32)
    rng = np.random.default_rng(4)
    rows, teams = np.empty(2, np.int64), np.empty(2, np.int64)
    n_first = 0
    for _ in range(2_000):
        lists.draft_teams(ranks, rows, teams, rng)
        assert rows.tolist() == teams.tolist()
        n_first += rows[0] == 0
    assert abs(n_first - 1_000) < 4.5 * np.sqrt(500)


def test_team_draft_gives_the_common_top_to_nobody() -> None:
    """ABCD and ABDC: A and B are in no team, and a click there decides nothing."""
    ranks = np.array([[1, 1], [2, 2], [3, 4], [4, 3]], np.int32)
    rows, teams = np.empty(4, np.int64), np.empty(4, np.int64)
    lists.draft_teams(ranks, rows, teams, np.random.default_rng(0))
    is_winner = np.ones(2, np.bool_)

    assert rows[:2].tolist() == [0, 1]
    assert teams[:2].tolist() == [lists.NO_TEAM] * 2
    assert sorted(teams[2:].tolist()) == [0, 1]
    clicks = np.array([True, True, False, False])
    assert verdicts.mark_team_winners(teams, clicks, is_winner) == 0


def test_ranks_follow_scores_and_break_ties_as_told() -> None:
    """Larger scores first; equal ones by the given order, or each for itself."""
    rng = np.random.default_rng(9)
    scores = rng.integers(3, size=(9, 4)).astype(np.float32)
    ranks = np.empty((9, 4), np.int32)
    order = np.empty(9, np.int64)
    lists.fill_order(order, rng)
    lists.fill_ranks(scores, order, ranks)
    for r in range(4):
        expected = np.lexsort((order, -scores[:, r]))
        assert np.argsort(ranks[:, r]).tolist() == expected.tolist()
    firsts = np.zeros(3)
    for _ in range(3_000):
        ranks = np.empty((3, 2), np.int32)
        lists.fill_ranks_with_own_ties(np.zeros((3, 2), np.float32), ranks, rng)
        assert np.sort(ranks, axis=0).tolist() == [[1, 1], [2, 2], [3, 3]]
        firsts[np.argmin(ranks[:, 1])] += 1
    assert np.abs(firsts - 1_000).max() < 4.5 * np.sqrt(667)


def test_ranks_of_shown_documents_are_those_of_all() -> None:
    """Also with ties, by each of three kernels that count them."""
    rng = np.random.default_rng(10)
    scores = rng.integers(4, size=(17, 6)).astype(np.float32)
    order, ranks = np.empty(17, np.int64), np.empty((17, 6), np.int32)
    lists.fill_order(order, rng)
    lists.fill_ranks(scores, order, ranks)
    rows = rng.permutation(17)[:8]
    shown = np.empty((8, 6), np.int32)
    lists.fill_shown_ranks(scores, order, rows, shown)

    assert (shown == ranks[rows]).all()
    is_placed = np.zeros(17, np.bool_)
    is_placed[rows] = True
    for r in range(6):
        column = np.ascontiguousarray(scores[:, r])
        assert [lists.rank_in(column, order, d) for d in rows] == shown[:, r].tolist()
        left = [d for d in np.argsort(ranks[:, r]).tolist() if not is_placed[d]]
        found = [
            lists.nth_best(column, order, is_placed, nth)
            for nth in range(1, len(left) + 1)
        ]
        assert found == left


@pytest.mark.parametrize("tau", [0.5, 1.0, 3.0])
def test_ranks_weigh_less_by_the_power_asked_for(tau: float) -> None:
    """1 / rank^tau."""
    shares = np.empty(6)
    lists.fill_shares(shares, tau)

    assert shares == pytest.approx(np.arange(1.0, 7.0) ** -tau, rel=1e-14)


def test_lists_from_tied_scores_are_those_of_the_ranks_in_that_order() -> None:
    """Ties broken by the given order, in place of ranks written out."""
    rng, n_draws = np.random.default_rng(12), 30_000
    scores = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 0.0]], np.float32)
    order, ranks = np.array([1, 2, 0]), np.empty((3, 2), np.int32)
    lists.fill_ranks(scores, order, ranks)
    rows = np.empty(2, np.int64)
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(n_draws):
        lists.draw_by_scores(scores, order, shares_of(3), rows, rng)
        key = tuple(rows.tolist())
        counts[key] = counts.get(key, 0) + 1

    for pair in itertools.permutations(range(3), 2):
        expected = sum(probability for _, probability in assignments(ranks, pair))
        deviation = np.sqrt(expected * (1.0 - expected) / n_draws)
        assert abs(counts.get(pair, 0) / n_draws - expected) < 4.5 * deviation


def test_only_the_top_on_which_all_agree_is_nobodys() -> None:
    """What they agree on below a difference is in a team; a short list may be all."""
    ranks = np.array([[1, 1, 1], [2, 3, 2], [3, 2, 3], [4, 4, 4]], np.int32)
    rng = np.random.default_rng(13)
    rows, teams = np.empty(4, np.int64), np.empty(4, np.int64)
    for _ in range(50):
        lists.draft_teams(ranks, rows, teams, rng)
        assert (rows[0], teams[0]) == (0, lists.NO_TEAM)
        assert sorted(teams[1:].tolist()) == [0, 1, 2]
        assert sorted(rows.tolist()) == [0, 1, 2, 3]
    same = np.repeat(ranks[:, :1], 3, axis=1)
    lists.draft_teams(same, rows[:2], teams[:2], rng)
    assert rows[:2].tolist() == [0, 1]
    assert teams[:2].tolist() == [lists.NO_TEAM] * 2


def better_than_first(
    ranks: Ranks, gains: Floats, discounts: Floats, cutoff: int
) -> list[bool]:
    """Whose discounted gain is larger than that of ranker 0."""
    shown = np.where(ranks <= cutoff, gains[:, None] * discounts, 0.0)
    values = shown.sum(axis=0)
    return [bool(value > values[0] + 1e-12) for value in values]


@pytest.mark.parametrize("cutoff", [1, 3, 8])
def test_an_oracle_compares_discounted_cumulative_gain(cutoff: int) -> None:
    """2^label - 1 over log2(rank + 1), down to the cutoff."""
    rng = np.random.default_rng(14)
    n_by_gain = n_by_discount = n_by_cutoff = 0
    for trial in range(300):
        ranks, labels = random_ranks(8, 4, trial), rng.integers(5, size=8)
        is_winner = np.zeros(4, np.bool_)
        n_winners = verdicts.mark_better_rankers(ranks, labels, cutoff, is_winner)

        gains, discounts = 2.0**labels - 1.0, 1.0 / np.log2(ranks + 1.0)
        right, *others = (
            better_than_first(ranks, *parts)
            for parts in (
                (gains, discounts, cutoff),
                (labels * 1.0, discounts, cutoff),
                (gains, 1.0 / ranks, cutoff),
                (gains, discounts, cutoff + 1),
            )
        )
        assert is_winner.tolist() == right
        assert n_winners == sum(right)
        n_by_gain += others[0] != right
        n_by_discount += others[1] != right
        n_by_cutoff += others[2] != right
    # Each of the three matters, but the discount of a single rank.
    assert n_by_cutoff > 0 or cutoff == 8
    assert cutoff == 1 or min(n_by_gain, n_by_discount) > 0
