"""Files of other systems: what is in them is counted a second time, by hand."""

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from producers.formats.adapted import Adapted, LineAdapter, LiveAdapter
from producers.formats.registry import read_events
from producers.formats.source_file import FileUnreadable
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.registry import options_of
from rankstream.settings import Settings
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline, local_settings
from tests.data_sets import folder_of
from tests.session.cases import n_cases

SAMPLE = folder_of("ubi-sample")

START_MS = 1_733_788_889_378
N_EVENTS = n_cases(20_000, 100_000)

Document = dict[str, Any]

CLICK: Document = {
    "action_name": "click",
    "query_id": "l1",
    "user_query": "red",
    "timestamp": START_MS,
    "event_attributes": {"object": {"object_id": "a"}},
}


def written(path: Path, documents: Iterable[Document]) -> Path:
    """A document a line."""
    with path.open("wb") as file:
        for each in documents:
            file.write(json.dumps(each).encode() + b"\n")
    return path


def ubi(random_: random.Random) -> Iterator[Document]:
    """Queries and events of every kind, some of them wrong."""
    for number in range(N_EVENTS):
        list_id, at_ms = f"l{number % 9_973}", START_MS + number
        kind = random_.randrange(10)
        if kind < 3:
            hits = [
                f"d{random_.randrange(99)}-{i}" for i in range(random_.randrange(9))
            ]
            yield {
                "query_id": list_id,
                "user_query": f"q{number % 31}",
                "timestamp": at_ms,
                random_.choice(AdapterOptions().hit_fields): hits,
            }
            continue
        event: Document = {
            "action_name": random_.choice(["click", "impression", "view", "buy"]),
            "timestamp": at_ms if kind < 9 else at_ms // 1_000,
            "user_query": "q",
            "event_attributes": {
                "object": {"object_id": "d"} if kind < 8 else None,
                "position": {"ordinal": random_.randrange(5)},
            },
        }
        if kind != 3:
            event["query_id"] = list_id
        yield event


def counted_ubi(documents: Iterable[Document]) -> Counter[str]:
    """What must come of them, told by looking at each."""
    found: Counter[str] = Counter()
    for each in documents:
        if "action_name" not in each:
            (hits,) = (v for k, v in each.items() if k.startswith("query_response"))
            found[QUERIES if hits else "silent"] += 1
        elif (
            each["action_name"] in ("impression", "view")
            or not each["event_attributes"]["object"]
        ):
            found["silent"] += 1
        elif "query_id" not in each:
            found["no-id"] += 1
        elif each["timestamp"] < START_MS:
            found["time"] += 1
        elif each["event_attributes"]["position"].get("ordinal") == 0:
            found["ordinal"] += 1
        else:
            found[CLICKS] += 1
    return found


def metarank(random_: random.Random) -> Iterator[Document]:
    """Feedback of every kind, some of it wrong."""
    for number in range(N_EVENTS):
        event = random_.choice(["ranking", "interaction", "item", "user", "other"])
        yield {
            "event": event,
            "id": f"l{number}",
            "timestamp": str(START_MS + number),
            "fields": [{"name": "query", "value": "q"}],
            "items": [{"id": f"d{i}"} for i in range(random_.randrange(5))],
            "ranking": random_.choice([None, "l1", "l2"]),
            "type": random_.choice(["click", "impression"]),
            "item": "d1",
        }


def counted_metarank(documents: Iterable[Document]) -> Counter[str]:
    """What must come of them, told by looking at each."""
    found: Counter[str] = Counter()
    for each in documents:
        if each["event"] == "ranking":
            found[QUERIES if each["items"] else "silent"] += 1
        elif each["event"] == "interaction":
            if each["type"] == "impression":
                found["silent"] += 1
            else:
                found[CLICKS if each["ranking"] else "no-id"] += 1
        else:
            found["event" if each["event"] == "other" else "silent"] += 1
    return found


def cloud_events(random_: random.Random) -> Iterator[Document]:
    """Envelopes around lists and clicks of ours, some of them wrong."""
    for number in range(N_EVENTS):
        data: Document = {"impression_id": f"l{number}", "query_id": "q"}
        if number % 3 == 0:
            data["shown"] = ["a"]
        envelope: Document = {"specversion": random_.choice(["1.0", "1.0", "0.3"])}
        if random_.randrange(4):
            envelope["id"] = str(number)
        if random_.randrange(4):
            envelope["time"] = "2024-12-10T00:01:29.378Z"
        if random_.randrange(9):
            envelope["data"] = data
        yield envelope


