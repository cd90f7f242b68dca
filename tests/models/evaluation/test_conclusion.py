"""Who is better, and whether sessions suffice to say so, from sums alone."""

import numpy as np
import pytest

from models.evaluation.conclusion import conclude
from models.evaluation.session_coverage import coverage_of
from models.evaluation.sums import PreferenceSums


def sums_of(share: float, n: int, *, n_groups: int = 100) -> PreferenceSums:
    """Three rankers; the first wins this share against each, the others are even."""
    sums = PreferenceSums.empty(3)
    for i in range(n):
        signs = np.zeros((3, 3))
        won = i % 10 < round(10 * share)
        signs[0, 1:] = 1.0 if won else -1.0
        signs[1, 2] = 1.0 if i % 2 else -1.0
        assert sums.add(signs - signs.T, 1.0 - np.eye(3), i // 7 % n_groups)
    return sums


@pytest.mark.parametrize(("share", "best"), [(0.8, 0), (0.5, None), (0.2, None)])
def test_the_best_is_better_than_every_other(share, best):
    """Where the first loses to both, neither of them beats the other."""
    found = conclude(sums_of(share, 2_000), 0.05, planned=2_000, typical_square=1.0)
    assert found.best == best
    assert found.mean[:2] == pytest.approx(2 * share - 1, abs=1e-12)


def test_a_ranker_is_better_by_both_intervals_or_not_at_all():
    """Impressions of one session are enough for those that came, not for others."""
    sums = sums_of(0.8, 2_000, n_groups=1)
    found = conclude(sums, 0.05, planned=2_000, typical_square=1.0)
    assert (found.came[:2, 0] > 0.0).all()
    assert not np.isfinite(found.to_come).any()
    assert found.best is None


@pytest.mark.parametrize(
    ("n_groups", "planned", "without", "lack"),
    [
        (100, 2_000, 0.0, None),
        (100, 2_000, 0.05, "named"),
        (100, 10**12, 0.0, "impressions"),
        (20, 2_000, 0.0, "groups"),
    ],
)
def test_what_sessions_lack_is_said(n_groups, planned, without, lack):
    """One reason, the first that holds."""
    sums = sums_of(0.8, 2_000, n_groups=n_groups)
    found = coverage_of(sums, 0.05, planned=planned, without_session=without)
    assert found.lack == lack
