"""The truncated LambdaLoss is what its definition says, and slopes are its own."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.losses.discounts import pair_discounts
from models.losses.lambda_loss import truncated_lambda
from models.losses.pair_kernel import SHORT, fill_order


def by_definition(scores, values, is_kept, cutoff: int) -> float:
    """All pairs of items, one after another."""
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    rank = {row: place for place, row in enumerate(order, 1)}

    def discount(r: int) -> float:
        return 1.0 / math.log2(1.0 + r)

    total = 0.0
    for better in range(len(scores)):
        for worse in range(len(scores)):
            n, m = rank[better], rank[worse]
            if not (
                is_kept[better] and is_kept[worse] and (n <= cutoff or m <= cutoff)
            ):
                continue
            if values[better] > values[worse]:
                apart = abs(n - m)
                delta = abs(discount(apart) - discount(apart + 1))
                gap = scores[better] - scores[worse]
                # log(1 + exp(-gap)) without overflow.
                surprise = max(-gap, 0.0) + math.log1p(math.exp(-abs(gap)))
                gained = values[better] - values[worse]
                total += delta * gained * surprise / math.log(2.0)
    return total


def case(n: int, rng: np.random.Generator, spread: float):
    """Scores, values, flags and a cutoff; some scores and values are equal."""
    scores = rng.standard_normal(n) * spread
    values = rng.standard_normal(n)
    scores[rng.random(n) < 0.2] = 0.0
    values[rng.random(n) < 0.3] = 0.0
    return scores, values, rng.random(n) < 0.8, int(rng.integers(1, n + 2))


@given(st.integers(1, 70), st.integers(0, 999), st.sampled_from([0.5, 3.0, 400.0]))
def test_the_loss_is_that_of_its_definition(n: int, seed: int, spread: float) -> None:
    """Also where exponentials of scores leave the range of numbers."""
    given_case = case(n, np.random.default_rng(seed), spread)

    assert truncated_lambda(*given_case).value == pytest.approx(
        by_definition(*given_case), rel=1e-9, abs=1e-12
    )


@settings(max_examples=40)
@given(st.integers(2, 24), st.integers(0, 999), st.sampled_from([0.5, 3.0, 300.0]))
def test_slopes_are_those_of_finite_differences(
    n: int, seed: int, spread: float
) -> None:
    """Of the loss at fixed ranks: scores far enough apart keep them."""
    rng = np.random.default_rng(seed)
    _, values, is_kept, cutoff = case(n, rng, spread)
    scores = rng.permutation(n) * spread / n + rng.random(n) * spread / n / 4.0
    found = truncated_lambda(scores, values, is_kept, cutoff).gradient
    step = 1e-4 * spread / n

    for row in range(n):
        up, down = scores.copy(), scores.copy()
        up[row] += step
        down[row] -= step
        rise = by_definition(up, values, is_kept, cutoff) - by_definition(
            down, values, is_kept, cutoff
        )
        assert found[row] == pytest.approx(rise / (2.0 * step), rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("above", [300.0, 667.8, 700.0, 2000.0])
def test_low_scores_count_by_their_own_differences(above: float) -> None:
    """Two items far below a third are as near to each other as they were."""
    values, kept = np.array([0.0, 1.0, 3.0]), np.ones(3, bool)
    near = truncated_lambda(np.array([0.5, 0.0]), values[1:], kept[1:], 3)
    far = truncated_lambda(np.array([above, 0.5, 0.0]), values, kept, 3)
    alone = truncated_lambda(np.array([above, 0.0]), values[:2], kept[:2], 3).gradient

    # The second and the third are one rank apart in both.
    assert (far.gradient[1] - near.gradient[0]) == pytest.approx(alone[1], rel=1e-12)
    assert np.isfinite(far.value)
    assert far.gradient.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("gap", [300.0, 700.0, 5000.0])
def test_a_pair_far_the_wrong_way_has_the_whole_slope(gap: float) -> None:
    """And the right way none; the loss is the gap in bits."""
    kept, weight = np.ones(2, bool), 2.0 * (1.0 - 1.0 / math.log2(3.0))
    wrong = truncated_lambda(np.array([gap, 0.0]), np.array([1.0, 3.0]), kept, 1)
    right = truncated_lambda(np.array([gap, 0.0]), np.array([3.0, 1.0]), kept, 1)

    assert wrong.value == pytest.approx(weight * gap / math.log(2.0))
    assert wrong.gradient == pytest.approx(
        np.array([1.0, -1.0]) * weight / math.log(2.0)
    )
    assert right.value == pytest.approx(0.0, abs=1e-100)
    assert right.gradient == pytest.approx([0.0, 0.0], abs=1e-100)


def test_discounts_of_pairs_fall() -> None:
    """From neighbours on, as the differences of 1 / log2(1 + rank)."""
    found = pair_discounts(4)

    assert found[0] == 0.0
    assert found[1:] == pytest.approx(
        [1.0 - 1.0 / math.log2(3.0), 1.0 / math.log2(3.0) - 0.5,
         0.5 - 1.0 / math.log2(5.0)]
    )  # fmt: skip


@given(st.integers(1, 3 * SHORT), st.integers(0, 99))
def test_equal_scores_rank_by_row(n: int, seed: int) -> None:
    """Long or short, as the stable order of numpy."""
    scores = np.random.default_rng(seed).integers(0, 6, n).astype(float)
    order = np.empty(n, np.int64)
    fill_order(scores, order)

    assert order.tolist() == np.argsort(-scores, kind="stable").tolist()
