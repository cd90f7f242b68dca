"""Ingestion's fold: once each, in numbered records, and nothing lost."""

import base64
import json
from hashlib import sha256
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.settings import Settings
from rankstream.wire.bounds import LETTER_BYTES, LETTERS_FACTOR
from rankstream.wire.events import (
    ACTIVE,
    ENDED,
    Click,
    Frontier,
    Impression,
    decode_event_record,
)
from rankstream.wire.input_events import refused_header
from rankstream.wire.topics import MAX_ELEMENTS, MAX_RECORD_BYTES
from streams.dead_letter import (
    HEADER_PREFIX,
    MAX_LETTER_BYTES,
    MAX_REASON_BYTES,
    Origin,
    dead_letter,
)
from streams.ingest.ingest import (
    END_HEADER,
    Ingest,
)
from streams.stage import Change, Output, SourceRecord

NOW_MS = 1_700_000_000_000


def query(name: str, at_ms: int = NOW_MS, **fields: Any) -> dict[str, Any]:
    """A query event."""
    event = {"impression_id": name, "query_id": name, "at_ms": at_ms, "shown": ["a"]}
    return event | fields


def record(value: bytes | None, offset: int = 0, **fields: Any) -> SourceRecord:
    """An input record."""
    headers = fields.get("headers", ())
    key = fields.get("key")
    return SourceRecord("queries", 1, offset, NOW_MS, key, value, headers)


def stage(settings: Settings | None = None) -> Ingest:
    """Partition 1 of `queries`."""
    return Ingest("queries", 1, settings or Settings())


def elements(outputs: list[Output]) -> list[Any]:
    """All elements of the canonical records among these outputs."""
    return [
        element
        for output in outputs
        if output.topic == "events" and output.value
        for element in decode_event_record(output.value).elements
    ]


def events(outputs: list[Output]) -> list[Any]:
    """The events among them, without frontiers."""
    return [e for e in elements(outputs) if not isinstance(e, Frontier)]


def test_of_a_batch_only_the_bad_elements_become_dead_letters() -> None:
    """The good ones pass; the bad one keeps its own bytes and the record's key."""
    ingest = stage()
    good = json.dumps(query("i1"))
    ingest.fold(record(f"[{good}, 7]".encode(), 5, key=b"k", headers=(("h", b"v"),)))

    outputs = ingest.outputs()
    letters = [output for output in outputs if output.topic == "queries.dlq"]
    headers = dict(letters[0].headers)

    assert [e.impression_id for e in events(outputs)] == ["i1"]
    assert (letters[0].key, letters[0].value, letters[0].partition) == (b"k", b"7", 1)
    assert headers["h"] == b"v"
    assert headers[HEADER_PREFIX + "code"] == b"malformed"
    assert headers[HEADER_PREFIX + "offset"] == b"5"
    assert headers[HEADER_PREFIX + "index"] == b"1"
    assert ingest.counters()["consumed"] == 2


def test_an_undecodable_record_is_one_dead_letter_even_without_a_value() -> None:
    """A tombstone at ingestion is buried as what it is."""
    ingest = stage()
    ingest.fold(record(b"")._replace(value=None))
    ingest.fold(record(b"\x00\x01"))

    letters = [out for out in ingest.outputs() if out.topic == "queries.dlq"]

    assert [letter.value for letter in letters] == [None, b"\x00\x01"]
    assert ingest.counters()["dead_letter"] == 2


def test_an_array_that_is_too_long_is_one_dead_letter() -> None:
    """Not one for each of its millions of elements."""
    ingest = stage()
    longest = b"[" + (b"1" * 40 + b",") * (MAX_ELEMENTS - 1) + b"1]"
    ingest.fold(record(longest))
    assert ingest.counters()["dead_letter"] == MAX_ELEMENTS
    ingest.outputs()

    longer = b"[1," + longest[1:]
    ingest.fold(record(longer))
    (letter,) = [out for out in ingest.outputs() if out.topic == "queries.dlq"]

    assert letter.value == longer
    assert dict(letter.headers)[HEADER_PREFIX + "code"] == b"batch"
    assert ingest.counters()["consumed"] == MAX_ELEMENTS + 1


def letters_of(value: bytes, **fields: Any) -> list[Output]:
    """The dead letters of one record."""
    ingest = stage()
    ingest.fold(record(value, **fields))
    return [out for out in ingest.outputs() if out.topic == "queries.dlq"]


def size(output: Output) -> int:
    """Bytes of a record."""
    headers = sum(len(name) + len(content) for name, content in output.headers)
    return len(output.key or b"") + len(output.value or b"") + headers


