"""A log with groups added up is that log, whichever of them is left out."""

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.click_log import ClickLog, log_sums, of_groups
from streams.estimation.left_out_groups import LeftOutGroups

CURVE = position_curve([1.0, 0.5])


@pytest.mark.parametrize("group", [None, 0, 1, 2])
def test_sums_are_those_of_the_other_groups(group):
    """Placements that one group alone does not know are known without it."""
    rng = np.random.default_rng(4)
    groups, policies, items, rows = np.indices((3, 2, 3, 2)).reshape(4, -1)
    shown = rng.integers(0, 9, len(groups))
    expected = rng.random(len(groups)) * 9.0
    expected[(groups == 1) & (policies == 0)] = np.nan
    log = ClickLog(groups, policies, items, rows + 1, shown, shown // 2, expected)
    impressions = np.full((3, 2, 3), 20.0)
    ours = log_sums(*LeftOutGroups(log, impressions).without(group), CURVE)
    rest = of_groups(log, impressions, np.arange(3) != group)
    theirs = log_sums(*rest, CURVE)
    for own, other in zip(ours.by_policy(), theirs.by_policy(), strict=True):
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-12)
    assert np.isnan(ours.alpha).any() == (group != 1)
