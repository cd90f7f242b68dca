"""An export holds what the reader of single cells finds, row by row and bit by bit."""

from collections import Counter, defaultdict

import pyarrow.parquet as pq
import pytest

from models.counts.scope_record import CONVERTED
from models.estimators.bias_curve import position_curve
from rankstream.operations.answers.exports.export import export
from rankstream.operations.answers.exports.exported_columns import relevance_columns
from rankstream.operations.answers.relevance import relevance_of
from rankstream.operations.answers.sources import LoggingPolicies
from rankstream.wire.events import LOGGED, POLICIES
from streams.statistics import columns as statistics_columns
from streams.statistics.reader import Statistics
from streams.statistics.value_spool import ValueSpool
from tests.streams.statistics.test_columns import drawn_records


def cell_by_cell(statistics):
    """Rows of the files that have sums of cells, in order."""
    rows = defaultdict(list)
    for name in statistics.scopes():
        for group, cell in statistics.cells(name).items():
            where = name.query, name.candidate_set.hex(), *name[2:], group
            for suffix, row in _rows_of(statistics, name, group, cell):
                rows[suffix].append((*where, *row))
    return rows


def _rows_of(statistics, name, group, cell):
    scope = statistics.scope(name)
    yield ".cells", (*cell.totals.tolist(), scope.flags, scope.last_ms)
    assert not scope.flags & CONVERTED
    expected = statistics.exposures(*name[:3], cell, name.era)
    for item, *counts in cell.pairs.tolist():
        place = cell.items[item], counts[0]
        yield "", (cell.items[item], *counts, expected.pop(place, 0.0))
    for place, number in sorted(expected.items()):
        yield "", (*place, 0, 0, 0, 0, 0, 0, number)
    for sums, squared in zip(cell.sums.tolist(), cell.squared_inverses(), strict=True):
        item, plus, minus, inverse, *_ = sums
        yield (
            ".items",
            (cell.items[item], plus, minus, inverse, squared / 65_536, str(squared)),
        )
    for one, rank, other, below, count in cell.click_pairs.tolist():
        yield ".click-pairs", (cell.items[one], rank, cell.items[other], below, count)
    for row, count in zip(cell.row_names, cell.row_counts.tolist(), strict=True):
        stored = statistics.row(name, row)
        yield ".rows", (row.hex(), count, POLICIES[stored.policy], stored.n_ranks)
    items, lists = statistics.items(*name[:2], name.era), scope.lists
    for entry, owner in enumerate(lists.owners.tolist()):
        if lists.groups[entry] == group:
            of_entry = lists.mask_owners == entry
            masks = dict(
                zip(lists.masks[of_entry], lists.mask_counts[of_entry], strict=True)
            )
            left = int(lists.shown[entry]) - int(sum(masks.values()))
            row = int(lists.rows[owner])
            places = lists.items[lists.starts[owner] : lists.starts[owner + 1]]
            for mask, count in [(0, left)] * bool(left) + [*masks.items()]:
                yield (
                    ".lists",
                    (
                        scope.rows[row].hex() if row >= 0 else "",
                        POLICIES[LOGGED if row >= 0 else -1 - row],
                        [items[place] for place in places],
                        int(mask),
                        int(count),
                    ),
                )
    classes = statistics.counted[0].classes
    for which, item, rank, count in cell.rewards.tolist():
        yield ".rewards", (classes[which], cell.items[item], rank, count)


@pytest.mark.parametrize("seed", range(4))
def test_an_export_is_what_cells_hold(seed, tmp_path):
    """Every file that has sums, with the order of its rows."""
    statistics = Statistics(drawn_records(seed))
    expected = cell_by_cell(statistics)
    export(statistics, tmp_path / "out.parquet")
    for suffix in ("", ".cells", ".items", ".click-pairs", ".lists", ".rewards"):
        table = pq.read_table(tmp_path / f"out{suffix}.parquet")
        found = [tuple(row.values()) for row in table.to_pylist()]
        assert found == expected[suffix], suffix
    table = pq.read_table(tmp_path / "out.rows.parquet").drop(["material", "items"])
    assert [tuple(row.values()) for row in table.to_pylist()] == expected[".rows"]


@pytest.mark.parametrize(("seed", "at_once"), [(0, 1 << 19), (1, 1), (2, 40)])
def test_each_query_is_read_once_and_its_relevance_is_that_of_it_alone(
    seed, at_once, tmp_path, monkeypatch
):
    """Bit for bit, wherever chunks of columns end."""
    monkeypatch.setattr(statistics_columns, "PLACES_AT_ONCE", at_once)
    statistics, curve = Statistics(drawn_records(seed)), position_curve([1.0, 0.5, 0.2])
    queries, groups = statistics.queries(), statistics.counted[0].groups
    assert len(queries) > 2
    expected: list[tuple[object, ...]] = []
    for query in queries:
        found = relevance_of(
            statistics.columns([query]), curve, groups, LoggingPolicies()
        )
        columns = relevance_columns(query, found)
        expected += zip(*columns.values(), strict=True)
    asked, places = Counter[str](), ValueSpool.places

    def noted(spool, query):
        asked[query] += 1
        return places(spool, query)

    monkeypatch.setattr(ValueSpool, "places", noted)
    statistics = Statistics(drawn_records(seed))
    written = export(statistics, tmp_path / "out.parquet", curve)
    assert asked == dict.fromkeys(queries, 1)
    assert written.n_impressions == sum(shown for shown, _ in queries.values())
    table = pq.read_table(tmp_path / "out.relevance.parquet").to_pylist()
    assert [tuple(row.values()) for row in table] == expected
