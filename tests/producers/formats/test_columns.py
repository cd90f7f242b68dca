"""Tables of shown items: CSV and Parquet, their lists and clicks counted again."""

import csv
import gzip
import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from producers.formats.adapted import Adapted
from producers.formats.registry import format_of, read_events
from producers.formats.source_file import FileUnreadable
from producers.formats.tables import columns_by_role
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import CLICKS as TABLE_OF_CLICKS
from rankstream.wire.topics import CLICKS, QUERIES
from tests.session.cases import n_cases

START_MS = 1_733_788_889_378
COLUMNS = {"impression": "list", "item": "sku", "at": "shown_at", "clicked": "buys"}


def table(path: Path, text: str) -> Path:
    """A file with this content."""
    path.write_text(text)
    return path


def decoded(path: Path, **options: Any) -> list[dict[str, Any]]:
    """The events of a file; a refusal stands for what has one."""
    return [
        {"refusal": each.refusal} if each.refusal else json.loads(each.value)
        for each in read_events([path], **options)
    ]


def test_rows_of_a_list_are_one_event_and_a_click_each(tmp_path) -> None:
    """By the names of the roles, in the order of the positions."""
    path = table(
        tmp_path / "log.csv",
        "impression,item,position,clicked,at,query,session,clicked_at,action\n"
        f"i1,b,2,1,{START_MS},red shoes,s1,{START_MS + 9},buy\n"
        f"i1,a,1,0,{START_MS},red shoes,s1,,\n"
        f"i2,a,1,yes,{START_MS + 5},blue,,,\n",
    )
    assert format_of(path).name == "csv"
    assert decoded(path) == [
        {
            "impression_id": "i1",
            "query_id": "red shoes",
            "at_ms": START_MS,
            "shown": ["a", "b"],
            "session": "s1",
        },
        {
            "impression_id": "i1",
            "query_id": "red shoes",
            "at_ms": START_MS + 9,
            "item_id": "b",
            "action": "buy",
            "position": 2,
        },
        {
            "impression_id": "i2",
            "query_id": "blue",
            "at_ms": START_MS + 5,
            "shown": ["a"],
        },
        {
            "impression_id": "i2",
            "query_id": "blue",
            "at_ms": START_MS + 5,
            "item_id": "a",
            "action": "click",
            "position": 1,
        },
    ]


@pytest.mark.parametrize("form", ["csv", "tsv", "semicolon", "parquet", "csv.gz"])
def test_every_row_has_one_outcome(tmp_path, form) -> None:
    """Of tens of thousands of rows, the same counts by another way."""
    random_ = random.Random(3)  # noqa: S311
    rows: list[tuple[Any, ...]] = []
    expected = Counter[str]()
    while len(rows) < n_cases(30_000, 100_000):
        number, n_items = len(rows), random_.randrange(1, 9)
        is_bad = random_.random() < 0.1
        clicks = [random_.random() < 0.3 for _ in range(n_items)]
        for place, is_clicked in enumerate(clicks):
            rows.append(
                (
                    f"l{number}",
                    f"d, {place}",
                    START_MS + number,
                    int(is_clicked),
                    place + 1 + is_bad,
                )
            )
        expected["ordinal" if is_bad else QUERIES] += 1
        expected[CLICKS] += 0 if is_bad else sum(clicks)
    names = ("list", "sku", "shown_at", "buys", "position")
    path = tmp_path / f"log.{form}"
    if form == "parquet":
        pq.write_table(
            pa.table(dict(zip(names, zip(*rows, strict=True), strict=True))), path
        )
    else:
        opened = gzip.open if form.endswith("gz") else open
        delimiter = {"tsv": "\t", "semicolon": ";"}.get(form, ",")
        with opened(path, "wt", newline="") as file:
            csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    told = Adapted()

    chosen = "parquet" if form == "parquet" else "csv"
    events = list(read_events([path], form=chosen, columns=COLUMNS, adapted=told))

    found = Counter(told.refused)
    found.update(each.kind for each in events if not each.refusal)
    assert found == expected
    assert told.documents == expected[QUERIES] + expected["ordinal"]


def test_two_columns_of_a_name_that_nobody_asks_for_are_no_matter(tmp_path) -> None:
    """A table has more than we read."""
    path = table(tmp_path / "log.csv", f"impression,item,at,,\ni,a,{START_MS},,\n")
    (event,) = decoded(path)
    assert event["shown"] == ["a"]


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path) -> None:
    """Some programs write one."""
    path = tmp_path / "log.csv"
    path.write_bytes(f"\ufeffimpression,item,at\ni,a,{START_MS}\n".encode())
    (event,) = decoded(path)
    assert event["impression_id"] == "i"


def test_a_click_has_the_place_of_its_row(tmp_path) -> None:
    """Each of them, however long the list is."""
    rows = "".join(f"i,item-{n},{START_MS},1\n" for n in range(1, 6))
    path = table(tmp_path / "log.csv", "impression,item,at,clicked\n" + rows)
    _, *clicks = decoded(path)
    assert [(each["item_id"], each["position"]) for each in clicks] == [
        (f"item-{n}", n) for n in range(1, 6)
    ]