def test_what_would_become_many_times_its_size_is_one_dead_letter() -> None:
    """A third of a mebibyte would else become thirteen gigabytes."""
    value = b"[" + b"1," * (MAX_ELEMENTS - 1) + b"1]"
    key, headers = b"k" * 200 * 1024, (("h", b"v" * 1_000),)
    (letter,) = letters_of(value, key=key, headers=headers)
    added = dict(letter.headers)

    assert (letter.key, letter.value, added["h"]) == (key, value, b"v" * 1_000)
    assert added[HEADER_PREFIX + "code"] == b"batch-letters"
    assert size(letter) <= len(key) + len(value) + 1_001 + LETTER_BYTES


@given(
    n_elements=st.integers(1, 400),
    n_bytes=st.integers(1, 80),
    n_key=st.integers(0, 5_000),
    n_headers=st.integers(0, 5),
)
def test_dead_letters_of_a_record_take_a_small_multiple_of_it(
    n_elements: int, n_bytes: int, n_key: int, n_headers: int
) -> None:
    """Each of them beside it in full, or one; never more than is said."""
    value = b"[" + b",".join([b"1" * n_bytes] * n_elements) + b"]"
    headers = (("name", b"content"),) * n_headers
    key = b"k" * n_key
    letters = letters_of(value, key=key, headers=headers)
    own = n_key + 11 * n_headers + len(value)
    taken = sum(size(letter) for letter in letters)

    assert len(letters) in (1, n_elements)
    assert taken <= LETTERS_FACTOR * (own + LETTER_BYTES + 30 * n_headers) + len(value)
    assert all(letter.key == key for letter in letters)


def test_events_that_are_small_share_a_record_with_headers_as_ever() -> None:
    """An array of the shortest clicks, with as many headers as services send."""
    click = {"impression_id": "f3a9~0123456789abcdef", "at_ms": NOW_MS, "position": 1}
    value = json.dumps([click] * 10_000, separators=(",", ":")).encode()
    ingest = Ingest("clicks", 1, Settings())
    ingest.fold(record(value, key=b"k" * 40, headers=(("trace", b"t" * 900),)))

    assert ingest.counters()["passed"] == 10_000


def test_reasons_of_a_dead_letter_take_no_more_than_is_said() -> None:
    """However long the names of things are that it tells of."""
    place = Origin("queries", 2**31, 2**63, MAX_ELEMENTS)
    reason = {"stage": "validate", "code": "too-many-documents"}
    told = {"exception.message": "\ud800" * 1_024, "timestamp": "-" + "9" * 19}
    letter = dead_letter(place, b"x" * (MAX_LETTER_BYTES + 1), reason | told)
    framed = sum(10 + len(name) + len(content) for name, content in letter.headers)

    assert framed <= LETTER_BYTES
    assert max(len(content) for _, content in letter.headers) <= MAX_REASON_BYTES


def test_a_dead_letter_of_what_no_broker_takes_is_cut() -> None:
    """With a key for which there is no room it is there without it, and says so."""
    key = b"k" * (MAX_RECORD_BYTES + 1)
    letter = dead_letter(Origin("queries", 1, 0, 0), b"x", {}, key, (("h", b"v"),))

    assert (letter.key, letter.value) == (None, b"x")
    assert dict(letter.headers)[HEADER_PREFIX + "truncated"] == b"true"


@pytest.mark.parametrize("n_beyond", [0, 1])
def test_a_dead_letter_keeps_no_more_than_fits(n_beyond: int) -> None:
    """What is cut says so, and names the whole by its digest."""
    raw = b"x" * MAX_LETTER_BYTES + b"y" * n_beyond
    letter = dead_letter(Origin("queries", 1, 0, 0), raw, {})
    headers = dict(letter.headers)
    digest = sha256(raw).hexdigest().encode() if n_beyond else None

    assert letter.value == raw[:MAX_LETTER_BYTES]
    assert (HEADER_PREFIX + "truncated" in headers) == bool(n_beyond)
    assert headers.get(HEADER_PREFIX + "sha256") == digest


def test_records_of_each_partition_are_numbered_without_a_gap() -> None:
    """Across outputs and restarts."""
    ingest, written = stage(), []
    for number in range(50):
        name = json.dumps(query(f"i{number}", NOW_MS - 5_000 + number))
        ingest.fold(record(name.encode(), number))
        if number % 7 == 0:
            written += ingest.outputs()
            resumed = stage()
            resumed.restore(list(ingest.changes()))
            assert resumed.fingerprint() == ingest.fingerprint()
            ingest = resumed
    written += ingest.outputs()

    for partition in range(4):
        sequences = [
            decode_event_record(output.value).sequence
            for output in written
            if (output.topic, output.partition) == ("events", partition)
            and output.value
        ]
        assert sequences == list(range(1, len(sequences) + 1))
    names = {e.impression_id for e in elements(written) if isinstance(e, Impression)}
    assert len(names) == 50


