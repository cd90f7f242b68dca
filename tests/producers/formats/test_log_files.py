"""Lists in some files and clicks in others: joined as dictionaries would join them."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producers.formats.adapted import Adapted
from producers.formats.joined import NothingJoined
from producers.formats.log_files import FilesOfAForm, LogFiles, read_log
from producers.formats.rows_together import Tables
from producers.formats.source_file import FileUnreadable
from rankstream.adapters.adapter import AdapterOptions
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

START_MS = 1_733_788_889_378
WINDOW_MS = 60_000
TINY = Tables(memory_bytes=9_000)
"""So little memory that everything is sorted on disk."""


def written(path: Path, names: str, rows: list[tuple[Any, ...]]) -> Path:
    """A table, CSV or Parquet by its ending."""
    if path.suffix == ".parquet":
        columns = zip(names.split(), map(list, zip(*rows, strict=True)), strict=True)
        pq.write_table(pa.table(dict(columns)), path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([names.split(), *rows])
    return path


def log_of(lists: Path, clicks: Path, **options: Any) -> LogFiles:
    """A log of two files."""
    return LogFiles(FilesOfAForm([lists]), FilesOfAForm([clicks]), **options)


def events_of(log: LogFiles, **options: Any) -> list[Event]:
    """Its events."""
    told: dict[str, Any] = {"adapted": Adapted(), "epoch_ms": 0}
    return list(read_log(log, **told | options))


def fields(event: Event, *names: str) -> tuple[Any, ...]:
    """Some fields of an event."""
    found = json.loads(event.value)
    return tuple(found.get(name) for name in names)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_each_click_has_the_query_of_its_list(tmp_path, ending) -> None:
    """Whatever the order of both files is, and with memory for nothing."""
    rng = random.Random(5)  # noqa: S311
    queries = {f"l{n}": f"query {rng.randrange(9)}" for n in range(300)}
    rows = [
        (name, f"item {place}", place, START_MS + n, query)
        for n, (name, query) in enumerate(queries.items())
        for place in (1, 2, 3)
    ]
    rng.shuffle(rows)
    pressed = [
        (rng.choice([*queries]), rng.randrange(1, 4), START_MS + 1_000 + n)
        for n in range(500)
    ]
    log = log_of(
        written(
            tmp_path / "lists.csv", "impression_id item_id position at query", rows
        ),
        written(tmp_path / f"clicks.{ending}", "impression_id position at_ms", pressed),
    )

    told = Adapted()
    found = events_of(log, adapted=told, tables=TINY)

    lists = [each for each in found if each.kind == QUERIES]
    shown = ["item 1", "item 2", "item 3"]
    assert {fields(each, "impression_id", "query_id") for each in lists} == {
        *queries.items()
    }
    assert all(fields(each, "shown") == (shown,) for each in lists)
    clicks = [each for each in found if each.kind == CLICKS]
    assert [
        fields(each, "impression_id", "query_id", "position", "at_ms")
        for each in clicks
    ] == [(name, queries[name], place, at_ms) for name, place, at_ms in pressed]
    first = list(dict.fromkeys(row[0] for row in rows))
    assert [fields(each, "impression_id")[0] for each in lists] == first
    assert told.notes == ["500 of 500 clicks joined to 300 lists"]
    assert found == events_of(log)
    assert not list(tmp_path.glob("rankstream-sort-*"))


@pytest.mark.parametrize("tables", [TINY, Tables()])
def test_a_session_joins_to_its_newest_list_that_showed_the_item(
    tmp_path, tables
) -> None:
    """As a search through all lists finds it."""
    rng = random.Random(8)  # noqa: S311
    lists = [
        (
            f"l{n}",
            START_MS + 1_000 * n,
            rng.choice(["Red", "blue"]),
            f"s{rng.randrange(4)}",
            "|".join(rng.sample("abcdef", 3)),
        )
        for n in range(200)
    ]
    pressed = [
        (
            f"s{rng.randrange(4)}",
            rng.choice(["red", "Blue "]),
            rng.choice("abcdef"),
            START_MS + rng.randrange(230_000),
        )
        for _ in range(300)
    ]
    expected = []
    for session, query, item, at_ms in pressed:
        matching = [
            each
            for each in lists
            if each[3] == session
            and each[2].lower() == query.strip().lower()
            and item in each[4]
            and 0 <= at_ms - each[1] <= WINDOW_MS
        ]
        expected.append(matching[-1][0] if matching else None)
    assert 100 < sum(each is not None for each in expected) < 300

    log = log_of(
        written(tmp_path / "lists.csv", "impression at query session items", lists),
        written(tmp_path / "clicks.csv", "session query item at", pressed),
        joins_sessions=True,
        window_ms=WINDOW_MS,
    )
    clicks = [each for each in events_of(log, tables=tables) if each.kind == CLICKS]
    assert [
        None if each.refusal else fields(each, "impression_id")[0] for each in clicks
    ] == expected


def test_without_ids_a_session_query_and_time_are_a_list(tmp_path) -> None:
    """Rows of the same are one, and clicks find it."""
    rows = [("s1", "red", item, START_MS) for item in "ab"]
    rows.append(("s1", "red", "c", START_MS + 9))
    log = log_of(
        written(tmp_path / "lists.csv", "session query item at", rows),
        written(
            tmp_path / "clicks.csv", "session item at", [("s1", "b", START_MS + 50)]
        ),
        joins_sessions=True,
    )
    first, second, click = events_of(log)
    assert [fields(each, "shown")[0] for each in (first, second)] == [["a", "b"], ["c"]]
    assert fields(click, "impression_id") == fields(first, "impression_id")


def test_joined_by_session_a_click_must_have_one(tmp_path) -> None:
    """Also where it names its list: it is refused for that, and not as of no list."""
    lists = [("i1", "s1", "a", START_MS), ("i2", "s2", "a", START_MS)]
    pressed = [("i1", "", "a", START_MS + 9), ("i2", "s2", "a", START_MS + 9)]
    log = log_of(
        written(tmp_path / "lists.csv", "impression session item at", lists),
        written(tmp_path / "clicks.csv", "impression session item at", pressed),
        joins_sessions=True,
    )
    clicks = [each for each in events_of(log) if each.kind == CLICKS]
    assert sorted("session" in each.refusal for each in clicks) == [False, True]
    (joined,) = (each for each in clicks if not each.refusal)
    assert fields(joined, "impression_id") == ("i2",)


def test_of_a_list_that_comes_twice_the_first_counts(tmp_path) -> None:
    """Its clicks are of that query; ingestion takes the other for a duplicate."""
    lists = tmp_path / "lists.jsonl"
    lists.write_text(
        "".join(
            json.dumps({"impression_id": "i", "query_id": query, "at_ms": START_MS,
                        "shown": ["a"]}) + "\n"
            for query in ("red", "blue")
        )
    )  # fmt: skip
    clicks = written(tmp_path / "clicks.csv", "impression_id item_id", [("i", "a")])
    *_, click = events_of(log_of(lists, clicks))
    assert fields(click, "query_id") == ("red",)


def test_a_click_of_no_list_is_a_dead_letter_with_its_place(tmp_path) -> None:
    """The others are joined."""
    lists = written(
        tmp_path / "lists.csv", "impression item at", [("i", "a", START_MS)]
    )
    clicks = written(
        tmp_path / "clicks.csv", "impression item at", [("i", "a", START_MS)] * 2 + [
            ("j", "a", START_MS)
        ],
    )  # fmt: skip
    told = Adapted()
    places = [
        (told.file, told.line, each.refusal[:10])
        for each in read_log(log_of(lists, clicks), adapted=told)
    ]
    assert places == [(0, 2, ""), (1, 2, ""), (1, 3, ""), (1, 4, "not-joined")]


def test_where_no_click_joins_it_is_said_with_an_example(tmp_path) -> None:
    """Instead of a log of dead letters."""
    log = log_of(
        written(tmp_path / "lists.csv", "impression item at", [("7.0", "a", START_MS)]),
        written(tmp_path / "clicks.csv", "impression item at", [("7", "a", START_MS)]),
    )
    with pytest.raises(NothingJoined, match="impression '7', at line 2"):
        events_of(log)


def test_lists_may_be_events_and_clicks_a_table(tmp_path) -> None:
    """All that a list says goes with it; ids of ours need no map."""
    event = {"impression_id": "i", "query_id": "q", "at_ms": START_MS, "shown": ["a"]}
    lists = tmp_path / "lists.jsonl"
    lists.write_text(json.dumps(event | {"policy": "deterministic"}) + "\n")
    clicks = written(tmp_path / "clicks.csv", "impression_id item_id", [("i", "a")])
    listed, click = events_of(log_of(lists, clicks))
    assert fields(listed, "policy") == ("deterministic",)
    assert fields(click, "query_id", "at_ms") == ("q", START_MS)

    own = tmp_path / "clicks.jsonl"
    own.write_text(json.dumps({"impression_id": "i", "at_ms": START_MS, "position": 1}))
    _, click = events_of(log_of(lists, own))
    assert fields(click, "query_id", "position") == ("q", 1)


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"impression": "list_it"}, "did you mean 'list_id'"),
        ({"impression": "list_id"}, "did you mean 'sku'.*clicks.csv|no 'item'"),
    ],
)
def test_a_column_that_is_in_no_file_names_the_nearest(tmp_path, asked, words) -> None:
    """One that is in either is taken where it is."""
    log = log_of(
        written(tmp_path / "lists.csv", "list_id item at", [("i", "a", START_MS)]),
        written(tmp_path / "clicks.csv", "list_id sku at", [("i", "a", START_MS)]),
        columns=asked,
    )
    with pytest.raises(FileUnreadable, match=words):
        events_of(log)


def test_lists_without_times_and_clicks_with_some_are_refused(tmp_path) -> None:
    """Every click would be late."""
    log = log_of(
        written(tmp_path / "lists.csv", "impression item", [("i", "a")]),
        written(tmp_path / "clicks.csv", "impression item at", [("i", "a", START_MS)]),
    )
    with pytest.raises(FileUnreadable, match=r"queries\.at=COLUMN"):
        events_of(log)


def test_a_unit_of_one_of_two_files_is_said_for_that_one(tmp_path) -> None:
    """And told for it."""
    lists = written(
        tmp_path / "lists.csv", "impression item at", [("i", "a", START_MS)]
    )
    clicks = written(
        tmp_path / "clicks.csv", "impression item at", [("i", "a", START_MS // 1_000)]
    )
    with pytest.raises(FileUnreadable, match=r"--option clicks\.time_unit=s"):
        events_of(log_of(lists, clicks))
    log = LogFiles(
        FilesOfAForm([lists]),
        FilesOfAForm([clicks], options=AdapterOptions(time_unit="s")),
    )
    _, click = events_of(log)
    assert click.at_ms == START_MS // 1_000 * 1_000


def test_rows_without_times_follow_one_another(tmp_path) -> None:
    """As they stand in the file, wherever rows of a list lie, and it is said."""
    rows = [("i2", 1, "a", 0), ("i1", 1, "b", 1), ("i2", 2, "b", 1)]
    path = written(tmp_path / "log.csv", "impression_id position item clicked", rows)
    told = Adapted()
    found = events_of(LogFiles(FilesOfAForm([path])), adapted=told, epoch_ms=1_000)
    assert [
        fields(each, "impression_id", "at_ms", "shown", "item_id") for each in found
    ] == [
        ("i2", 1_000, ["a", "b"], None),
        ("i2", 1_000, None, "b"),
        ("i1", 1_010, ["b"], None),
        ("i1", 1_010, None, "b"),
    ]
    of_time, of_query = told.notes
    assert "no column says when" in of_time
    assert "each list is a query of its own" in of_query


def test_a_column_that_may_be_a_time_is_asked_for(tmp_path) -> None:
    """No time is made up beside one that is there."""
    path = written(tmp_path / "log.csv", "impression item shown_at", [("i", "a", 5)])
    with pytest.raises(FileUnreadable, match="--columns at=shown_at"):
        events_of(LogFiles(FilesOfAForm([path])))
