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
    _, *ours, expected = read_columns(records)
    _, *theirs, of_cells = read_cells(records)
    assert ours == theirs
    assert abs(expected - of_cells) < 1e-9 * of_cells


def test_scopes_are_as_many_as_are_asked_for_and_have_all_groups() -> None:
    """Each of a query of its own."""
    statistics = Statistics(records_of(mixed_templates(1), 7))
    assert len(statistics) == 7
    assert len(statistics.queries()) == 7
    assert len(statistics.names()) == 7 * GROUPS
