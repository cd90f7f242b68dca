"""Both readers of the benchmark find the same, and it reads as much as it says."""

from rankstream.lab.benchmarks.statistics import (
    GROUPS,
    mixed_templates,
    read_cells,
    read_columns,
    records_of,
)
from streams.statistics.reader import Statistics


def test_columns_and_cells_find_the_same() -> None:
    """Rows, clicks and expected exposure, of all three policies."""
    records = records_of(mixed_templates(1), 6)
    ours, theirs = read_columns(records), read_cells(records)
    assert ours[:2] == theirs[:2]
    assert abs(ours.expected - theirs.expected) < 1e-9 * theirs.expected
    assert ours.is_as(theirs)
    assert not ours._replace(n_clicked=0).is_as(theirs)


def test_scopes_are_as_many_as_are_asked_for_and_have_all_groups() -> None:
    """Each of a query of its own."""
    statistics = Statistics(records_of(mixed_templates(1), 7))
    assert len(statistics) == 7
    assert len(statistics.queries()) == 7
    assert len(statistics.names()) == 7 * GROUPS
