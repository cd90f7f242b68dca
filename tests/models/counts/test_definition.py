"""What is counted, against numbers that were counted by hand."""

import numpy as np
import pytest

from models.counts.definition import ClosedImpression, count
from models.counts.placements import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    deterministic_matrix,
    tail_shuffle_matrix,
)

ITEMS = ("a", "b", "c", "d")
ONE = 1 << 16
SURE = 1 << 30


def logged(shown, clicked=(), matrix=None, row=b"r" * 16, policy=LOGGED):
    """A list with an exposure row."""
    placement = np.ones((4, 4)) if matrix is None else matrix
    return ClosedImpression(0, shown, {0: clicked}, policy, row, placement)


def only_cell(impressions, **how):
    """The cell of the only group."""
    ((group, cell),) = count(impressions, ITEMS, **how).items()
    assert group == 0
    return cell


def test_a_cell_says_what_happened():
    """One list with two clicks, one of them twice, and one list without."""
    cell = only_cell([logged([2, 0, 1], [3, 1, 1]), logged([0, 1])])
    assert cell.totals.tolist() == [2, 1, 2, 4, 0, 0]
    assert cell.pairs.tolist() == [
        # item, rank, shown, clicked, first, to first, to last, exposure
        [0, 1, 1, 0, 0, 1, 0, 0],
        [0, 2, 1, 0, 0, 0, 1, 0],
        [1, 2, 1, 0, 0, 1, 0, 0],
        [1, 3, 1, 1, 0, 0, 1, 0],
        [2, 1, 1, 1, 1, 1, 1, 0],
    ]
    assert cell.sums[:, :4].tolist() == [[0, 0, 2, 0], [1, 1, 0, ONE], [2, 1, 0, ONE]]
    assert cell.squared_inverses() == [0, ONE, ONE]
    assert cell.click_pairs.tolist() == [[1, 3, 2, 1, 1]]
    assert (cell.row_names, cell.row_counts.tolist()) == ((b"r" * 16,), [2])


def test_clicks_of_no_place_count_nothing():
    """As ranks below the list, and rank 0."""
    cell = only_cell([ClosedImpression(0, [0], {0: [0, 2], 1: [0, 2]})])
    assert cell.totals.tolist() == [1, 1, 0, 0, 0, 0]
    assert len(cell.rewards) == 0


def test_classes_are_counted_apart():
    """One is what clicks are counted of; an impression counts once at each rank."""
    log = [ClosedImpression(0, [3, 1], {0: [1], 1: [2, 2], 3: [1, 2]})] * 2
    cell = only_cell(log, reward=1)
    assert cell.total("clicks") == 2
    assert cell.rewards.tolist() == [[0, 3, 1, 2], [3, 1, 2, 2], [3, 3, 1, 2]]


def test_lists_beyond_the_limits_count_totals_and_pairs_only():
    """No sums, no click pairs, no exposures, no other classes."""
    log = [ClosedImpression(0, [0, 1, 2], {0: [1, 3], 1: [1]}), logged([0], [1])]
    cell = only_cell(log, is_capped=True)
    assert cell.totals.tolist() == [2, 0, 3, 5, 0, 0]
    tables = cell.sums, cell.click_pairs, cell.row_names, cell.rewards
    assert [len(table) for table in tables] == [0, 0, 0, 0]
    assert cell.pairs[:, :4].tolist() == [[0, 1, 2, 2], [1, 2, 1, 0], [2, 3, 1, 1]]
    assert not cell.column("exposure").any()


def test_exposures_follow_from_the_policy():
    """Row by row: certain, uniform over the rest, of the list alone, and none."""
    for policy, is_growing, expected in (
        (DETERMINISTIC, False, {(2, 1): SURE, (0, 2): SURE}),
        (TAIL_SHUFFLE, True, {(2, 1): SURE, (0, 2): SURE}),
        (
            TAIL_SHUFFLE,
            False,
            {(2, 1): SURE, **{(item, 2): round(SURE / 3) for item in (0, 1, 3)}},
        ),
        (UNKNOWN, False, {}),
        (MULTILEAVE, False, {}),
    ):
        one = ClosedImpression(0, [2, 0], {0: [2]}, policy)
        cell = only_cell([one], is_growing=is_growing)
        found = {(p[0], p[1]): p[7] for p in cell.pairs.tolist() if p[7]}
        assert found == expected
        assert cell.total("without_exposure") == (not expected)
        inverses = [3 * ONE] if len(expected) > 2 else [ONE] * bool(expected)
        assert [row[3] for row in cell.sums.tolist() if row[3]] == inverses


def test_rows_beyond_the_limit_are_summed():
    """The first are kept; of others what is summed is round(2^30 p), everywhere."""
    matrix = np.array([[0.3, 1e-11], [0.7, 0.5], [0.0, 0.1], [0.0, 0.0]])
    log = [logged([0]), logged([0, 1], row=b"s" * 16, matrix=matrix)] * 3
    cell = only_cell(log, exposure_rows=1)
    assert (cell.row_names, cell.row_counts.tolist()) == ((b"r" * 16,), [3])
    found = {(p[0], p[1]): p[7] for p in cell.pairs.tolist() if p[7]}
    assert found == {
        (item, rank + 1): 3 * round(p * 2**30)
        for (item, rank), p in np.ndenumerate(matrix)
        if round(p * 2**30)
    }


@pytest.mark.parametrize(
    ("policy", "probability", "raised", "is_clipped"),
    [
        (LOGGED, 0.0, None, False),
        (LOGGED, 2.0**-20, 2.0**-20, False),
        (LOGGED, 2.0**-22, 2.0**-20, True),
        (LOGGED, 0.3, 0.3, False),
        (PLACKETT_LUCE, 0.0, 2.0**-20, True),
    ],
)
def test_small_probabilities_are_raised(policy, probability, raised, is_clipped):
    """And counted; a click where nothing could stand has no inverse."""
    one = logged([0], [1], np.full((4, 1), probability), policy=policy)
    cell = only_cell([one] * 1_000)
    assert cell.total("clipped") == 1_000 * is_clipped
    if raised is None:
        assert len(cell.sums) == 0
    else:
        assert cell.sums[:, 3].tolist() == [1_000 * round(2**16 / raised)]
        assert cell.squared_inverses() == [1_000 * round(2**16 / raised**2)]


def test_tail_shuffle_is_uniform_over_the_rest():
    """Enumerating the last place gives the matrix."""
    first, n_items = np.array([2, 0]), 5
    expected = np.zeros((n_items, 3))
    for last in (1, 3, 4):
        expected += deterministic_matrix(np.array([2, 0, last]), n_items) / 3
    assert np.allclose(tail_shuffle_matrix(first, n_items), expected)