def test_a_frontier_goes_to_every_partition_and_only_when_it_moves() -> None:
    """So that a quiet ingestion writes nothing."""
    ingest = stage()
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    first = [e for e in elements(ingest.outputs()) if isinstance(e, Frontier)]
    second = ingest.outputs()

    assert len(first) == 4
    assert {frontier.at_ms for frontier in first} == {NOW_MS - 30_000}
    assert {(frontier.source, frontier.n_sources) for frontier in first} == {(1, 8)}
    assert second == []


def frontiers_by_partition(outputs: list[Output]) -> dict[int, list[int]]:
    """Of each partition of `events` the times that it is told."""
    told: dict[int, list[int]] = {}
    for output in outputs:
        if output.topic == "events" and output.partition is not None:
            times = [e.at_ms for e in elements([output]) if isinstance(e, Frontier)]
            told.setdefault(output.partition, []).extend(times)
    return told


def test_a_frontier_goes_along_with_events_and_elsewhere_once_it_has_moved() -> None:
    """By eight of 2,048 parts of the window, as there are eight sources."""
    ingest = stage()
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()
    step_ms = Settings().time.click_window_ms * 8 // 2_048 + 1

    ingest.fold(record(json.dumps(query("i0", NOW_MS + step_ms - 2)).encode()))
    (own,) = [each for each in ingest.outputs() if each.topic == "events"]
    event, frontier = elements([own])
    ingest.fold(record(json.dumps(query("i0", NOW_MS + step_ms)).encode()))
    later = frontiers_by_partition(ingest.outputs())

    assert isinstance(event, Impression)
    assert frontier.at_ms == NOW_MS + step_ms - 2 - 30_000
    assert later == {n: [NOW_MS + step_ms - 30_000] for n in range(4)}


def test_an_event_that_moves_no_frontier_has_none_behind_it() -> None:
    """It was written there already."""
    ingest = stage()
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()

    ingest.fold(record(json.dumps(query("i24", NOW_MS - 1)).encode()))

    assert [type(each) for each in elements(ingest.outputs())] == [Impression]


def test_of_many_sources_none_waits_longer_than_a_part_of_the_window() -> None:
    """By a sixteenth, where 200 of 2,048 parts are more."""
    settings = Settings().with_kafka(input_partitions=100)
    ingest = stage(settings)
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()
    longest_ms = settings.time.click_window_ms // 16

    ingest.fold(record(json.dumps(query("i0", NOW_MS + longest_ms - 2)).encode()))
    sooner = frontiers_by_partition(ingest.outputs())
    ingest.fold(record(json.dumps(query("i0", NOW_MS + longest_ms + 1)).encode()))
    later = frontiers_by_partition(ingest.outputs())

    assert len(sooner) == 1
    assert len(later) == 4


def test_an_event_that_fills_a_record_has_it_alone() -> None:
    """What goes along with it would make the record larger than a topic takes."""
    ingest = stage()
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()
    features = base64.b64encode(np.ones(200_000, "<f4").tobytes()).decode()
    large = query("large", NOW_MS + 60_000, features=features)
    ingest.fold(record(json.dumps(large).encode()))

    found = [
        [type(e) for e in elements([each])]
        for each in ingest.outputs()
        if each.topic == "events"
    ]

    assert sorted(found, key=str) == [*[[Frontier]] * 4, [Impression]]


def test_frontiers_of_a_build_before_are_those_of_all_partitions() -> None:
    """It wrote one for all of them, and nothing is said twice after an upgrade."""
    ingest = stage()
    for number in range(24):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()
    (state,) = ingest.changes()
    assert state.value is not None
    decoded = msgspec.msgpack.decode(state.value)
    assert decoded[3] == [[NOW_MS - 30_000, ACTIVE]] * 4
    decoded[3] = decoded[3][0]
    before = state._replace(value=msgspec.msgpack.encode(decoded))

    upgraded = stage()
    upgraded.restore([before])

    assert upgraded.outputs() == []
    assert list(upgraded.changes()) == [state]


def test_one_event_ahead_makes_nothing_late() -> None:
    """Not even by a window, which is as far ahead as ingestion takes any."""
    ingest = stage()
    for number in range(30):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ahead = query("ahead", NOW_MS + Settings().time.click_window_ms)
    ingest.fold(record(json.dumps(ahead).encode()))

    frontiers = [e for e in elements(ingest.outputs()) if isinstance(e, Frontier)]

    assert ingest.counters()["passed"] == 31
    assert {frontier.at_ms for frontier in frontiers} == {NOW_MS - 30_000}


