"""The expected worth of Plackett-Luce lists and its gradient, exact and drawn."""

import numpy as np
import numpy.typing as npt
import pytest

from models.losses.compiled_loss import EXACT_ITEMS
from models.losses.discounts import discounts
from models.losses.placement_gradient import add_expected_worth
from models.losses.policy_gradient import policy_gradient
from tests.laws.losses_by_definition import expected_worth
from tests.placed_list import placement_probabilities

Floats = npt.NDArray[np.float64]

ALPHA_AND_BETA = np.array([1.0, 0.7901, 0.7006, 0.6431, 0.5997])
"""Of the users of chapter 10 of the thesis."""


def exact(scores: Floats, values: Floats, worths: Floats) -> tuple[float, Floats]:
    """Worth and gradient."""
    slopes = np.zeros(len(scores))
    order = np.empty(len(scores), np.int64)
    return add_expected_worth(scores, values, worths, order, slopes), slopes


@pytest.mark.parametrize("k", [1, 2, 4, 5])
@pytest.mark.parametrize("spread", [0.0, 0.5, 3.0, 20.0, 90.0])
def test_all_lists_enumerated_give_the_same(k: int, spread: float) -> None:
    """Cut and whole, with worths that fall, rise and change their sign."""
    rng = np.random.default_rng(k)
    scores, values = spread * rng.normal(size=5), rng.normal(size=5)
    known = np.ones(5, bool)
    for worths in (ALPHA_AND_BETA[:k], rng.normal(size=k)):
        worth, slopes = exact(scores, values, worths)

        assert worth == pytest.approx(
            expected_worth(scores, values, known, worths), abs=1e-9
        )
        for row, by in enumerate(1e-5 * np.eye(5)):
            rise = expected_worth(scores + by, values, known, worths) - expected_worth(
                scores - by, values, known, worths
            )
            assert slopes[row] == pytest.approx(rise / 2e-5, abs=1e-8)


@pytest.mark.parametrize("spread", [0.1, 2.0, 40.0, 300.0])
@pytest.mark.parametrize(("n", "k"), [(1, 1), (12, 12), (40, 10), (125, 10)])
def test_long_lists_agree_with_probabilities_of_ranks(
    n: int, k: int, spread: float
) -> None:
    """Near ties and far apart; slopes are differences of such worths."""
    rng = np.random.default_rng(n)
    scores, values = spread * rng.normal(size=n), rng.normal(size=n)
    scores[n // 2] = scores[0] + 1e-9
    worths = discounts(k)

    def worth_of(scored: Floats) -> float:
        return float(values @ placement_probabilities(scored, k) @ worths)

    worth, slopes = exact(scores, values, worths)
    assert worth == pytest.approx(worth_of(scores), abs=1e-9)
    assert slopes.sum() == pytest.approx(0.0, abs=1e-9)
    for row in np.argsort(-scores)[:3]:
        by = 1e-4 * (np.arange(n) == row)
        rise = worth_of(scores + by) - worth_of(scores - by)
        assert slopes[row] == pytest.approx(rise / 2e-4, abs=1e-6)


def test_longer_lists_are_drawn_without_bias() -> None:
    """The mean of many draws is the exact worth and its gradient, within its error."""
    rng = np.random.default_rng(5)
    n = EXACT_ITEMS + 1
    scores, values = 0.3 * rng.normal(size=n), rng.random(n)
    drawn = [
        policy_gradient(scores, values, np.ones(n, bool), 3, n_samples=200, rng=rng)
        for _ in range(60)
    ]
    worth, slopes = exact(scores, values, discounts(3))

    worths = [-one.value for one in drawn]
    error = float(np.std(worths, ddof=1)) / np.sqrt(60.0)
    assert np.mean(worths) == pytest.approx(worth, abs=4.5 * error)
    gradients = -np.array([one.gradient for one in drawn])
    errors = gradients.std(axis=0, ddof=1) / np.sqrt(60.0)
    assert (np.abs(gradients.mean(axis=0) - slopes) < 4.5 * errors).all()
    assert errors.max() < 1e-3 < np.abs(slopes).max()


def test_draws_come_from_the_generator() -> None:
    """The same one gives the same bits; the longest that are exact leave it."""
    n = EXACT_ITEMS + 1
    scores, known = np.arange(n) / 50.0, np.ones(n, bool)
    found = [
        policy_gradient(scores, scores, known, 3, rng=np.random.default_rng(seed))
        for seed in (1, 2, 1)
    ]
    rng = np.random.default_rng(1)
    policy_gradient(scores[1:], scores[1:], known[1:], 3, rng=rng)

    assert found[0].gradient.tobytes() == found[2].gradient.tobytes()
    assert found[0].gradient.tobytes() != found[1].gradient.tobytes()
    assert rng.random() == np.random.default_rng(1).random()
