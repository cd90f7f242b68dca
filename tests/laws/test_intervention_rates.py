"""Intervals of clicks per list: they hold at any look, for sessions with tastes."""

import math

import numpy as np
import pytest

from models.evaluation.session_sequence import (
    largest_score,
    means_within,
    rate_interval,
    session_intervals,
)
from models.evaluation.sums import SCALE, PreferenceSums

ALPHA, PLANNED, N_GROUPS = 0.05, 2_000.0, 100
N_RUNS, N_SESSIONS, EACH = 400, 600, 10


def looked_at(rng: np.random.Generator, mean: float) -> tuple[bool, bool, float]:
    """Whether the interval ever missed, whether that of single lists did; the width.

    Half of the sessions click twice as often as the others: lists of a session go
    together, and an interval that takes each list for a draw of its own is too narrow.
    """
    tastes = mean * np.where(rng.random(N_SESSIONS) < 0.5, 0.1, 1.9)
    clicks = rng.binomial(4, tastes / 4, size=(EACH, N_SESSIONS)).sum(axis=0)
    groups = rng.integers(N_GROUPS, size=N_SESSIONS)
    totals, sizes = np.zeros(N_GROUPS, np.int64), np.zeros(N_GROUPS, np.int64)
    has_missed = naive_missed = False
    n_clicks = 0
    width = math.inf
    for number, (group, found) in enumerate(zip(groups, clicks, strict=True), 1):
        totals[group] += found
        sizes[group] += EACH
        n_clicks += int(found)
        if number % 5:
            continue
        low, high = rate_interval(totals, sizes, ALPHA, PLANNED)
        has_missed |= not low <= mean <= high
        width = high - low
        n, rate = number * EACH, n_clicks / (number * EACH)
        if number >= 50:
            half = 1.96 * math.sqrt(rate / n)
            naive_missed |= not rate - half <= mean <= rate + half
    return has_missed, naive_missed, width


def test_the_interval_holds_at_every_look_and_a_plain_one_does_not() -> None:
    """In at most 5 % of the runs it ever misses the mean of all sessions."""
    rng = np.random.default_rng(5)
    found = np.array([looked_at(rng, 1.2) for _ in range(N_RUNS)])
    missed, naive, width = found[:, 0].mean(), found[:, 1].mean(), found[:, 2]
    assert missed <= ALPHA
    assert naive > 0.5
    assert np.median(width) < 0.6


@pytest.mark.parametrize("n", [0, 20])
def test_nothing_is_said_of_few_sessions(n: int) -> None:
    """Nor of none: both ends are infinite."""
    sizes = np.zeros(N_GROUPS, np.int64)
    sizes[:n] = 1
    low, high = rate_interval(sizes, sizes, ALPHA, PLANNED)
    assert (low, high) == (-math.inf, math.inf)


def test_it_is_the_interval_of_preferences() -> None:
    """Of the same totals and sizes, and of their moments by definition."""
    rng = np.random.default_rng(2)
    sizes = rng.integers(20, 40, N_GROUPS)
    totals = rng.binomial(sizes, 0.4)
    sums = PreferenceSums.empty(2)
    sums.totals[:, 0] = totals * int(SCALE)
    sums.impressions[:] = sizes
    (expected,) = session_intervals(sums, ALPHA, PLANNED)
    found = rate_interval(totals, sizes, ALPHA, PLANNED)
    assert found == pytest.approx(tuple(expected))
    t, g = totals.astype(float), sizes.astype(float)
    moments = np.array([t.sum(), g.sum(), t @ t, t @ g, g @ g, np.abs(t).sum()])
    largest = largest_score(g.sum() / PLANNED, ALPHA)
    assert found == pytest.approx(means_within(moments, largest))
    # Both ends have the largest standard score that is allowed.
    for m in found:
        score = (t.sum() - m * g.sum()) ** 2 / ((t - m * g) ** 2).sum()
        assert score == pytest.approx(largest)
