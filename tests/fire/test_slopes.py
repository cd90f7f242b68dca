"""Laws of the slopes by which a soak is judged."""

import numpy as np
import pytest

from tests.fire.slopes import FEWEST, Slope, slope_of

MINUTES = np.arange(60.0)


def drawn(seed: int, carried: float) -> np.ndarray:
    """Noise of variance 1 a step, of which each takes over a share of the last."""
    fresh = np.random.default_rng(seed).normal(size=len(MINUTES) + 50)
    noise = np.zeros(len(fresh))
    for n in range(1, len(fresh)):
        noise[n] = carried * noise[n - 1] + fresh[n]
    return noise[50:]


def test_of_a_straight_line_it_is_exact() -> None:
    """Rise, ends, and no error."""
    slope = slope_of(MINUTES, 1_000.0 + 33.0 * MINUTES, warm_up=10.0)
    assert slope.per_minute == pytest.approx(33.0)
    assert slope.error == pytest.approx(0.0, abs=1e-9)
    assert (slope.first, slope.last) == pytest.approx((1_330.0, 2_947.0))


def test_the_warm_up_counts_for_nothing() -> None:
    """Whatever was there before it."""
    values = drawn(1, 0.5)
    other = np.where(MINUTES < 15, values + 1e6, values)
    first, second = (slope_of(MINUTES, each, warm_up=15) for each in (values, other))
    assert first == second
    assert first.n_samples == 45


def test_a_shift_changes_nothing_and_a_factor_scales() -> None:
    """What was there from the start is no growth."""
    values = drawn(2, 0.5)
    one, other = slope_of(MINUTES, values), slope_of(MINUTES + 7, 5 + 3 * values)
    assert other.per_minute == pytest.approx(3 * one.per_minute)
    assert other.error == pytest.approx(3 * one.error)


def test_a_ramp_adds_its_own_slope_and_no_error() -> None:
    """The error is that of the noise around the line."""
    values = drawn(3, 0.5)
    one, other = slope_of(MINUTES, values), slope_of(MINUTES, values + 4 * MINUTES)
    assert other.per_minute == pytest.approx(one.per_minute + 4)
    assert other.error == pytest.approx(one.error)


def test_without_lags_it_would_be_too_sure() -> None:
    """Of noise that carries over, the truth lies within three errors nearly always."""
    inside = plain = 0
    for seed in range(200):
        values = drawn(seed, 0.7)
        slope = slope_of(MINUTES, values)
        left = values - np.polyval(np.polyfit(MINUTES, values, 1), MINUTES)
        spread = ((MINUTES - MINUTES.mean()) ** 2).sum()
        ordinary = np.sqrt((left**2).sum() / (len(MINUTES) - 2) / spread)
        inside += abs(slope.per_minute) < 3 * slope.error
        plain += abs(slope.per_minute) < 3 * ordinary
    assert plain + 10 < inside
    assert inside > 0.85 * 200


@pytest.mark.parametrize(
    ("per_minute", "error", "verdict"),
    [
        (0.0, 1.0, "flat"),
        (-50.0, 10.0, "flat"),
        (90.0, 3.0, "flat"),
        (90.0, 4.0, "undecided"),
        (0.0, 40.0, "undecided"),
        (150.0, 20.0, "undecided"),
        (150.0, 10.0, "grows"),
        (3_300.0, 300.0, "grows"),
    ],
)
def test_only_what_is_surely_below_the_bound_is_flat(
    per_minute: float, error: float, verdict: str
) -> None:
    """What is not sure is neither."""
    assert Slope(45, per_minute, error, 0.0, 0.0).verdict(100.0) == verdict


def test_of_few_samples_nothing_is_said() -> None:
    """As after a run that was too short for its warm-up."""
    slope = slope_of(MINUTES, MINUTES, warm_up=60 - FEWEST + 1)
    assert slope.verdict(1e9) == "undecided"
    assert slope.as_dict()["per_minute"] is None
