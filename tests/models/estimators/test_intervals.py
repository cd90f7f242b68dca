"""Where there is no interval, and why; what policies leave of the groups."""

import numpy as np
import pytest

from models.estimators.adaptivity import basis_of
from models.estimators.intervals import FEW_CLICKS, FEW_GROUPS, jackknife_intervals
from models.estimators.intervention_aware import ItemSums, training_values


def sums_of(alpha, clicked):
    """Groups by items."""
    alpha, clicked = np.array(alpha, float), np.array(clicked, float)
    return ItemSums(alpha, alpha, np.zeros_like(alpha), clicked)


def test_one_group_has_no_interval():
    """Nor has an item that one of several groups could see."""
    found = jackknife_intervals(sums_of([[9.0]], [[3.0]]))
    assert found.reasons == (FEW_GROUPS,)
    assert np.isnan(found.low[0])
    found = jackknife_intervals(sums_of([[9.0], [0.0]], [[3.0], [0.0]]))
    assert found.reasons == (FEW_GROUPS,)


def test_an_item_that_one_group_clicked_has_no_interval():
    """All others are alike: what differs is one draw. Few clicks may be anybody's."""
    found = jackknife_intervals(sums_of([[90.0]] * 3, [[25.0], [0.0], [0.0]]))
    assert found.reasons == (FEW_CLICKS,)
    assert np.isnan(found.high[0])
    found = jackknife_intervals(sums_of([[90.0]] * 3, [[24.0], [0.0], [0.0]]))
    assert found.reasons == ("",)
    assert 0.0 <= found.low[0] < 24 / 270 < found.high[0]


def test_no_click_has_an_interval_from_none_on():
    """Up to what would give one in all but a fortieth of such logs; less by trust."""
    none = np.zeros((4, 1))
    sums = ItemSums(none + 10.0, none + 5.0, none + 0.25, none)
    found = jackknife_intervals(sums)
    assert found.reasons == ("",)
    assert found.low[0] == pytest.approx(-1.0 / 20.0)
    assert found.high[0] == pytest.approx((-np.log(0.025) - 1.0) / 20.0)


def test_groups_that_differ_widen_the_interval_of_few_clicks():
    """Of as many clicks, those that groups share vary less than those of one."""
    even, uneven = (
        jackknife_intervals(sums_of([[30.0]] * 4, [[x] for x in clicks]))
        for clicks in ([3.0, 3.0, 3.0, 3.0], [12.0, 0.0, 0.0, 0.0])
    )
    assert 0.0 <= uneven.low[0] < 0.5 * even.low[0]
    assert uneven.high[0] > 2.0 * even.high[0]


def test_groups_count_for_the_items_that_they_could_show():
    """Beside items of more groups an interval is as it is alone."""
    alpha, clicked = [[50.0], [120.0], [20.0], [0.0]], [[14.0], [6.0], [5.0], [0.0]]
    alone = jackknife_intervals(sums_of(alpha[:3], clicked[:3]))
    wide = [np.hstack((np.array(x), np.full((4, 1), 7.0))) for x in (alpha, clicked)]
    beside = jackknife_intervals(sums_of(*wide))
    assert (beside.low[0], beside.high[0]) == (alone.low[0], alone.high[0])


def test_an_item_that_was_never_possible_has_neither_value_nor_interval():
    """And does no harm to the others."""
    found = jackknife_intervals(sums_of([[9.0, 0.0]] * 3, [[3.0, 0.0], [2, 0], [1, 0]]))
    assert found.reasons == ("", FEW_GROUPS)
    assert found.low[0] < 2 / 9 < found.high[0]


def test_nothing_is_trained_on_no_impressions():
    """A least average of none is none."""
    with pytest.raises(ValueError, match="1 or more; got 0"):
        training_values(sums_of([[9.0]], [[3.0]]), 0)


def test_policies_that_were_fixed_beforehand_leave_all_groups():
    """No name that a model bears, and no version."""
    basis = basis_of(["", "v2"], ["search"], {}, 4)
    assert basis == ((0, 1, 2, 3), True, "")


def test_one_group_is_no_reason_to_suspect_a_policy():
    """There is no interval of it, but nothing was chosen from clicks."""
    assert basis_of(["", "v2"], ["search"], {}, 1) == ((0,), True, "")


@pytest.mark.parametrize("name", ["search", "other@1.20", "two\nlines@1.20"])
def test_a_policy_of_unknown_clicks_is_warned_of(name):
    """Its values are points."""
    basis = basis_of(["", name], ["search"], {"third": frozenset({0})}, 4)
    assert basis.groups == (0, 1, 2, 3)
    assert not basis.has_intervals
    assert f"{name!r} was chosen from clicks, maybe from these" in basis.warning


@pytest.mark.parametrize("groups", [{4}, {0, 4}, {-1}, set()])
def test_groups_that_statistics_do_not_have_tell_nothing(groups):
    """They were counted otherwise, so all that is counted here may be among them."""
    basis = basis_of(["m@1.2"], [], {"m@1.2": frozenset(groups)}, 4)
    assert not basis.has_intervals
    assert "maybe from these" in basis.warning


def test_lists_without_a_name_are_called_that():
    """An empty name would be a hole in the sentence."""
    basis = basis_of([""], [""], {}, 4)
    assert basis.warning.startswith("what has no name was chosen from clicks")


def test_groups_that_no_policy_was_fitted_on_are_left():
    """Of several policies, those that none of them saw."""
    fitted_on = {"m@1.2": frozenset({0, 1}), "m@2.3": frozenset({1, 2})}
    basis = basis_of(fitted_on, [], fitted_on, 6)
    assert basis.groups == (3, 4, 5)
    assert basis.has_intervals
    assert "3 groups: values are those of the other 3" in basis.warning
    basis = basis_of(fitted_on, [], fitted_on, 4)
    assert not basis.has_intervals
    assert "all groups but 1" in basis.warning


def test_what_surely_came_from_clicks_is_known_by_no_name():
    """As a ranker of a notebook, which has any."""
    fitted_on = {"new": frozenset({0, 1})}
    assert basis_of(["new", "v2"], [], fitted_on, 6).groups == (0, 1, 2, 3, 4, 5)
    basis = basis_of(["new", "v2"], [], fitted_on, 6, surely=["new"])
    assert basis.groups == (2, 3, 4, 5)
    assert basis.has_intervals
    assert "'new' was chosen from clicks of 2 groups" in basis.warning
