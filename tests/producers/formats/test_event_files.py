"""Events from JSON lines, Parquet, dumps and result pages."""

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from models.estimators.item_classes import class_of
from producers.formats.canonical_dump import (
    Header,
    read_dump,
    read_dumped_events,
    read_header,
    write_dump,
)
from producers.formats.registry import files_of, read_events
from producers.formats.source_file import FileUnreadable, created, opened
from producers.formats.yandex_sessions import read_yandex_sessions
from rankstream.adapters.adapter import AdapterOptions
from rankstream.wire.events import Frontier, encode_event, encode_record
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES
from tests import event_factory
from tests.data_sets import folder_of

YANDEX = folder_of("yandex-sessions") / "sessions.jsonl.gz"

QUERY = {
    "impression_id": "i1", "query_id": "shoes", "at_ms": 5, "policy": "plackett-luce",
    "shown": ["b", "a"], "candidates": ["a", "b"], "scores": [0.5, 1.5],
    "features": [[1.0, 2.0], [3.0, 4.0]], "attributes": {"site": "x", "n": 3},
    "rankings": {"m1": ["a", "b"]}, "user": "u",
}  # fmt: skip
CLICK = {"impression_id": "i1", "query_id": "shoes", "at_ms": 7, "position": 2}


def written(path, *lines):
    """A file of these lines."""
    path.write_bytes(b"\n".join(lines) + b"\n")
    return path


@pytest.mark.parametrize("name", ["log.jsonl", "log.jsonl.gz", "log.jsonl.zst"])
def test_json_lines_are_passed_on_byte_for_byte(name, tmp_path):
    """With their time and kind; empty lines, CRLF and a byte order mark do no harm."""
    query = json.dumps(QUERY, indent=None).encode()
    click = b'{ "at_ms": 7, "impression_id":"i1",   "item_id": "a" }'
    path = tmp_path / name
    with created(path) as file:
        file.write(b"\xef\xbb\xbf" + query + b"\r\n\n" + click)
    assert list(read_events([path])) == [
        Event(5, QUERIES, query),
        Event(7, CLICKS, click),
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "JSON"),
        (b"\xff\xfe", "JSON"),
        (b"[1]", "object"),
        (b'{"shown": []}', "at_ms"),
        (b'{"at_ms": "5"}', "int"),
        (b'{"at_ms": true}', "int"),
        (b'{"at_ms": NaN}', "JSON"),
        (b"[" * 100_000, "JSON"),
    ],
)
def test_a_line_that_is_no_event_is_named(line, reason, tmp_path):
    """File, line and reason."""
    path = written(tmp_path / "log.jsonl", encode_event(CLICK), line)
    with pytest.raises(FileUnreadable, match=f"{reason}.*log.jsonl:2"):
        list(read_events([path]))


def test_parquet_gives_the_events_of_its_rows(tmp_path):
    """Structures as structs or JSON text, vectors as lists, nulls left out."""
    rows = [
        QUERY
        | {"kind": "query", "attributes": json.dumps(QUERY["attributes"])}
        | {"rankings": json.dumps(QUERY["rankings"])},
        CLICK | {"kind": "click"},
    ]
    table = pa.Table.from_pylist(rows, schema=pa.schema([
        ("kind", pa.string()), ("impression_id", pa.string()),
        ("query_id", pa.string()), ("at_ms", pa.int64()), ("policy", pa.string()),
        ("user", pa.string()),
        ("shown", pa.list_(pa.string())), ("candidates", pa.list_(pa.string())),
        ("scores", pa.list_(pa.float32())), ("position", pa.int64()),
        ("features", pa.list_(pa.list_(pa.float32()))),
        ("attributes", pa.string()), ("rankings", pa.string()),
    ]))  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet")
    query, click = read_events([tmp_path / "log.parquet"])
    assert (query.at_ms, query.kind, json.loads(query.value)) == (5, QUERIES, QUERY)
    assert (click.at_ms, click.kind, json.loads(click.value)) == (7, CLICKS, CLICK)


def test_parquet_takes_timestamps_and_float_bytes(tmp_path):
    """Without `kind`, `shown` tells."""
    scores = np.array([0.5, 1.5], "<f4").tobytes()
    table = pa.table({
        "impression_id": ["i1"], "query_id": ["q"], "shown": [["a", "b"]],
        "at_ms": pa.array([1_500_000], pa.timestamp("us")), "scores": [scores],
    })  # fmt: skip
    pq.write_table(table, tmp_path / "log.parquet")
    (event,) = read_events([tmp_path / "log.parquet"])
    assert (event.at_ms, event.kind) == (1_500, QUERIES)
    assert json.loads(event.value)["scores"] == "AAAAPwAAwD8="


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"at_ms": [5], "colour": ["red"]}, "colour"),
        ({"impression_id": ["i"]}, "at_ms"),
        ({"at_ms": [5, None]}, "at_ms.*:2"),
        ({"at_ms": pa.array([5, 2**63], pa.uint64())}, "64 bits.*:2"),
        ({"at_ms": [5], "kind": ["purchase"]}, "purchase.*:1"),
        ({"at_ms": [5], "attributes": ["{"]}, "attributes.*:1"),
    ],
)
def test_parquet_that_holds_no_events_is_named(columns, reason, tmp_path):
    """File, row and reason."""
    pq.write_table(pa.table(columns), tmp_path / "log.parquet")
    with pytest.raises(FileUnreadable, match=reason):
        list(read_events([tmp_path / "log.parquet"]))


