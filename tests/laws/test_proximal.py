"""The proximal loss is that of its definition, item by item over all lists."""

import itertools

import numpy as np
import numpy.typing as npt
import pytest

from models.losses.discounts import discounts
from models.losses.loss_value import LossValue
from models.losses.policy_gradient import policy_gradient
from models.losses.proximal import RATIO, compiled_proximal, proximal, rank_weights
from models.losses.registry import compiled_loss
from tests.laws.enumerated_placements import enumerated_placements

Floats = npt.NDArray[np.float64]


def weights_of(scores: Floats, worths: Floats) -> list[float]:
    """w(d) of each item, from all lists."""
    found: list[float] = (
        enumerated_placements(scores[None], len(worths))[0] @ worths
    ).tolist()
    return found


def by_definition(
    scores: Floats, values: Floats, parents: list[float], worths: Floats, c: float
) -> float:
    """Minus the sum over items, with the ratio as the paper has it."""
    total = 0.0
    for value, parent, new in zip(
        values, parents, weights_of(scores, worths), strict=True
    ):
        x = new / parent
        total += (min(x, c) if value >= 0.0 else max(x, 1.0 / c)) * value * parent
    return -total


@pytest.mark.parametrize("c", [1.05, RATIO, 3.0])
@pytest.mark.parametrize("k", [1, 3, 5])
def test_values_and_slopes_are_those_of_the_definition(k: int, c: float) -> None:
    """Of values of both signs, some clipped; slopes by finite differences."""
    rng = np.random.default_rng([k, int(100 * c)])
    worths, n_clipped, n_free = discounts(k), 0, 0
    for _ in range(12):
        before, values = rng.normal(size=5), rng.normal(size=5)
        scores = before + 1.5 * rng.normal(size=5)
        parents = weights_of(before, worths)
        found = proximal(
            scores, values, np.ones(5, bool), k, parents=np.array(parents), ratio=c
        )

        assert found.value == pytest.approx(
            by_definition(scores, values, parents, worths, c), abs=1e-9
        )
        for row, by in enumerate(1e-5 * np.eye(5)):
            rise = by_definition(scores + by, values, parents, worths, c)
            rise -= by_definition(scores - by, values, parents, worths, c)
            assert found.gradient[row] == pytest.approx(rise / 2e-5, abs=1e-7)
        for value, old, new in zip(
            values, parents, weights_of(scores, worths), strict=True
        ):
            is_clipped = new > c * old if value > 0.0 else new < old / c
            n_clipped, n_free = n_clipped + is_clipped, n_free + (not is_clipped)
    assert n_free > 5
    # No item of a list of all five is worth three times as much.
    assert n_clipped > 5 or (k, c) == (5, 3.0)


def test_weights_are_those_of_all_lists() -> None:
    """Near ties, far apart, and of fewer items than ranks."""
    rng = np.random.default_rng(3)
    for spread, n, k in itertools.product((0.0, 2.0, 40.0), (1, 3, 5), (1, 2, 9)):
        scores, worths = spread * rng.normal(size=n), rng.random(k)
        expected = weights_of(scores, worths[:n])
        assert rank_weights(scores, worths) == pytest.approx(expected, abs=1e-9)


def found_of(values: list[float], scores: list[float]) -> LossValue:
    """Of two items that the parent puts first equally often."""
    halves = np.array([0.5, 0.5])
    return proximal(
        np.array(scores), np.array(values), np.ones(2, bool), 1, parents=halves
    )


def test_beyond_the_ratio_nothing_moves() -> None:
    """A liked item that is shown 1.25 times as much, a disliked one as seldom."""
    for values in ([1.0, 0.0], [0.0, -1.0]):
        near = found_of(values, [0.1, 0.0])
        far = found_of(values, [5.0, 0.0])
        assert near.gradient[0] < 0.0
        assert far.gradient.tolist() == [0.0, 0.0]
    # Back is always open.
    assert found_of([1.0, 0.0], [-5.0, 0.0]).gradient[0] < 0.0
    assert found_of([0.0, -1.0], [-5.0, 0.0]).gradient[1] > 0.0
    assert found_of([1.0, 0.0], [5.0, 0.0]).value == pytest.approx(-0.5 * RATIO)
    assert found_of([0.0, -1.0], [5.0, 0.0]).value == pytest.approx(0.5 / RATIO)


