"""DataFrames of any library are read as files are, and what cannot be is refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pytest

import rankstream
from rankstream.notebook.frames import Frame
from rankstream.notebook.progress import NotedLines
from tests.clicked_tables import N_RANKS, shop

LIBRARIES: dict[str, Callable[[pa.Table], Any]] = {
    "pyarrow": lambda table: table,
    "batches": lambda table: table.to_reader(1_000),
    "pandas": lambda table: table.to_pandas(),
    "categories": lambda table: table.to_pandas().astype(
        {"query": "category", "item": "category"}
    ),
    "polars": pl.DataFrame,
}
SMALL = shop(n_lists=60, seed=2)
N_LISTS, N_CLICKS = 60, int(sum(SMALL.clicks["clicked"].to_pylist()))


def read(source: Any, **named: Any) -> rankstream.Log:
    """A log, without saying how far it is."""
    return rankstream.read(source, progress=False, **named)


def changed(name: str, values: list[Any] | pa.Array) -> pa.Table:
    """The small table with another column of a name."""
    table = SMALL.clicks
    return table.set_column(table.column_names.index(name), name, pa.array(values))


def applied(log: rankstream.Log) -> tuple[int, int]:
    """Lists and clicks that were applied."""
    found = log.outcomes
    return found["impressions applied"], found["clicks applied"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_each_library_counts_what_a_file_does(library: str, tmp_path: Path) -> None:
    """To the byte: all are read by the same reader of tables."""
    file = tmp_path / "clicks.csv"
    times = pa.array([t.isoformat() for t in SMALL.clicks["at"].to_pylist()])
    pa.csv.write_csv(changed("at", times), file)
    of_file = read(file).counted.recorded.statistics

    of_frame = read(LIBRARIES[library](SMALL.clicks))

    assert of_frame.counted.recorded.statistics == of_file
    assert applied(of_frame) == (N_LISTS, N_CLICKS)


def test_clicks_may_lie_in_a_frame_of_their_own() -> None:
    """They find their lists by its id; each column has one of both names."""
    table = SMALL.clicks
    clicked = table.filter(table["clicked"])
    lists = table.drop_columns(["clicked"])
    clicks = clicked.select(["impression", "at", "item"]).rename_columns(
        {"item": "sku"}
    )
    log = read(lists, clicks=clicks, columns={"clicks.item": "sku"})
    assert applied(log) == (N_LISTS, N_CLICKS)
    assert log.counted.queries == read(table).counted.queries


def test_a_row_may_be_a_list_with_its_items_in_a_list_column() -> None:
    """As Arrow has them; clicks then come in a frame of their own."""
    table = SMALL.clicks
    of_lists = table.group_by(["impression", "at", "query"], use_threads=False)
    lists = of_lists.aggregate([("item", "list")]).rename_columns(
        {"item_list": "items"}
    )
    clicks = table.filter(table["clicked"]).select(["impression", "at", "item"])
    log = read(lists, clicks=clicks)
    assert applied(log) == (N_LISTS, N_CLICKS)
    assert log.counted.queries == read(table).counted.queries


def test_clicks_without_lists_are_told() -> None:
    """Some are orphans, which are in no sum; all of them are refused."""
    table = SMALL.clicks
    lists = table.drop_columns(["clicked"])
    clicks = table.filter(table["clicked"]).select(["impression", "at", "item"])
    fewer = lists.slice(0, N_RANKS * 30)
    log = read(fewer, clicks=clicks)
    n_orphans = log.outcomes["orphan"] + log.outcomes["dead letter"]
    assert log.outcomes["impressions applied"] == 30
    assert log.outcomes["clicks applied"] + n_orphans == N_CLICKS
    assert n_orphans > 0
    assert f"{n_orphans:,} " in repr(log)

    strangers = pa.array([f"other {n}" for n in range(len(clicks))])
    with pytest.raises(ValueError, match="clicks must name lists of the same log"):
        read(lists, clicks=clicks.set_column(0, "impression", strangers))


def test_a_missing_column_names_the_nearest() -> None:
    """And the argument that says which one it is."""
    table = SMALL.clicks.rename_columns({"impression": "impresion_id"})
    with pytest.raises(ValueError, match="a column impression must be there") as told:
        read(table)
    assert "did you mean 'impresion_id'? name it with columns={\"impression\": " in str(
        told.value
    )
    assert "at the DataFrame of lists" in str(told.value)
    assert applied(read(table, columns={"impression": "impresion_id"}))[0] == N_LISTS


def test_a_role_that_is_none_names_the_nearest() -> None:
    """Before anything is read."""
    with pytest.raises(ValueError, match="did you mean impression"):
        read(SMALL.clicks, columns={"impresion": "impression"})


def test_fractions_are_no_ids() -> None:
    """What pandas makes of whole numbers where one is missing."""
    numbers = [float(int(name.split()[1])) for name in SMALL.clicks["item"].to_pylist()]
    with pytest.raises(ValueError, match="ids must be text or whole numbers") as told:
        read(changed("item", numbers))
    assert "'item' of the DataFrame of lists" in str(told.value)
    assert 'astype("int64")' in str(told.value)
    whole = read(changed("item", [int(number) for number in numbers]))
    assert applied(whole) == (N_LISTS, N_CLICKS)


def test_times_without_a_zone_are_utc_and_told() -> None:
    """As text they are refused, as nobody says whose noon it is."""
    times = SMALL.clicks["at"].cast(pa.timestamp("us"))
    table = SMALL.clicks.set_column(1, "at", times)
    log = read(table)
    assert applied(log) == (N_LISTS, N_CLICKS)
    assert log.remarks[0] == "times of at have no zone: they are taken as UTC"
    same = read(SMALL.clicks).counted.recorded.statistics
    assert log.counted.recorded.statistics == same

    words = [time.isoformat() for time in times.to_pylist()]
    refused = read(changed("at", words))
    assert applied(refused) == (0, 0)
    assert refused.outcomes["dead letter"] == N_LISTS
    (letter,) = refused.dead_letters()
    assert (letter.code, letter.events) == ("not-adapted", N_LISTS)
    assert "must have a zone" in letter.first
    assert "dead letter" in repr(refused)


def test_times_in_another_unit_are_refused_with_the_argument() -> None:
    """Seconds are no milliseconds."""
    seconds = [int(time.timestamp()) for time in SMALL.clicks["at"].to_pylist()]
    table = changed("at", seconds)
    with pytest.raises(ValueError, match="times must be in milliseconds") as told:
        read(table)
    assert 'give options={"time_unit": "s"}' in str(told.value)
    assert applied(read(table, options={"time_unit": "s"})) == (N_LISTS, N_CLICKS)


def test_a_column_of_several_kinds_is_refused() -> None:
    """Pandas has such columns, and Arrow none."""
    frame = SMALL.clicks.to_pandas()
    frame["item"] = frame["item"].astype(object)
    frame.loc[0, "item"] = 7
    with pytest.raises(ValueError, match="each hold one kind of values"):
        read(frame)


@pytest.mark.parametrize("source", [7, {"item": [1]}, [SMALL.clicks], [], None])
def test_what_is_no_log_is_refused(source: Any) -> None:
    """With what one may be."""
    with pytest.raises(ValueError, match="a log must be a DataFrame"):
        read(source)


def test_a_file_that_is_not_there_is_refused() -> None:
    """With its path."""
    with pytest.raises(ValueError, match=r"a file must be there.*nowhere\.csv"):
        read("nowhere.csv")


def test_an_empty_frame_is_a_log_of_nothing() -> None:
    """It says so, and each answer too."""
    log = read(SMALL.clicks.slice(0, 0))
    assert set(log.outcomes.values()) == {0}
    assert not len(log.statistics())
    with pytest.raises(ValueError, match="a query must have a list"):
        log.relevance("query 1")


def test_a_frame_of_events_is_one() -> None:
    """With the columns that events have."""
    events = pa.table(
        {
            "impression_id": ["a", "b", "a"],
            "query_id": ["shoes", "shoes", None],
            "at_ms": [1_750_000_000_000, 1_750_000_001_000, 1_750_000_002_000],
            "shown": [["x", "y"], ["y", "x"], None],
            "position": [None, None, 1],
            "kind": ["query", "query", "click"],
        }
    )
    events = events.set_column(1, "query_id", pa.array(["shoes"] * 3))
    assert applied(read(events)) == (2, 1)


def test_a_long_frame_never_lies_in_memory_twice(tmp_path: Path) -> None:
    """It goes to the disk batch by batch: Arrow holds about one at a time."""
    n_batches, held = 60, []
    before = pa.total_allocated_bytes()
    schema = pa.schema(
        [("impression", pa.string()), ("item", pa.string()), ("at", pa.int64())]
    )

    def batches() -> Any:
        for number in range(n_batches):
            held.append(pa.total_allocated_bytes() - before)
            names = pa.array([f"{number} {row // 4}" for row in range(1_000)])
            items = pa.array([f"{row % 4}" + 4_000 * "x" for row in range(1_000)])
            times = pa.array(np.full(1_000, 1_750_000_000_000 + number))
            yield pa.record_batch([names, items, times], schema=schema)

    reader = pa.RecordBatchReader.from_batches(schema, batches())
    with NotedLines(is_shown=False)("copying", total=None) as line:
        Frame(reader, "it").write(tmp_path / "it.parquet", line)
    a_batch = 4_000 * 1_000
    assert len(held) == n_batches
    assert max(held) < 10 * a_batch < n_batches * a_batch / 5


def test_an_index_without_a_name_is_no_column() -> None:
    """Filtered products of pandas bring theirs along."""
    products = SMALL.products.to_pandas()
    shuffled = products.sample(frac=1.0, random_state=1)
    log = read(SMALL.clicks.to_pandas().sample(frac=1.0), features=shuffled)
    names = [each for each in log.counted.names.values() if each]
    assert names == [["price", "stars"]]


def test_what_nothing_is_read_from_is_said() -> None:
    """A misspelt role that may be missing, and one that is not there at all."""
    table = SMALL.clicks.rename_columns({"clicked": "click", "position": "pposition"})
    said = repr(read(table))
    assert 'if it is clicked, say columns={"clicked": "click"}' in said
    assert 'if it is position, say columns={"position": "pposition"}' in said
    assert "no column says what was clicked: columns=" in said
    assert "no column says positions: rows of a list are taken in their order" in said
    whole = repr(read(SMALL.clicks))
    assert "no column says" not in whole
    assert "is not read" not in whole

    clicked = SMALL.clicks["clicked"].to_pylist()
    gaps = changed("clicked", [*clicked[:-7], *[None] * 7])
    assert "7 cells of the column that says what was clicked are empty" in repr(
        read(gaps)
    )
    lists = SMALL.clicks.drop_columns(["clicked"])
    clicks = SMALL.clicks.filter(SMALL.clicks["clicked"]).select(
        ["impression", "at", "item"]
    )
    assert "no column says" not in repr(read(lists, clicks=clicks))


def test_where_no_list_was_counted_the_first_reason_is_said() -> None:
    """With what to do about it, whole."""
    twice = pa.concat_tables([SMALL.clicks, SMALL.clicks])
    log = read(twice)
    assert "no list was counted; the first was refused: ordinal: positions" in repr(log)
    assert "df.drop_duplicates()" in repr(log)
    assert "df.drop_duplicates()" in repr(log.dead_letters())
    assert "no list was counted" not in repr(read(SMALL.clicks))


def test_queries_may_be_whole_numbers() -> None:
    """As they are in the table."""
    names = SMALL.clicks["query"].to_pylist()
    log = read(changed("query", [int(each.split()[1]) for each in names]))
    query = int(names[0].split()[1])
    assert log.statistics(query).rows == log.statistics(str(query)).rows
    assert [row.item for row in log.relevance(query, examination=[1.0] * N_RANKS)]
    with pytest.raises(ValueError, match="a query must have a list"):
        log.statistics(99_999)


def test_a_column_alone_is_no_table() -> None:
    """It says what was given."""
    with pytest.raises(
        ValueError, match=r"a table must be a DataFrame; .* is a Series"
    ):
        read(SMALL.clicks.to_pandas()["item"])


def test_an_empty_table_is_told_without_a_command() -> None:
    """Nobody in a notebook validates files."""
    said = repr(read(SMALL.clicks.slice(0, 0)))
    assert "there is nothing to count: no row is a list" in said
