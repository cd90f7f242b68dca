"""Intervals of items of few clicks hold the truth as often as they say, or more.

`python -m tests.long_run_intervals` has more kinds of users, and the table of
`docs/estimators.md`.
"""

import numpy as np
import pytest
from scipy.stats import poisson

from models.estimators import intervals as module
from models.estimators.intervals import few_click_ends, jackknife_intervals
from models.estimators.item_intervals import points_of_items
from models.estimators.registry import ESTIMATORS
from tests.covered_items import KINDS, held, log_of, sums_of

N_ITEMS = 10_000
ERROR = 0.007
"""Three standard errors of a share of .95 of so many items."""

ENOUGH = 200
"""Clicks beyond which no sum of the cases goes."""


@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.99])
def test_of_clicks_of_one_weight_the_ends_are_exact(confidence: float) -> None:
    """At each, so many clicks or more, or fewer, are as rare as they may be."""
    clicks = np.arange(1.0, 40.0)
    low, high = few_click_ends(clicks, clicks, np.ones(39), confidence=confidence)
    rare = 0.5 - 0.5 * confidence
    np.testing.assert_allclose(poisson.sf(clicks - 1.0, low), rare, rtol=1e-9)
    np.testing.assert_allclose(poisson.cdf(clicks, high), rare, rtol=1e-9)


@pytest.mark.parametrize("means", [(0.3, 0.2), (2.0, 0.5), (4.0, 2.0), (1.0, 8.0)])
@pytest.mark.parametrize("heavy", [1.5, 3.0, 10.0])
def test_of_unlike_weights_they_hold_the_mean_by_enumeration(
    means: tuple[float, float], heavy: float
) -> None:
    """Of all numbers of light and heavy clicks, by how likely they are."""
    light, own = np.meshgrid(np.arange(ENOUGH), np.arange(ENOUGH), indexing="ij")
    chance = poisson.pmf(light, means[0]) * poisson.pmf(own, means[1])
    total, variance = light + heavy * own, light + heavy**2 * own
    low, high = few_click_ends(total, variance, np.full(total.shape, heavy))
    mean = means[0] + heavy * means[1]
    is_held = (low <= mean) & (mean <= high)
    assert chance[is_held].sum() >= 0.95
    # By their variance alone, as of many clicks, they hold it more seldom.
    half = 1.96 * np.sqrt(variance)
    assert chance[np.abs(total - mean) <= half].sum() < 0.95


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("alone", 1.0),
        ("alone", 5.0),
        ("alone", 8.0),
        ("trusting", 8.0),
        ("trusting", 12.0),
        ("of a taste, twice", 8.0),
        ("of a taste, twice", 12.0),
    ],
)
def test_intervals_of_few_clicks_hold_relevance(kind: str, expected: float) -> None:
    """In 20 groups; each item has one, those without clicks too."""
    sums = sums_of(KINDS[kind], expected, 20, N_ITEMS, np.random.default_rng(1))
    found = held(jackknife_intervals(sums))
    assert found.told == 1.0
    assert found.held > 0.95 - ERROR


@pytest.mark.parametrize("expected", [5.0, 8.0])
def test_as_those_of_many_clicks_they_would_not(
    expected: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Or be none at all, which is more likely where there are few."""
    sums = sums_of(KINDS["alone"], expected, 20, N_ITEMS, np.random.default_rng(1))
    monkeypatch.setattr(module, "FEW", 0)
    found = held(jackknife_intervals(sums))
    assert found.held < 0.95 - 2 * ERROR


def test_many_clicks_have_the_interval_of_groups() -> None:
    """It holds as often as it says there."""
    sums = sums_of(KINDS["alone"], 60.0, 20, N_ITEMS, np.random.default_rng(1))
    found = held(jackknife_intervals(sums))
    assert abs(found.held - 0.95) < ERROR


N_NAMED, N_GROUPS = 1_500, 8
ERROR_NAMED = 0.017
"""Three standard errors of a share of .95 of so many items."""


@pytest.mark.parametrize("expected", [2.0, 8.0])
@pytest.mark.parametrize("name", sorted(ESTIMATORS.keys() - {"naive"}))
def test_so_do_those_of_estimators_by_name(name: str, expected: float) -> None:
    """Whose clicks weigh unlike; what `naive` estimates is not relevance."""
    entry = ESTIMATORS[name]
    log = log_of(
        expected,
        N_GROUPS,
        N_NAMED,
        np.random.default_rng(3),
        has_trust="trust" in entry.corrects,
    )
    points, _ = points_of_items(entry.estimator, *log, tuple(range(N_GROUPS)))
    found = held(points.intervals)
    assert found.told == 1.0
    assert found.held > 0.95 - ERROR_NAMED


def test_by_groups_alone_those_by_name_would_not() -> None:
    """Nor would each item have one."""
    log = log_of(5.0, 20, N_NAMED, np.random.default_rng(3), has_trust=False)
    estimator = ESTIMATORS["policy-aware"].estimator
    points, _ = points_of_items(estimator, *log, tuple(range(20)), few=0)
    found = held(points.intervals)
    assert found.told < 0.999
    assert found.held < 0.95 - ERROR_NAMED
