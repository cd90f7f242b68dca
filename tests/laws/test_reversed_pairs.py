"""The weight of a preference is the ratio of two list probabilities."""

from collections.abc import Callable
from decimal import Decimal, localcontext

import numpy as np
import numpy.typing as npt
import pytest

from models.click_preferences import preference_pairs
from models.learners.reversed_pairs import (
    PLAIN,
    derivative_of_preference,
    logged_pair_coefficients,
)

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

DIGITS = 50
FAR = 1e6


def list_probability(scores: Floats, rows: list[int]) -> Decimal:
    """Probability of a Plackett-Luce list, from its definition, with 50 digits."""
    exponentials = [Decimal(float(score)).exp() for score in scores]
    probability = Decimal(1)
    left = set(range(len(scores)))
    for row in rows:
        probability *= exponentials[row] / sum(exponentials[d] for d in left)
        left.remove(row)
    return probability


def exact_weight(scores: Floats, rows: Integers, a: int, b: int) -> Decimal:
    """P(R*) / (P(R) + P(R*)) with 50 digits."""
    shown = rows.tolist()
    exchanged = shown.copy()
    exchanged[a], exchanged[b] = shown[b], shown[a]
    with localcontext() as context:
        context.prec = DIGITS + 10
        context.Emin, context.Emax = -(10**9), 10**9
        one, other = (
            list_probability(scores, shown),
            list_probability(scores, exchanged),
        )
        return other / (one + other)


def exact_slope(difference: float) -> Decimal:
    """The derivative of the logistic function with 50 digits."""
    with localcontext() as context:
        context.prec = DIGITS + 10
        small = (-abs(Decimal(difference))).exp()
        return small / (1 + small) ** 2


def weight(scores: Floats, rows: Integers, a: int, b: int) -> float:
    """Rho of one pair, taken out of the kernel of the learner.

    A click on b alone prefers b to a. The present scores of all other pairs are so
    far apart that their slope is 0, that of this pair is 1/4.
    """
    clicks = np.zeros(len(rows), np.bool_)
    clicks[b] = True
    present = FAR * np.arange(1.0, len(rows) + 1)
    present[a] = present[b] = 0.0
    coefficients = np.zeros(len(rows))
    logged_pair_coefficients(scores, rows, clicks, present, coefficients, PLAIN)
    return float(4.0 * coefficients[b])


def ordinary(rng: np.random.Generator, spread: float, n: int) -> Floats:
    """Scores over a range."""
    return np.asarray(rng.uniform(-spread / 2, spread / 2, n))


def nearly_tied(rng: np.random.Generator, spread: float, n: int) -> Floats:
    """Two heaps of scores that almost agree within."""
    heaps = rng.integers(2, size=n) * spread
    return np.asarray(heaps + 1e-12 * rng.normal(size=n))


@pytest.mark.parametrize("spread", [0, 1, 20, 60, 150, 199, 201, 300, 500, 708, 800])
@pytest.mark.parametrize("n", [5, 8])
@pytest.mark.parametrize("scores_of", [ordinary, nearly_tied])
def test_weights_equal_a_50_digit_reference(
    spread: float, n: int, scores_of: Callable[..., Floats]
) -> None:
    """Rho times slope is right to 1e-9 of itself at every spread."""
    rng = np.random.default_rng([int(spread), n])
    for k in (n, n - 3):
        scores = scores_of(rng, spread, n)
        rows = rng.permutation(n)[:k]
        for b in range(1, k):
            for a in range(b):
                expected = float(exact_weight(scores, rows, a, b))
                assert weight(scores, rows, a, b) == pytest.approx(
                    expected, rel=1e-9, abs=1e-300
                )
                gap = float(scores[rows[a]] - scores[rows[b]])
                slope = derivative_of_preference(scores[rows[a]], scores[rows[b]])
                assert slope == pytest.approx(float(exact_slope(gap)), rel=1e-9)