def counted_cloud_events(documents: Iterable[Document]) -> Counter[str]:
    """What must come of them, told by looking at each."""
    found: Counter[str] = Counter()
    for each in documents:
        if each["specversion"] != "1.0":
            found["specversion"] += 1
        elif "data" not in each:
            found["no-data"] += 1
        elif "time" not in each:
            found["no-event"] += 1
        elif "id" not in each:
            found["no-id"] += 1
        else:
            found[QUERIES if "shown" in each["data"] else CLICKS] += 1
    return found


@pytest.mark.parametrize(
    ("form", "made", "counted"),
    [
        ("ubi", ubi, counted_ubi),
        ("metarank", metarank, counted_metarank),
        ("cloudevents", cloud_events, counted_cloud_events),
    ],
)
def test_every_document_has_one_outcome(tmp_path, form, made, counted) -> None:
    """Of thirty thousand, the same counts by another way."""
    documents = list(made(random.Random(7)))  # noqa: S311
    path, told = written(tmp_path / "log", documents), Adapted()

    # Random items are at random places: impressions would make lists of some.
    options = AdapterOptions(impression_ms=0)
    events = list(read_events([path], form=form, adapted=told, adapter_options=options))

    expected = counted(documents)
    assert expected.total() == N_EVENTS == told.documents
    found = Counter({"silent": told.silent}) + told.refused
    found.update(each.kind for each in events if not each.refusal)
    assert found == expected
    refused = [each for each in events if each.refusal]
    assert Counter(each.refusal.split(":")[0] for each in refused) == told.refused
    lines = set(path.read_bytes().splitlines())
    assert all(each.value in lines for each in refused)


def test_clicks_of_an_earlier_file_find_the_query_of_their_list(tmp_path) -> None:
    """Names of files sort events before queries."""
    click = {name: value for name, value in CLICK.items() if name != "user_query"}
    shown = {
        "query_id": "l1",
        "user_query": "red",
        "timestamp": START_MS,
        "query_response_hit_ids": ["a"],
    }
    files = [
        written(tmp_path / "ubi_events.ndjson", [click]),
        written(tmp_path / "ubi_queries.ndjson", [shown]),
    ]

    clicked, listed = read_events(files, form="ubi")

    assert json.loads(clicked.value)["query_id"] == "red"
    assert listed.kind == QUERIES


@pytest.mark.parametrize(
    "lay_out",
    [
        lambda docs: "\n".join(map(json.dumps, docs)),
        lambda docs: "\ufeff" + "\n".join(map(json.dumps, docs)),
        json.dumps,
        lambda docs: json.dumps(docs, indent=2),
        lambda docs: "\n" + json.dumps(docs[:1]) + "\n\n" + json.dumps(docs[1:]),
        lambda docs: "".join(
            f'{{"index": {{"_index": "ubi_events"}}}}\n{json.dumps(each)}\n'
            for each in docs
        ),
        lambda docs: "".join(
            f'{{ "create" : {{}} }}\n{json.dumps(each)}\n' for each in docs
        ),
    ],
)
@pytest.mark.parametrize("is_packed", [False, True])
def test_documents_lie_a_line_each_or_in_arrays(tmp_path, lay_out, is_packed) -> None:
    """Or between the lines of a bulk request; packed or not."""
    documents = [CLICK | {"timestamp": START_MS + number} for number in range(3)]
    content = lay_out(documents).encode()
    path = tmp_path / "log"
    path.write_bytes(gzip.compress(content) if is_packed else content)

    events = list(read_events([path], form="ubi"))

    assert [each.at_ms - START_MS for each in events] == [0, 1, 2]
    assert not any(each.refusal for each in events)


@pytest.mark.parametrize("content", ["nonsense", '[{"a": 1}, ', "{\n}"])
def test_a_file_that_is_no_json_from_its_first_line_is_refused(
    tmp_path, content
) -> None:
    """A wrong format is no million of dead letters."""
    path = tmp_path / "log"
    path.write_text(content)
    with pytest.raises(FileUnreadable, match="correct --format"):
        list(read_events([path], form="ubi"))


def test_one_bad_line_is_one_dead_letter_at_its_place(tmp_path) -> None:
    """With the time of the event before it, and its own bytes."""
    good = json.dumps(CLICK).encode()
    path = tmp_path / "log"
    path.write_bytes(good + b"\n{broken\n" + good)

    events = list(read_events([path], form="ubi", adapter_options=AdapterOptions()))

    (bad,) = [each for each in events if each.refusal]
    assert bad.value == b"{broken"
    assert bad.refusal.startswith("not-json: ")
    assert [each.at_ms for each in events] == [START_MS] * 3


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("ubi", '{"action_name": "click", "timestamp": "2024-12-10T00:01:29Z"}'),
        ("ubi", '{"index": {"_index": "ubi_events"}}'),
        ("metarank", '{"event": "ranking", "id": "r"}'),
        ("cloudevents", '{"specversion": "1.0", "data": {}}'),
    ],
)
def test_lines_of_another_format_say_which_reads_them(tmp_path, form, line) -> None:
    """Where they are taken for ours."""
    path = tmp_path / "log"
    path.write_text(line)
    with pytest.raises(FileUnreadable, match=f"--format {form} reads"):
        list(read_events([path]))