def test_a_parquet_file_that_is_cut_off_is_refused(tmp_path):
    """Before anything is yielded."""
    whole = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"at_ms": [5] * 1_000}), whole)
    cut = written(tmp_path / "cut.parquet", whole.read_bytes()[:-20])
    with pytest.raises(FileUnreadable, match=r"cut\.parquet"):
        list(read_events([cut]))


def test_a_directory_gives_its_event_files_by_name(tmp_path):
    """Hidden and foreign files are left out; a directory without any is refused."""
    for name in ("b.jsonl", "a.jsonl.gz", ".hidden.jsonl", "README.md", "c/d.jsonl"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        with created(path) as file:
            file.write(encode_event(CLICK | {"impression_id": name}))
    found = [file.relative_to(tmp_path).as_posix() for file in files_of([tmp_path])]
    assert found == ["a.jsonl.gz", "b.jsonl", "c/d.jsonl"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileUnreadable, match="event files"):
        files_of([tmp_path / "empty"])
    with pytest.raises(FileUnreadable, match="must be there"):
        files_of([tmp_path / "nowhere.jsonl"])


def record(*elements):
    """A canonical record."""
    return encode_record([1, 0, 1, list(elements)])


@pytest.mark.parametrize("name", ["log.dump", "log.dump.gz", "log.dump.zst"])
def test_a_dump_reads_back_byte_for_byte(name, tmp_path):
    """Partitions, values, order, header."""
    records = [(n % 3, bytes([n]) * n * 100) for n in range(50)]
    path = tmp_path / name
    assert write_dump(path, Header("events", 3), records) == 50
    assert read_header(path) == ("events", 3)
    assert list(read_dump(path)) == records


def test_a_dump_with_any_byte_changed_or_cut_off_is_refused(tmp_path):
    """A wrong log never passes for the right one."""
    path = tmp_path / "log.dump"
    write_dump(path, Header("events", 1), [(0, b"one"), (0, b"two")])
    whole = path.read_bytes()
    damaged = [whole[:length] for length in range(len(whole))]
    for place in range(len(whole)):
        changed = bytearray(whole)
        changed[place] ^= 1
        damaged.append(bytes(changed))
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(FileUnreadable):
            list(read_dump(path))


def test_a_dumped_log_gives_the_events_back(tmp_path):
    """Clicks as they came, queries from the canonical form, frontiers left out."""
    raw = encode_event(CLICK)
    scores = np.array([0.5, 1.5, 2.5], "<f4").tobytes()
    shown = event_factory.impression(
        "i1", 5, shown=["c", "a"], scores=scores, policy=1, query_id="shoes"
    )
    click = event_factory.click("i1", 7, raw=raw)
    path = tmp_path / "log.dump"
    values = [record(Frontier(0, 2, -1, 0), shown), record(click)]
    write_dump(path, Header("events", 1), [(0, value) for value in values])
    query, again = read_dumped_events(path)
    assert again == Event(7, CLICKS, raw)
    event = json.loads(query.value)
    assert (query.at_ms, query.kind, event["policy"]) == (5, QUERIES, "plackett-luce")
    assert event["shown"] == ["c", "a"]
    assert event["candidates"] == ["a", "b", "c"]
    assert list(read_events([path])) == [query, again]


def test_result_pages_become_events_as_documented(tmp_path):
    """Item = query and rank; click i at t + i seconds; the epoch is added."""
    page = {
        "s": 3,
        "u": 8,
        "q": 4,
        "t": 10,
        "rel": ["X", "Y", "Z"],
        "clicks": [2, 0, 2],
    }
    path = written(tmp_path / "pages.jsonl", encode_event(page))
    query, *clicks = read_yandex_sessions(path, epoch_ms=1_000_000)
    event = json.loads(query.value)
    assert (query.at_ms, query.kind) == (1_010_000, QUERIES)
    assert event["shown"] == ["4:1", "4:2", "4:3"]
    assert event["policy"] == "unknown"
    found = [json.loads(click.value) for click in clicks]
    assert [each["at_ms"] for each in found] == [1_011_000, 1_012_000, 1_013_000]
    assert [each["position"] for each in found] == [3, 1, 3]
    assert [each["item_id"] for each in found] == ["4:3", "4:1", "4:3"]
    assert {each["impression_id"] for each in found} == {event["impression_id"]}


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ({"s": 1, "q": 1, "t": 1, "rel": ["X"], "clicks": [1]}, "clicks"),
        ({"s": 1, "q": 1, "t": 1, "rel": [], "clicks": []}, "results"),
        ({"s": 1, "q": 1, "rel": ["X"], "clicks": []}, "`t`"),
    ],
)
def test_a_page_that_contradicts_itself_is_named(page, reason, tmp_path):
    """File, line and reason."""
    path = written(tmp_path / "pages.jsonl", encode_event(page))
    with pytest.raises(FileUnreadable, match=f"{reason}.*:1"):
        list(read_yandex_sessions(path))