def test_at_the_parent_it_is_the_policy_gradient() -> None:
    """To the bit, where none is given and where its weights are."""
    rng = np.random.default_rng(4)
    scores, values, known = rng.normal(size=7), rng.normal(size=7), np.ones(7, bool)
    plain = policy_gradient(scores, values, known, 3)
    for parents in (None, rank_weights(scores, discounts(3))):
        found = proximal(scores, values, known, 3, parents=parents)

        assert found.value == plain.value
        assert found.gradient.tolist() == plain.gradient.tolist()


def test_a_wide_ratio_is_the_policy_gradient() -> None:
    """Nothing is clipped."""
    rng = np.random.default_rng(6)
    before, scores, values = rng.normal(size=(3, 6))
    parents, known = rank_weights(before, discounts(3)), np.ones(6, bool)
    found = proximal(scores, values, known, 3, parents=parents, ratio=1e9)
    plain = policy_gradient(scores, values, known, 3)

    assert found.gradient == pytest.approx(plain.gradient, rel=1e-12)


def test_an_item_that_the_parent_never_shows_gains_nothing() -> None:
    """No division by 0, whatever it is worth."""
    found = proximal(
        np.zeros(2), np.array([3.0, 0.0]), np.ones(2, bool), 1,
        parents=np.array([0.0, 1.0]),
    )  # fmt: skip
    assert (found.value, found.gradient.tolist()) == (0.0, [0.0, 0.0])


def test_longer_lists_are_exact_too() -> None:
    """No generator is asked for, of any length."""
    rng = np.random.default_rng(7)
    scores, values = rng.normal(size=400), rng.random(400)
    known, worths = np.ones(400, bool), discounts(5)
    found = proximal(scores, values, known, 5)
    assert found.value == pytest.approx(-values @ rank_weights(scores, worths))
    row = int(scores.argmax())
    by = 1e-4 * (np.arange(400) == row)
    rise = values @ (
        rank_weights(scores + by, worths) - rank_weights(scores - by, worths)
    )
    assert found.gradient[row] == pytest.approx(-rise / 2e-4, abs=1e-6)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0, -2.0, np.nan, np.inf])
def test_a_ratio_that_is_none_is_refused(ratio: float) -> None:
    """By the loss and by its form for kernels."""
    with pytest.raises(ValueError, match=f"must be finite and above 1; got {ratio}"):
        proximal(np.zeros(2), np.ones(2), np.ones(2, bool), 1, ratio=ratio)
    with pytest.raises(ValueError, match="must be finite and above 1"):
        compiled_loss("proximal", 1, 2, ratio=ratio)


def test_what_cannot_be_is_refused_in_words() -> None:
    """Weights of other items, of no sign, and what other losses do not take."""
    two = (np.zeros(2), np.ones(2), np.ones(2, bool), 1)
    for parents, told in (
        ([0.5], r"same items as scores; got shape \(1,\) for 2 items"),
        ([[0.5, 0.5]], r"same items as scores; got shape \(1, 2\)"),
        ([0.5, -0.1], "at least 0; got -0.1 in row 1"),
        ([np.nan, 0.5], "at least 0; got nan in row 0"),
    ):
        with pytest.raises(ValueError, match=told):
            proximal(*two, parents=np.array(parents))
    with pytest.raises(ValueError, match="worths of ranks must be at least 0, as"):
        compiled_proximal(2, 2, worths=np.array([1.0, -1.0]))
    with pytest.raises(ValueError, match="ratio must go to proximal; got loss 'lam"):
        compiled_loss("lambda-rank", 1, 2, ratio=1.5)
    assert compiled_loss("proximal", 1, 2).ratio == RATIO