def test_refused_documents_reach_the_dead_letters_through_the_pipeline() -> None:
    """As they came, with the words of the adapter."""
    letters: list[tuple[bytes | None, dict[str, bytes]]] = []
    pipeline = LocalPipeline(
        local_settings(Settings()),
        now=lambda: START_MS,
        on_output=lambda out: (
            letters.append((out.value, dict(out.headers)))
            if out.topic == "clicks.dlq"
            else None
        ),
    )
    lines = LineAdapter("ubi", AdapterOptions())
    line = b'{"action_name": "click", "event_attributes": {"object": {"object_id": 1}}}'
    for event in lines(line):
        pipeline.send(event.kind, event.value, headers=event.headers)
    pipeline.flush()

    ((value, headers),) = letters
    assert value == line
    assert headers["__rankstream.errors.code"] == b"not-adapted"
    assert headers["__rankstream.errors.exception.message"].startswith(b"no-id: ")
    assert pipeline.counters()["ingestion_dead_letter"] == 1


def sample(*names: str) -> list[Document]:
    """All documents of these files."""
    if not SAMPLE.exists():
        pytest.skip(f"no {SAMPLE}")
    lines = (
        line
        for name in names
        for line in gzip.decompress((SAMPLE / name).read_bytes()).splitlines()
    )
    return [each for each in map(json.loads, lines) if "index" not in each]


def place_of(document: Document) -> tuple[int | None, str | None]:
    """Ordinal and item of an event."""
    attributes = document.get("event_attributes") or {}
    found = attributes.get("position") or {}, attributes.get("object") or {}
    return found[0].get("ordinal"), found[1].get("object_id")


def at_ms_of(document: Document) -> float:
    """The time of a document."""
    at = document["timestamp"]
    if isinstance(at, int):
        return at
    return datetime.fromisoformat(at).timestamp() * 1_000


def seen_lists(documents: list[Document], base: int) -> dict[str, list[str]]:
    """Lists that only impressions tell; none where the first place is missing."""
    own = {each["query_id"] for each in documents if each.get("query_response_hit_ids")}
    seen: dict[str, list[tuple[float, int, str]]] = {}
    for each in documents:
        if each.get("action_name") == "impression" and each["query_id"] not in own:
            ordinal, item = place_of(each)
            assert ordinal is not None
            assert item is not None
            entry = (round(at_ms_of(each)), ordinal, item)
            seen.setdefault(each["query_id"], []).append(entry)
    lists: dict[str, list[str]] = {}
    for name, entries in seen.items():
        items: dict[int, str] = {}
        for at_ms, ordinal, item in sorted(entries):
            if at_ms - min(entries)[0] <= 10_000 and item not in items.values():
                items.setdefault(ordinal, item)
        lists[name] = []
        while min(items) == base and base + len(lists[name]) in items:
            lists[name].append(items[base + len(lists[name])])
    return lists


CHORUS = "chorus_ubi_queries_events.ndjson.gz"
DASHBOARDS = ("dashboards_ubi_events.json.gz", "dashboards_ubi_queries.json.gz")


@pytest.mark.parametrize(
    ("names", "base", "n_own", "n_made", "n_refused"),
    [
        ((CHORUS,), 1, 81, 5, 201),
        ((CHORUS,), 0, 81, 200, 6),
        (DASHBOARDS[:1], 1, 0, 54, 210),
        (DASHBOARDS[:1], 0, 0, 202, 62),
        (DASHBOARDS, 1, 81, 5, 203),
        (DASHBOARDS, 0, 81, 200, 8),
    ],
)
def test_lists_of_the_published_sample_are_counted_by_hand(
    names: tuple[str, ...], base: int, n_own: int, n_made: int, n_refused: int
) -> None:
    """Each with its items, and each that has no first place refused once."""
    documents = sample(*names)
    told = Adapted()
    options = options_of({"ordinal_base": base})
    files = [SAMPLE / name for name in names]
    found = read_events(files, form="ubi", adapted=told, adapter_options=options)
    made, own = {}, 0
    refused: Counter[tuple[str, str]] = Counter()
    for event in found:
        if event.refusal:
            refused[event.kind, event.refusal.split(":")[0]] += 1
        elif event.kind == QUERIES:
            fields = json.loads(event.value)
            # Times of the first thousand are looked at before any is given.
            if is_made := fields["impression_id"] in told.seen.made:
                made[fields["impression_id"]] = fields["shown"]
            own += not is_made

    expected = seen_lists(documents, base)
    assert made == {name: items for name, items in expected.items() if items}
    assert refused[QUERIES, "ordinal"] == sum(not each for each in expected.values())
    assert (own, len(made), refused[QUERIES, "ordinal"]) == (n_own, n_made, n_refused)
    answered = {each["query_id"] for each in documents if "action_name" in each}
    listless = {
        each["query_id"]
        for each in documents
        if "action_name" not in each and "query_response_hit_ids" not in each
    }
    assert refused[QUERIES, "no-list"] == len(listless - answered - set(expected))
    assert told.documents == len(documents)


