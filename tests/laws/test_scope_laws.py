"""Laws of scopes: however impressions are kept, they count as they are defined to."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from models.counts.cells import CellSummary, merge
from models.counts.definition import ClosedImpression, count
from models.counts.scope_record import ScopeRecord, decode_scope
from models.counts.scope_summaries import (
    groups_of_scope,
    rows_of_lists,
    summaries_by_group,
    summary_of_scope,
)
from tests.models.counts.closed_impressions import ITEMS, logs, matrix_of
from tests.models.counts.scope_values import ScopeValue

limits = st.fixed_dictionaries(
    {
        "reward": st.integers(0, 2),
        "exposure_rows": st.sampled_from((0, 1, 2, 16)),
        "is_growing": st.booleans(),
        "is_capped": st.sampled_from((False, False, False, True)),
    }
)

forms = st.fixed_dictionaries(
    {
        "most_lists": st.sampled_from((64, 64, 2, 0)),
        "most_masks": st.sampled_from((64, 64, 1, 0)),
        "pieces": st.sets(st.integers(0, 3)),
        "piece_lists": st.integers(0, 2),
    }
)


def record_of(log: list[ClosedImpression], **how: Any) -> ScopeRecord:
    """As it is stored and read back."""
    value = ScopeValue(ITEMS, **how).take(log)
    return decode_scope(value.head(), value.piece_values(), value.list_values())


def matrices_of(scope: ScopeRecord) -> dict[int, Any]:
    """Of the rows that lists refer to."""
    return {row: matrix_of(scope.rows[row][1]) for row in rows_of_lists(scope)}


def bytes_of(cells: dict[int, CellSummary]) -> dict[int, bytes]:
    """Equal where summaries are."""
    return {group: cell.encode() for group, cell in cells.items()}


@given(logs, limits, forms)
def test_both_forms_add_up_to_the_definition(log, limits, forms):
    """Lists, masks, general cells and pieces, whichever an impression went to."""
    scope = record_of(log, **limits, **forms)
    is_growing = limits["is_growing"]
    found = summaries_by_group(scope, ITEMS, matrices_of(scope), is_growing=is_growing)
    defined = count(log, ITEMS, **limits)
    assert bytes_of(found) == bytes_of(defined)
    assert groups_of_scope(scope) == sorted(defined)


@given(logs, limits, forms)
def test_groups_put_together_first_are_groups_merged(log, limits, forms):
    """The short ways to a scope's sums give the sums of its cells."""
    scope = record_of(log, **limits, **forms)
    merged = merge(count(log, ITEMS, **limits).values())
    is_growing = limits["is_growing"]
    pooled = summary_of_scope(scope, ITEMS, matrices_of(scope), is_growing=is_growing)
    assert pooled.encode() == merged.encode()


@given(logs, limits)
def test_kept_rows_do_not_depend_on_the_form(log, limits):
    """The first rows of a scope are kept, and no others."""
    one = record_of(log, **limits)
    other = record_of(log, **limits, most_lists=0)
    assert one.rows == other.rows
    assert len(one.rows) <= limits["exposure_rows"]