def test_lists_with_negative_numbers_are_lists_of_their_own(tmp_path) -> None:
    """-1 and -2 too, which Python hashes alike."""
    path = tmp_path / "log.parquet"
    columns = {"impression": [-1, -2, -3], "item": [1, 1, 1], "at": [START_MS] * 3}
    pq.write_table(pa.table(columns), path)
    found = decoded(path, columns={"item": "item"})
    assert [each["impression_id"] for each in found] == ["-1", "-2", "-3"]


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_a_time_that_no_year_has_is_a_dead_letter(tmp_path, unit) -> None:
    """The lists around it are read."""
    path = tmp_path / "log.parquet"
    per_second = {"s": 1, "ms": 1_000, "us": 1_000_000}[unit]
    year_10_000 = 253_402_300_800 * per_second
    first = 1_733_788_889 * per_second
    last = 9_223_372_036_854_775 * min(per_second, 1_000)
    columns = {
        "impression": ["i", "j", "k", "l"],
        "item": ["a", "a", "a", "a"],
        "at": pa.array([first, year_10_000, last, first], pa.timestamp(unit)),
    }
    pq.write_table(pa.table(columns), path)
    good, *bad, again = decoded(path, columns={"at": "at"})
    assert [each["impression_id"] for each in (good, again)] == ["i", "l"]
    assert [each["refusal"][:6] for each in bad] == ["time: "] * 2


def test_values_that_python_cannot_hold_refuse_the_file(tmp_path) -> None:
    """In words: a day of the year 10000 is none."""
    path = tmp_path / "log.parquet"
    days = pa.array([3_000_000], pa.date32())
    pq.write_table(pa.table({"impression": ["i"], "item": ["a"], "at": days}), path)
    with pytest.raises(FileUnreadable, match="what its type says"):
        decoded(path, columns={"at": "at"})


@pytest.mark.parametrize(
    "at",
    [
        pa.array([datetime(2024, 12, 10, 0, 1, 29, 378_000, UTC)]),
        pa.array([START_MS], pa.timestamp("ms")),
        pa.array([START_MS * 1_000_000 + 7], pa.timestamp("ns")),
        pa.array([START_MS]),
        pa.array(["2024-12-10T01:01:29.378+01:00"]),
    ],
)
def test_times_of_a_table_may_be_of_any_type(tmp_path, at) -> None:
    """A timestamp without a zone is UTC."""
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table({"impression": ["i"], "item": [7], "at": at}), path)
    (event,) = decoded(path, columns={"at": "at"})
    assert (event["at_ms"], event["shown"]) == (START_MS, ["7"])


def test_without_columns_parquet_has_the_fields_of_events(tmp_path) -> None:
    """As before."""
    path = tmp_path / "log.parquet"
    at = datetime(2024, 12, 10, tzinfo=UTC) + timedelta(seconds=1)
    pq.write_table(
        pa.table(
            {"impression_id": ["i"], "query_id": ["q"], "at_ms": [at], "position": [1]}
        ),
        path,
    )
    (event,) = decoded(path)
    assert event["position"] == 1


def test_places_from_0_are_an_option(tmp_path) -> None:
    """Which the refusal names."""
    path = table(
        tmp_path / "log.csv",
        f"impression,item,position,at\ni,a,0,{START_MS}\ni,b,1,{START_MS}\n",
    )
    (refused,) = decoded(path)
    assert "set ordinal_base = 0" in refused["refusal"]
    (event,) = decoded(path, adapter_options=AdapterOptions(ordinal_base=0))
    assert event["shown"] == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "code"),
    [
        (f",a,1,0,{START_MS}", "no-id"),
        (f"i,,1,0,{START_MS}", "no-id"),
        (f"i,a,one,0,{START_MS}", "type"),
        (f"i,a,,0,{START_MS}", "type"),
        (f"i,a,2,0,{START_MS}", "ordinal"),
        (f"i,a,1,maybe,{START_MS}", "type"),
        (f"i,a,1,0,{START_MS // 1_000}", "time"),
        ("i,a,1,0,", "time"),
        (f"i,a,1,nan,{START_MS}", "type"),
        pytest.param(f"i,a,{10**400},0,{START_MS}", "type", id="endless place"),
        pytest.param(f"i,a,1,0,{10**400}", "time", id="endless time"),
    ],
)
def test_a_list_that_cannot_be_one_is_a_dead_letter(tmp_path, row, code) -> None:
    """The others are read."""
    good = f"j,a,1,0,{START_MS}\n"
    head = "impression,item,position,clicked,at\n"
    path = table(
        tmp_path / "log.csv", head + good + row + "\n" + good.replace("j", "k")
    )
    first, bad, last = decoded(path)
    assert bad["refusal"].startswith(code + ": ")
    assert (first["impression_id"], last["impression_id"]) == ("j", "k")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "a column impression must be there"),
        ("", "a table must begin with a head; it is empty"),
        ("impression,products,at\n", "item=COLUMN, or items=COLUMN where a cell holds"),
        ('impression,item,at\ni,"a,5', "readable to its end"),
        ('impression,item,at\ni,"a"x,5\n', "readable to its end"),
        (f"impression,item,at\ni,{'x' * 200_000},5\n", "readable to its end"),
        ("impression,item,at,item\n", "item must be there once; 2 are named 'item'"),
        (f"impression,item,at\ni,a,{START_MS},x\n", r"3 cells, .* got 4: .*csv:2$"),
        (f"impression,item,at\n\ni,a,{START_MS}\ni,b\n", r"got 2: .*csv:4$"),
    ],
)
def test_a_table_that_is_none_is_refused(tmp_path, text, words) -> None:
    """With the column, or the line."""
    path = table(tmp_path / "log.csv", text)
    with pytest.raises(FileUnreadable, match=words):
        decoded(path)