def test_no_impression_of_the_sample_is_a_list_where_that_is_said() -> None:
    """As where lists come another way."""
    sample(CHORUS)
    told = Adapted()
    options = options_of({"impression_ms": 0})
    read = read_events(
        [SAMPLE / CHORUS], form="ubi", adapted=told, adapter_options=options
    )
    assert Counter(each.kind for each in read if not each.refusal) == {
        QUERIES: 81,
        CLICKS: 452,
    }
    assert told.refused == {"no-list": 200, "no-query": 265, "ordinal": 22}
    assert told.silent == 2_901


def test_the_published_sample_has_places_from_0_in_one_of_its_parts() -> None:
    """So the option takes what was refused."""
    sample(CHORUS)
    told = Adapted()
    options = options_of({"ordinal_base": 0, "query": "id"})

    events = read_events(
        [SAMPLE / CHORUS], form="ubi", adapted=told, adapter_options=options
    )

    kinds = Counter(each.kind for each in events if not each.refusal)
    assert kinds == {QUERIES: 281, CLICKS: 739}
    assert told.refused == {"ordinal": 6}


class Clock:
    """Goes where it is told."""

    def __init__(self) -> None:
        self.now_ms = 0.0

    def __call__(self) -> float:
        """Now."""
        return self.now_ms


def seen(ordinal: int, item: str, at_ms: int = START_MS) -> bytes:
    """An impression, as a line."""
    attributes = {"object": {"object_id": item}, "position": {"ordinal": ordinal}}
    fields = {"event_attributes": attributes, "timestamp": at_ms}
    return json.dumps(CLICK | {"action_name": "impression"} | fields).encode()


def lists_in(events: Iterable[Event]) -> list[list[str]]:
    """What lists showed."""
    return [json.loads(e.value)["shown"] for e in events if e.kind == QUERIES]


def test_a_live_list_waits_for_its_items_by_the_clock() -> None:
    """Clicks pass it, as ingestion lets them wait."""
    clock = Clock()
    live = LiveAdapter("ubi", AdapterOptions(), clock)
    assert list(live(seen(2, "b"))) == []
    (click,) = live(json.dumps(CLICK).encode())
    assert click.kind == CLICKS
    clock.now_ms = 9_999.0
    assert list(live(seen(1, "a"))) == list(live.due()) == []
    clock.now_ms = 10_000.0
    assert lists_in(live.due()) == [["a", "b"]]
    clock.now_ms = 30_000.0
    assert list(live(seen(1, "a"))) == list(live.due()) == list(live.rest()) == []
    assert (live.adapted.documents, live.adapted.silent) == (4, 2)


def test_a_live_list_waits_for_its_items_by_their_times() -> None:
    """Where a history is read faster than it happened."""
    live = LiveAdapter("ubi", AdapterOptions(), Clock())
    assert list(live(seen(1, "a"))) == list(live(seen(2, "b", START_MS + 9))) == []
    later = CLICK | {"timestamp": START_MS + 10_001}
    listed, click = live(json.dumps(later).encode())
    assert (lists_in([listed]), click.kind) == ([["a", "b"]], CLICKS)


def test_live_lists_that_wait_are_bounded_and_made_at_the_end() -> None:
    """No line is lost."""
    live = LiveAdapter("ubi", AdapterOptions(), Clock(), most=1)
    assert lists_in(live(seen(1, "a"))) == []
    assert lists_in(live(seen(2, "b"))) == [["a", "b"]]
    live = LiveAdapter("ubi", AdapterOptions(), Clock())
    assert lists_in(live(seen(1, "a"))) == []
    assert lists_in(live.rest()) == [["a"]]