def test_weights_equal_the_reference_for_long_lists() -> None:
    """Products of many factors neither vanish nor overflow."""
    rng = np.random.default_rng(8)
    scores = ordinary(rng, 190.0, 60)
    rows = np.argsort(scores)[:55]
    for a, b in ((0, 54), (54 // 2, 54), (0, 1), (3, 40)):
        for shown in (rows, rows[::-1].copy()):
            expected = float(exact_weight(scores, shown, a, b))
            assert weight(scores, shown, a, b) == pytest.approx(
                expected, rel=1e-9, abs=1e-300
            )


@pytest.mark.parametrize("share", [0.1, 0.9])
@pytest.mark.parametrize("spread", [5.0, 190.0])
def test_coefficients_of_long_lists_equal_the_reference(
    spread: float, share: float
) -> None:
    """All pairs of a document at once give what each gives alone."""
    rng = np.random.default_rng([int(spread), int(10 * share)])
    scores = ordinary(rng, spread, 30)
    rows = rng.permutation(30)[:26]
    clicks = rng.random(26) < share
    clicks[[3, -1]] = True, False
    present = rng.normal(size=26)
    gains, losses = np.zeros(26), np.zeros(26)
    for preferred, other in preference_pairs(clicks):
        a, b = sorted((int(preferred), int(other)))
        slope = derivative_of_preference(present[a], present[b])
        gains[preferred] += float(exact_weight(scores, rows, a, b)) * slope
        losses[other] += float(exact_weight(scores, rows, a, b)) * slope
    actual = np.zeros(26)

    n_pairs = logged_pair_coefficients(scores, rows, clicks, present, actual, PLAIN)

    assert n_pairs == len(preference_pairs(clicks))
    # Who is clicked only gains and who is not only loses, so that nothing cancels.
    assert actual == pytest.approx(gains - losses, rel=1e-9, abs=1e-300)
    assert (gains * losses == 0.0).all()


def test_a_kernel_that_subtracts_is_caught() -> None:
    """The same closed form with differences of sums misses the reference."""
    scores = np.array([0.0, 45.0, 2.0, 1.0])
    rows = np.array([1, 0, 2, 3])
    sizes = np.exp(scores[rows])
    masses = sizes.sum() - np.concatenate([[0.0], np.cumsum(sizes)[:-1]])
    ratio = np.prod(masses[2:4] / (masses[2:4] + sizes[1] - sizes[3]))
    expected = float(exact_weight(scores, rows, 1, 3))

    assert abs(ratio / (1 + ratio) - expected) > 1e-9 * expected
    assert weight(scores, rows, 1, 3) == pytest.approx(expected, rel=1e-9)


def test_golden_values_of_a_click_in_the_middle() -> None:
    """Two pairs of a list of three, by arithmetic on their definition."""
    scores = np.array([1.0, 0.0, -1.0, 2.0])
    rows = np.array([3, 0, 1])
    clicks = np.array([False, True, False])
    coefficients = np.zeros(3)
    slope = float(exact_slope(1.0))
    expected = [slope * float(exact_weight(scores, rows, *p)) for p in ((0, 1), (1, 2))]

    n_pairs = logged_pair_coefficients(
        scores, rows, clicks, scores[rows], coefficients, PLAIN
    )

    assert n_pairs == 2
    assert coefficients == pytest.approx(
        [-expected[0], expected[0] + expected[1], -expected[1]], rel=1e-14
    )
    assert expected == pytest.approx([0.06255408, 0.06038145], abs=5e-9)


def test_every_pair_of_every_click_pattern_is_counted_once() -> None:
    """Coefficients are the sum over preference pairs, whatever was clicked."""
    rng = np.random.default_rng(3)
    scores = 2.0 * rng.normal(size=7)
    present = rng.normal(size=5)
    rows = rng.permutation(7)[:5]
    for pattern in range(2**5):
        clicks = np.array([pattern >> x & 1 for x in range(5)], np.bool_)
        expected = np.zeros(5)
        for preferred, other in preference_pairs(clicks):
            a, b = sorted((int(preferred), int(other)))
            share = weight(scores, rows, a, b) * derivative_of_preference(
                present[a], present[b]
            )
            expected[preferred] += share
            expected[other] -= share
        actual = np.zeros(5)

        logged_pair_coefficients(scores, rows, clicks, present, actual, PLAIN)

        assert actual == pytest.approx(expected, rel=1e-12, abs=1e-15)
