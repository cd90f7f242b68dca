"""Rows of what lists showed: what is refused, and what is left of them."""

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.click_log import check_places, log_sums, of_groups
from models.estimators.intervention_aware import item_sums
from tests.models.estimators.logs import lists_of, log_of
from tests.policies_in_memory import logged_placements, without_unknown

NONE = np.nan
CURVE = position_curve([1.0, 0.5])
ROWS = [
    (0, 0, 0, 1, 6, 3, 5.0),
    (0, 1, 1, 2, 4, 1, 4.5),
    (1, 0, 0, 2, 2, 2, 2.5),
    (1, 0, 0, 3, 1, 1, 1.0),
]
LISTS = lists_of([[10, 10], [8, 8]], [[5, 0], [0, 0]])


@pytest.mark.parametrize(
    ("row", "rule"),
    [
        ((2, 0, 0, 1, 1, 0, 1.0), r"groups must lie in 0..1; got 2 in row 4"),
        ((0, 2, 0, 1, 1, 0, 1.0), r"policies must lie in 0..1; got 2"),
        ((0, 0, -1, 1, 1, 0, 1.0), r"items must lie in 0..1; got -1"),
        ((0, 0, 0, 0, 1, 0, 1.0), "ranks must be 1 or more; got 0"),
        ((0, 0, 0, 1, 1, 2, 1.0), r"clicked must lie in 0..shown; got 2"),
        ((0, 0, 0, 1, 1, -1, 1.0), r"clicked must lie in 0..shown; got -1"),
        ((0, 0, 0, 1, 1, 0, -1.0), "at least 0, or NaN if unknown; got -1"),
        ((0, 0, 0, 1, 1, 0, np.inf), "at least 0, or NaN if unknown; got inf"),
        ((1, 0, 1, 1, 1, 0, 1.0), "among their candidates; got 0 in row 4"),
    ],
)
def test_rows_that_cannot_be_are_refused(row, rule):
    """With the number of the row."""
    with pytest.raises(ValueError, match=rule):
        log_sums(log_of([*ROWS, row]), LISTS, CURVE)


def test_impressions_must_have_their_three_axes_and_be_numbers():
    """And columns be of the same rows."""
    with pytest.raises(ValueError, match="group, policy and item; got 2 axes"):
        check_places(log_of(ROWS), LISTS[0])
    with pytest.raises(ValueError, match="at least 0"):
        check_places(log_of(ROWS), -LISTS)
    with pytest.raises(ValueError, match="of the same rows"):
        check_places(log_of(ROWS)._replace(ranks=np.ones(1, np.int64)), LISTS)


def test_training_sees_the_same_rows():
    """Policies together: sums are those of training."""
    log = log_of(ROWS)
    ours = log_sums(log, LISTS, CURVE)
    theirs = item_sums(log, LISTS, CURVE)
    for one, other in (
        (ours.impressions, theirs.impressions),
        (ours.alpha, theirs.alpha),
        (ours.beta, theirs.beta),
        (ours.clicked, theirs.clicked),
    ):
        assert (one.sum(axis=1) == other).all()


def test_no_rows_are_sums_of_nothing():
    """Lists that showed nothing are lists too."""
    sums = log_sums(log_of([]), LISTS, CURVE)
    assert sums.impressions.sum() == 41
    assert sums.alpha.dtype == float
    assert not sums.alpha.any()


def test_some_groups_are_taken_under_their_numbers():
    """Impressions of the others are 0, and their rows gone."""
    log, lists = of_groups(log_of(ROWS), LISTS, np.array([False, True]))
    assert log.groups.tolist() == [1, 1]
    assert lists.tolist() == [[[0, 0], [0, 0]], [[5, 0], [0, 0]]]


def test_an_unknown_list_makes_all_of_its_group_and_policy_unknown():
    """Items that were not shown have no row that could say so."""
    log = log_of([*ROWS, (0, 0, 0, 2, 1, 0, NONE)])
    sums = log_sums(log, LISTS, CURVE)
    assert np.isnan(sums.alpha[0, 0]).all()
    assert np.isfinite(sums.alpha[0, 1]).all()
    assert np.isfinite(sums.alpha[1]).all()
    assert np.isfinite(sums.shown_alpha).all()
    known, lists, left_out = without_unknown(log, LISTS)
    assert len(known.groups) == 3
    assert lists[0].tolist() == [[0, 0], [8, 8]]
    assert left_out.tolist() == [10, 10]
    assert np.isfinite(log_sums(known, lists, CURVE).alpha).all()


def test_placements_of_what_logged_are_averages():
    """Of item 0: 5 / 23 at rank 1; unknown where a list is, 0 in no list."""
    matrix = logged_placements(log_of(ROWS), LISTS, 2)
    expected = [[5 / 23, 2.5 / 23], [0.0, 4.5 / 18]]
    np.testing.assert_allclose(matrix, expected, rtol=1e-12)
    log = log_of([*ROWS, (1, 0, 0, 2, 1, 0, NONE)])
    assert np.isnan(logged_placements(log, LISTS, 2)).tolist() == [
        [True, True],
        [False, False],
    ]
