"""`rankstream statistics` on what the in-process runtime left behind."""

import argparse

import msgspec
import numpy as np
import pyarrow.parquet as pq
import pytest

from rankstream.commands import statistics
from rankstream.sections import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    UNKNOWN,
    ClickMark,
    Impression,
    Interaction,
)
from streams.fold.closed_impressions import closed_of
from streams.fold.statistics_fold import StatisticsFold

_encode = msgspec.msgpack.Encoder().encode


def closed(query, shown, ranks, *, unit, policy=DETERMINISTIC):
    """A closed impression of three candidates."""
    impression = Impression(
        b"i" * 16, "i", query, 5, "m", 1, "m", 0, policy, _encode(["a", "b", "c"]),
        np.array(shown, "<u2").tobytes(), False, b"", b"", b"", 0, unit, b"",
    )  # fmt: skip
    return Interaction(impression, [ClickMark(rank, 6, "click") for rank in ranks])


@pytest.fixture
def records():
    """Statistics of two queries."""
    fold = StatisticsFold(LimitSettings(), StatisticsSettings(), keep_ms=1, partition=0)
    for unit in range(30):
        fold.take(
            closed_of(
                [closed("red shoes", (2, 0), [1, 2] if unit < 6 else [], unit=unit)]
            )
        )
    fold.take(closed_of([closed("red shoes", (2, 1), [], unit=1, policy=UNKNOWN)]))
    fold.take(closed_of([closed("hats", (0,), [1], unit=0)]))
    return [(change.key, change.value) for change in fold.changes()]


@pytest.fixture
def run(records, monkeypatch, capsys):
    """The command on these records; returns status and output."""
    monkeypatch.setattr(statistics, "_records", lambda _: iter(records))
    monkeypatch.setenv("COLUMNS", "120")

    def command(*words):
        parser = argparse.ArgumentParser()
        statistics.add_arguments(parser)
        status = statistics.run(parser.parse_args(words))
        return status, capsys.readouterr()

    return command


def test_show_has_every_item_and_rank_with_groups_merged(run):
    """Counts, click rate and expected exposure of each place."""
    status, printed = run("show", " Red  SHOES")
    assert status == 0
    rows = [line.split("│")[1:-1] for line in printed.out.splitlines() if "│" in line]
    cells = [[cell.strip() for cell in row] for row in rows]
    assert ["c", "1", "31", "6", "0.194", "30.00"] in cells
    assert ["a", "2", "30", "6", "0.200", "30.00"] in cells
    assert ["b", "2", "1", "0", "0.000", "-"] in cells


def test_show_of_an_unknown_query_says_so(run):
    """A query that was never shown is an error, not an empty table."""
    status, printed = run("show", "nothing")
    assert status == 1
    assert printed.err == (
        "no closed list of the query 'nothing'; lists count when their click window "
        "has passed (`statistics list`)\n"
    )


def test_list_has_the_most_shown_first(run):
    """Queries with their counts, in order."""
    status, printed = run("list")
    assert status == 0
    assert printed.out.index("red shoes") < printed.out.index("hats")
    assert "31" in printed.out


def test_export_has_every_counter(run, tmp_path):
    """The files add up to what was taken."""
    status, _ = run("export", str(tmp_path / "out.parquet"))
    assert status == 0
    pairs = pq.read_table(tmp_path / "out.parquet")
    assert sum(pairs["shown"].to_pylist()) == 2 * 31 + 1
    assert sum(pairs["clicked"].to_pylist()) == 13
    cells = pq.read_table(tmp_path / "out.cells.parquet")
    assert sum(cells["impressions"].to_pylist()) == 32
    assert sum(cells["without_exposure"].to_pylist()) == 1
    together = pq.read_table(tmp_path / "out.click-pairs.parquet")
    assert sum(together["clicked_together"].to_pylist()) == 6
    rows = pq.read_table(tmp_path / "out.rows.parquet")
    assert sum(rows["impressions"].to_pylist()) == 31
    assert set(rows["policy"].to_pylist()) == {"deterministic"}
    items = pq.read_table(tmp_path / "out.items.parquet")
    assert sum(items["inverse_fixed_16"].to_pylist()) == 13 << 16


def test_cells_can_be_read_as_summaries(records):
    """Every cell comes decoded, sorted by name."""
    cells = list(statistics.summaries_of(records))
    names = [name for name, _ in cells]
    assert names == sorted(names)
    assert sum(cell.total("impressions") for _, cell in cells) == 32


def test_an_export_that_cannot_be_written_says_so_and_leaves_nothing(run, tmp_path):
    """With the file's own name, and no part of it."""
    with pytest.raises(RuntimeError, match=r"out\.parquet must be writable; No such"):
        run("export", str(tmp_path / "nowhere" / "out.parquet"))
    (tmp_path / "out.parquet").mkdir()
    with pytest.raises(RuntimeError, match=r"out\.parquet must be writable; Is a dir"):
        run("export", str(tmp_path / "out.parquet"))
    assert [each.name for each in tmp_path.iterdir()] == ["out.parquet"]
