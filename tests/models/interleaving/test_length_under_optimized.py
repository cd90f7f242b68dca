"""What optimized multileaving cannot make fair: numbers that the documents name."""

from collections.abc import Iterator
from itertools import permutations

import numpy as np
import pytest

from models.interleaving.method import NO_ONE, Shown
from models.interleaving.optimized import Optimized
from models.interleaving.pairwise_preference import PairwisePreference
from models.interleaving.team_draft import N_SAMPLES, TeamDraft, two_team_exposures
from tests.interleaving_cases import as_rankings


def test_a_longer_list_is_paid_for_its_length() -> None:
    """The same documents on top: clicks by rank alone prefer who goes on after them."""
    rankings = as_rankings([[0, 1, 2, 3], [0, 1]])
    method, rng = Optimized(), np.random.default_rng(0)
    lists, chances, is_fair = method.distribution(rankings, 4, rng=rng)
    looked = 0.5 / np.arange(1, 5)
    paid = 0.0
    for row, chance in zip(lists, chances, strict=True):
        for place, share in enumerate(looked):
            clicks = np.arange(4) == place
            found = method.infer(Shown(rankings, row, NO_ONE), clicks)
            paid += chance * share * found[0, 1]

    assert not is_fair
    assert paid == pytest.approx(0.5 * (1 / 9 + 1 / 16))  # 0.087


def test_about_half_of_three_rankers_can_be_made_fair() -> None:
    """And all full rankings of two: six documents, of which four are shown."""
    rng, method, fair = np.random.default_rng(0), Optimized(), {2: 0, 3: 0}
    for n_rankers in fair:
        for _ in range(60):
            rankings = np.array([rng.permutation(6) for _ in range(n_rankers)])
            fair[n_rankers] += method.distribution(rankings, 4, rng=rng)[2]

    assert fair[2] == 60
    assert 20 <= fair[3] <= 40


def has_solution(lists: list[list[int]], length: int) -> bool:
    """Whether probabilities are found that favour nobody, over all allowed lists."""
    rng = np.random.default_rng(0)
    return Optimized().distribution(as_rankings(lists), length, rng=rng)[2]


def equally_long() -> Iterator[list[list[int]]]:
    """Two full rankings of one to four documents; two of two among four, and fewer."""
    for n_ranked, n_documents in (
        (1, 1),
        (2, 2),
        (3, 3),
        (4, 4),
        (1, 2),
        (2, 3),
        (2, 4),
    ):
        for other in permutations(range(n_documents), n_ranked):
            yield [list(range(n_ranked)), list(other)]


def test_two_rankings_of_one_length_can_always_be_made_fair() -> None:
    """Every pair, every length of the list."""
    for lists in equally_long():
        for length in range(1, len({d for row in lists for d in row}) + 1):
            assert has_solution(lists, length), (lists, length)


def test_two_rankings_of_unequal_length_often_cannot() -> None:
    """The smallest case, one document against two; and most of forty at random."""
    rng = np.random.default_rng(1)
    lists: list[list[list[int]]] = []
    while len(lists) < 40:
        pair = [rng.permutation(6)[: rng.integers(1, 7)].tolist() for _ in range(2)]
        if len(pair[0]) != len(pair[1]):
            lists.append(pair)
    n_unfair = sum(not has_solution(pair, 4) for pair in lists)

    assert not has_solution([[0], [0, 1]], 2)
    assert n_unfair == 25


def test_sampled_exposures_err_by_as_much_as_is_said() -> None:
    """A standard error of at most .005 at a place; pairwise preference is exact."""
    rng = np.random.default_rng(0)
    rankings = np.array([rng.permutation(5) for _ in range(2)])
    exact = two_team_exposures(rankings, 5)
    draft = TeamDraft()
    thrice = np.vstack([rankings, rankings[:1]])
    sampled = draft.exposures(thrice, 5, rng=np.random.default_rng(1))
    again = draft.exposures(thrice, 5, rng=np.random.default_rng(2))

    assert N_SAMPLES == 10_000
    assert 0.0 < np.abs(sampled - again).max() < 5 * np.sqrt(2) * 0.005
    assert np.abs(exact.sum(axis=0) - 1.0).max() < 1e-12
    both = [PairwisePreference().exposures(thrice, 5, rng=r) for r in (rng, rng)]
    np.testing.assert_array_equal(both[0], both[1])