def test_a_column_has_one_role(tmp_path) -> None:
    """Else all positions would be clicked; a user may be a session."""
    head = "impression,item,position,clicked,at,query,visitor"
    path = table(tmp_path / "log.csv", f"{head}\ni,a,1,0,{START_MS},q,v\n")
    with pytest.raises(FileUnreadable, match="'position' is clicked, as --col"):
        decoded(path, columns={"clicked": "position"})
    (event,) = decoded(path, columns={"session": "visitor", "user": "visitor"})
    assert (event["session"], event["user"]) == ("v", "v")


def test_two_lists_of_one_id_are_never_one_list(tmp_path) -> None:
    """A cell of all items is a list, and its repeat a duplicate; rows are refused."""
    head = "impression,at,query,session,items"
    rows = f"1,{START_MS},red,s1,a|b\n1,{START_MS + 9},blue,s2,c|d\n"
    found = decoded(table(tmp_path / "lists.csv", f"{head}\n{rows}"))
    assert [(each["query_id"], each["shown"]) for each in found] == [
        ("red", ["a", "b"]), ("blue", ["c", "d"]),
    ]  # fmt: skip
    head = "impression,at,query,session,item"
    rows = f"1,{START_MS},red,s1,a\n1,{START_MS},blue,s1,c\n2,{START_MS},red,s1,a\n"
    refused, kept = decoded(table(tmp_path / "rows.csv", f"{head}\n{rows}"))
    assert (
        "rows: rows of list '1' must have one query; got 'blue' and 'red'"
        in (refused["refusal"])
    )
    assert kept["impression_id"] == "2"


def test_times_of_clicks_are_not_left_unread() -> None:
    """Where a column seems to hold them it must be named; without one there is none."""
    names, asked = ["page", "product", "clicked_moment"], {"impression": "page"}
    asked["item"] = "product"
    with pytest.raises(FileUnreadable, match="name it with --columns at=clicked_mom"):
        columns_by_role(names, asked, Path("hits.csv"), TABLE_OF_CLICKS)
    found = columns_by_role(names[:2], asked, Path("hits.csv"), TABLE_OF_CLICKS)
    assert found == asked


def test_a_named_column_must_be_there(tmp_path) -> None:
    """Also one that need not be."""
    path = table(tmp_path / "log.csv", f"impression,item,at\ni,a,{START_MS}\n")
    with pytest.raises(FileUnreadable, match="--columns clicked=COLUMN"):
        decoded(path, columns={"clicked": "nothing"})


def test_bytes_that_are_no_text_are_refused(tmp_path) -> None:
    """Not replaced by others."""
    path = tmp_path / "log.csv"
    path.write_bytes(b"impression,item,at\ni,\xff,5\n")
    with pytest.raises(FileUnreadable, match="readable to its end"):
        decoded(path)


def test_a_parquet_table_of_roles_needs_no_columns(tmp_path) -> None:
    """As CSV needs none; what is missing is named with the option."""
    rows = {"impression": ["i1"] * 2, "item": ["a", "b"], "at": [START_MS] * 2}
    path = tmp_path / "log.parquet"
    pq.write_table(pa.table(rows | {"clicked": [0, 1]}), path)
    assert [each.get("shown") for each in decoded(path)] == [["a", "b"], None]

    pq.write_table(pa.table({**rows, "at": rows["at"]}).drop_columns(["item"]), path)
    with pytest.raises(FileUnreadable, match="--columns item=COLUMN"):
        decoded(path)


@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_time_that_is_none_is_refused_in_any_row(tmp_path, place) -> None:
    """Not in the first one only."""
    times = [str(START_MS), str(START_MS + 1), str(START_MS)]
    times[place] = "nonsense"
    rows = "".join(f"i1,{item},{at}\n" for item, at in zip("abc", times, strict=True))
    path = table(tmp_path / "log.csv", f"impression,item,at\n{rows}")
    (told,) = decoded(path)
    assert "'nonsense'" in told["refusal"]