@pytest.mark.parametrize(("ahead_ms", "n_letters"), [(300_000, 0), (300_001, 1)])
def test_when_a_record_was_appended_bounds_what_is_of_the_future(
    ahead_ms: int, n_letters: int
) -> None:
    """Whatever the worker's own clock says: nobody tells it to the stage."""
    ingest = stage()
    event = json.dumps(query("i1", NOW_MS + ahead_ms)).encode()
    ingest.fold(record(event))
    letters = [out for out in ingest.outputs() if out.topic == "queries.dlq"]

    assert len(letters) == n_letters
    for letter in letters:
        reason = dict(letter.headers)[HEADER_PREFIX + "exception.message"].decode()
        assert f"at most 300000 ms ahead of {NOW_MS}" in reason
        assert f"got {NOW_MS + ahead_ms}" in reason


def test_an_end_record_passes_every_window() -> None:
    """The source's last frontier lies behind the last window."""
    ingest = stage()
    ingest.fold(record(json.dumps(query("i1")).encode()))
    ingest.fold(record(b"", headers=(END_HEADER,)))

    frontiers = [e for e in elements(ingest.outputs()) if isinstance(e, Frontier)]

    assert {(f.at_ms, f.state) for f in frontiers} == {(NOW_MS + 330_001, ENDED)}
    assert ingest.counters()["consumed"] == 1


def test_a_source_that_had_ended_holds_time_once_it_is_taken_over() -> None:
    """Another that ends first would make late what came to this one meanwhile."""
    ingest = stage()
    ingest.fold(record(json.dumps(query("i1")).encode()))
    ingest.fold(record(b"", headers=(END_HEADER,)))
    ingest.outputs()
    taken_over = stage()
    taken_over.restore(ingest.changes())
    taken_over.tick(at_end_ms=0)

    frontiers = [e for e in elements(taken_over.outputs()) if isinstance(e, Frontier)]

    assert {(f.at_ms, f.state) for f in frontiers} == {(NOW_MS + 330_001, ACTIVE)}


@pytest.mark.parametrize("value", [b'{"a": 1}', b"[1, 2]", b"", None])
def test_what_its_sender_could_not_adapt_is_one_letter_with_its_words(
    value: bytes | None,
) -> None:
    """As it came, be it an array, an event of ours or nothing."""
    ingest = stage()
    header = refused_header("no-list: a list must be there; got none")
    ingest.fold(record(value, headers=(header,)))

    (letter,) = (out for out in ingest.outputs() if out.topic == "queries.dlq")

    told = dict(letter.headers)
    assert letter.value == value
    assert told[HEADER_PREFIX + "code"] == b"not-adapted"
    assert told[HEADER_PREFIX + "exception.message"] == (
        b"no-list: a list must be there; got none"
    )
    assert ingest.counters()["consumed"] == ingest.counters()["dead_letter"] == 1


def test_a_click_carries_what_a_dead_letter_will_need() -> None:
    """Its own bytes, and where they stood."""
    ingest = Ingest("clicks", 2, Settings())
    raw = b'{"impression_id":"i","query_id":"q","at_ms":1700000000000,"position":1}'
    ingest.fold(SourceRecord("clicks", 2, 9, NOW_MS, None, b"[3," + raw + b"]", ()))

    (click,) = events(ingest.outputs())

    assert isinstance(click, Click)
    assert click.raw == raw
    assert click.origin == ("clicks", 2, 9, 1)


def test_large_batches_are_cut_by_bytes() -> None:
    """No record of the canonical log grows past the limit of a batch."""
    ingest = stage()
    shown = [f"{'x' * 200}{number}" for number in range(500)]
    for number in range(30):
        event = query("one query", NOW_MS, shown=shown)
        event["impression_id"] = f"i{number}"
        ingest.fold(record(json.dumps(event).encode()))

    sizes = [len(output.value or b"") for output in ingest.outputs()]

    # Four or five events of 100 kB each, and the frontiers of the other partitions.
    assert 5 < len(sizes) < 12
    assert max(sizes) <= 512 * 1024


def test_a_restored_state_is_the_state() -> None:
    """Restoring what `changes` gave, and asking again, gives the same bytes."""
    ingest = stage()
    for number in range(30):
        ingest.fold(record(json.dumps(query(f"i{number}")).encode()))
    ingest.outputs()
    (state,) = ingest.changes()
    resumed = stage()
    resumed.restore([Change(state.topic, state.key, state.value)])

    assert next(iter(resumed.changes())).value == state.value


def test_stages_that_counted_differently_have_other_fingerprints() -> None:
    """Even where they have written the same number of records."""
    ingest, other = stage(), stage()
    before = other.fingerprint()
    other.fold(record(b"7"))

    assert ingest.fingerprint() == before
    assert other.fingerprint() != before