def test_graded_results_are_named_by_grade_type_and_rank(tmp_path):
    """All else is as without: clicks name the same places."""
    page = {
        "s": 3,
        "q": 4,
        "t": 10,
        "rel": ["VITAL", "USEFUL", "USEFUL"],
        "type": ["WEB", "IMAGES", "IMAGES"],
        "clicks": [2],
    }
    path = written(tmp_path / "pages.jsonl", encode_event(page))
    graded = AdapterOptions(items="graded")
    query, click = read_events(
        [path], form="yandex-sessions", adapter_options=graded, epoch_ms=0
    )
    items = json.loads(query.value)["shown"]

    assert items == ["VITAL/WEB#1", "USEFUL/IMAGES#2", "USEFUL/IMAGES#3"]
    assert json.loads(click.value)["item_id"] == "USEFUL/IMAGES#3"
    plain, _ = read_yandex_sessions(path, epoch_ms=0)
    assert query.value == plain.value.replace(
        b'"4:1","4:2","4:3"', encode_event(items)[1:-1]
    )
    assert {*map(class_of, items)} == {"USEFUL/IMAGES", "VITAL/WEB"}


def test_graded_results_need_their_types(tmp_path):
    """One for each; without them the pages can still be read by place."""
    page = {"s": 3, "q": 4, "t": 10, "rel": ["X", "Y"], "type": ["WEB"], "clicks": []}
    path = written(tmp_path / "pages.jsonl", encode_event(page))
    graded = AdapterOptions(items="graded")
    with pytest.raises(FileUnreadable, match="a type for each of its 2 results; got 1"):
        list(read_yandex_sessions(path, adapter_options=graded))
    assert len(list(read_yandex_sessions(path))) == 1


def counted_from_lines():
    """Shown and clicked by query, item and rank, and all clicks, line by line."""
    counts: Counter[tuple[object, ...]] = Counter()
    n_clicks = 0
    with opened(YANDEX) as file:
        for page in map(json.loads, file):
            query = str(page["q"])
            for row in range(len(page["rel"])):
                counts["shown", query, f"{query}:{row + 1}", row + 1] += 1
            for row in set(page["clicks"]):
                counts["clicked", query, f"{query}:{row + 1}", row + 1] += 1
            n_clicks += len(page["clicks"])
    return counts, n_clicks


def test_real_pages_give_the_counts_of_the_file():
    """Every query, item and rank, counted from the lines themselves."""
    if not YANDEX.exists():
        pytest.skip(f"no {YANDEX}")
    found: Counter[tuple[object, ...]] = Counter()
    shown, clicked, n_clicks = {}, set(), 0
    for event in read_yandex_sessions(YANDEX):
        fields = json.loads(event.value)
        if event.kind == QUERIES:
            shown[fields["impression_id"]] = fields
            for rank, item in enumerate(fields["shown"], 1):
                found["shown", fields["query_id"], item, rank] += 1
            continue
        n_clicks += 1
        item, rank, page = (
            fields[name] for name in ("item_id", "position", "impression_id")
        )
        assert shown[page]["shown"][rank - 1] == item
        assert shown[page]["at_ms"] < event.at_ms
        clicked.add((page, fields["query_id"], item, rank))
    found.update(("clicked", *place) for _, *place in clicked)
    assert (found, n_clicks) == counted_from_lines()
    assert (len(shown), n_clicks, len(clicked)) == (9_974, 10_739, 10_561)


def test_real_pages_give_the_classes_of_the_file():
    """Clicked places by grade, type and rank, counted from the lines themselves."""
    if not YANDEX.exists():
        pytest.skip(f"no {YANDEX}")
    by_hand: Counter[tuple[str, int]] = Counter()
    with opened(YANDEX) as file:
        for page in map(json.loads, file):
            for row in page["clicks"]:
                by_hand[f"{page['rel'][row]}/{page['type'][row]}", row + 1] += 1
    graded = AdapterOptions(items="graded")
    events = read_yandex_sessions(YANDEX, adapter_options=graded)
    clicks = [json.loads(each.value) for each in events if each.kind == CLICKS]
    found = Counter((class_of(x["item_id"]), x["position"]) for x in clicks)

    assert found == by_hand
    assert found.total() == 10_739
    # A class is seen at many ranks, as no item of a query is.
    assert Counter(name for name, _ in found).most_common(1)[0][1] == 11
