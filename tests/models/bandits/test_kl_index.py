"""The upper index: the largest rate within the budget, held to a dense search."""

import math

import numpy as np
import pytest

from models.arrays import Floats, Integers
from models.bandits.kl_index import budget, reaches, upper_index

EXAMINATION = np.array([1.0, 0.5, 0.2])
GRID = np.linspace(0.0, 1.0, 20_001)


def cost_by_hand(clicks: Integers, shows: Integers, examination: Floats) -> Floats:
    """The sum of N kl(S / N, kappa q) at each q of the grid, written out."""
    found = np.zeros(len(GRID))
    for s, n, kappa in zip(clicks, shows, examination, strict=True):
        q = kappa * GRID
        with np.errstate(divide="ignore", invalid="ignore"):
            if s > 0:
                found += s * (math.log(s / n) - np.log(q))
            if s < n:
                found += (n - s) * (math.log((n - s) / n) - np.log1p(-q))
    return found


def cases() -> list[tuple[Integers, Integers, Floats, float]]:
    """Few lists and many, certain clicks, ranks that contradict each other."""
    rng = np.random.default_rng(5)
    found = []
    for number in range(120):
        examination = EXAMINATION * (0.9 if number % 2 else 1.0)
        shows = rng.integers(0, (3, 40, 400)[number % 3], 3)
        rate = rng.random() if number % 5 else rng.integers(2)
        clicks = rng.binomial(shows, examination * rate)
        if number % 7 == 0:  # beyond what any one rate explains
            clicks = rng.binomial(shows, rng.random(3))
        found.append((clicks, shows, examination, budget(int(rng.integers(1, 5_000)))))
    return found


def test_the_index_is_the_largest_rate_within_the_budget() -> None:
    """Or that of least cost, where nothing is."""
    n_beyond = 0
    for clicks, shows, examination, most in cases():
        costs = cost_by_hand(clicks, shows, examination)
        within = np.flatnonzero(costs <= most)
        n_beyond += not len(within)
        expected = GRID[within[-1] if len(within) else np.argmin(costs)]
        found = upper_index(clicks, shows, examination, most)
        assert abs(found - expected) <= 1.0001 * GRID[1]
        assert found >= GRID[np.argmin(costs)] - GRID[1]
    assert 0 < n_beyond < 60


def test_one_look_tells_whether_the_index_reaches_a_level() -> None:
    """As the index itself does."""
    rng = np.random.default_rng(6)
    for clicks, shows, examination, most in cases():
        index = upper_index(clicks, shows, examination, most)
        for level in (*rng.random(5), 0.0, index - 1e-9, index + 1e-9, 1.5):
            told = reaches(clicks, shows, examination, most, level)
            assert told == (index >= min(level, 1.0))


def test_what_was_never_shown_may_be_as_good_as_anything() -> None:
    """And so may what was clicked each time; what never was may be nothing at last."""
    none = np.zeros(3, np.int64)
    assert upper_index(none, none, EXAMINATION, 0.0) == 1.0
    shows = np.array([9, 0, 0])
    assert upper_index(shows, shows, EXAMINATION, 0.0) == 1.0
    # Rank 2 speaks for .9, and rank 1, where all were clicked, for more than that.
    clicks, shows = np.array([20, 45, 0]), np.array([20, 100, 0])
    assert upper_index(clicks, shows, EXAMINATION, 0.0) == 1.0
    many = np.array([10**7, 10**7, 10**7])
    assert 0.0 < upper_index(none, many, EXAMINATION, budget(3 * 10**7)) < 1e-5


@pytest.mark.parametrize(
    ("n_lists", "expected"),
    [
        (0, 0.0),
        (1, 0.0),
        (2, math.log(2)),
        (100, math.log(100) + 3 * math.log(math.log(100))),
    ],
)
def test_the_budget_is_that_of_the_literature(n_lists: int, expected: float) -> None:
    """The second term counts once it is above 0."""
    assert budget(n_lists) == pytest.approx(expected, abs=1e-15)


def test_the_budget_grows_and_so_does_the_index() -> None:
    """From list to list, as nothing else comes."""
    clicks, shows = np.array([3, 1, 0]), np.array([20, 9, 4])
    budgets = [budget(n) for n in range(200)]
    assert np.all(np.diff(budgets[1:]) > 0)
    found = [upper_index(clicks, shows, EXAMINATION, most) for most in budgets[1:]]
    assert np.all(np.diff(found) > 0)
