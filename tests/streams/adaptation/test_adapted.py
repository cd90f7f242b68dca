"""Documents into records of the input topics."""

import json
import random
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.adapters.known_queries import KnownQueries
from rankstream.settings import Settings, SourceSettings
from rankstream.wire.bounds import WIRE_BYTES
from rankstream.wire.input_events import REFUSED_HEADER
from rankstream.wire.routing import partition_of_input
from rankstream.wire.topics import CLICKS, MAX_EVENT_BYTES, QUERIES, dead_letters
from streams.adaptation import adapted
from streams.adaptation.adapted import (
    ORIGIN_HEADER,
    TOGETHER,
    Adaptation,
    sources_of,
)
from streams.adaptation.merge import Document, Merge
from streams.ingest.ingest import Ingest
from streams.local import local_settings
from streams.stage import Output, SourceRecord

AT_MS = 1_600_000_000_000

N_PARTITIONS = 3


def adaptation(queries: KnownQueries | None = None) -> Adaptation:
    """Of three sources: UBI, events of ours, and CloudEvents of these."""
    sources = {
        "ubi": SourceSettings(topic="ubi-topic", format="ubi"),
        "own": SourceSettings(topic="own-topic", format="rankstream"),
        "cloud": SourceSettings(topic="cloud-topic", format="cloudevents"),
    }
    return Adaptation(sources_of(sources), N_PARTITIONS, queries or KnownQueries())


def shown(n: int, **fields: Any) -> dict[str, Any]:
    """A query of UBI."""
    return {
        "query_id": f"l{n}", "user_query": f"q{n}", "timestamp": AT_MS + n,
        "query_response_hit_ids": ["a", "b"],
    } | fields  # fmt: skip


def clicked(n: int, **fields: Any) -> dict[str, Any]:
    """A click on its second hit, which does not name the query."""
    attributes = {"object": {"object_id": "b"}, "position": {"ordinal": 2}}
    return {
        "action_name": "click", "query_id": f"l{n}", "timestamp": AT_MS + n,
        "event_attributes": attributes,
    } | fields  # fmt: skip


def document(value: Any, offset: int = 7) -> Document:
    """As it stands in a topic."""
    return Document(offset, AT_MS, json.dumps(value).encode())


def events_in(outputs: list[Output]) -> list[tuple[str, int, dict[str, Any]]]:
    """Topic, partition and event of all that is in records without headers."""
    found = []
    for output in outputs:
        value = json.loads(output.value or b"")
        for each in value if isinstance(value, list) else [value]:
            found.append((output.topic, output.partition, each))
    return found


def test_lists_and_clicks_go_where_a_sender_of_ours_sends_them() -> None:
    """By the bytes of the event, whatever record they share."""
    own = adaptation()
    for n in range(200):
        assert own.take("ubi-topic", 0, document(shown(n)))
        assert own.take("ubi-topic", 1, document(clicked(n)))
    outputs = own.outputs()
    found = events_in(outputs)
    assert Counter(topic for topic, _, _ in found) == {QUERIES: 200, CLICKS: 200}
    for _, partition, event in found:
        value = json.dumps(event, separators=(",", ":")).encode()
        assert partition == partition_of_input(None, value, N_PARTITIONS)
    sizes = [len(events_in([each])) for each in outputs]
    assert max(sizes) == TOGETHER
    assert own.outputs() == []
    assert {key: n for key, n in own.counts.items() if key[1] == "ubi"} == {
        ("documents_read", "ubi"): 400,
        ("queries_adapted", "ubi"): 200,
        ("clicks_adapted", "ubi"): 200,
    }


@given(st.sets(st.integers(0, 99)))
def test_where_commits_fall_changes_no_event_and_no_partition(cuts: set[int]) -> None:
    """Only which events share a record."""
    whole, cut = adaptation(), adaptation()
    parts: list[Output] = []
    for n in range(100):
        for each in (whole, cut):
            each.take("ubi-topic", 0, document(shown(n)))
        if n in cuts:
            parts += cut.outputs()
    parts += cut.outputs()

    def by_place(outputs: list[Output]) -> dict[tuple[str, int], list[str]]:
        found: dict[tuple[str, int], list[str]] = {}
        for topic, partition, event in events_in(outputs):
            found.setdefault((topic, partition), []).append(event["impression_id"])
        return found

    assert by_place(parts) == by_place(whole.outputs())


def test_what_is_refused_keeps_its_bytes_its_reason_and_its_place() -> None:
    """And ingestion makes a dead letter of it."""
    own = adaptation()
    wrong = clicked(1, user_query="q1")
    wrong["event_attributes"]["position"]["ordinal"] = 0
    assert own.take("ubi-topic", 2, document(wrong, offset=41))
    (output,) = own.outputs()
    assert (output.topic, output.value) == (CLICKS, json.dumps(wrong).encode())
    headers = dict(output.headers)
    assert headers[ORIGIN_HEADER] == b"ubi-topic[2]@41"
    assert headers[REFUSED_HEADER].startswith(b"ordinal: ordinal must be")
    (refusal,) = own.refusals
    assert (refusal.source, refusal.code) == ("ubi", "ordinal")
    assert own.counts["documents_refused", "ubi"] == 1

    ingest = Ingest(CLICKS, 0, local_settings(Settings()))
    ingest.fold(SourceRecord(CLICKS, 0, 0, AT_MS, None, output.value, output.headers))
    (letter, *_) = ingest.outputs()
    assert letter.topic == dead_letters(CLICKS)
    assert letter.value == output.value
    assert dict(letter.headers)["__rankstream.errors.code"] == b"not-adapted"
    assert dict(letter.headers)[ORIGIN_HEADER] == b"ubi-topic[2]@41"


def test_a_click_waits_for_its_list_only_where_it_may() -> None:
    """What it does not name, the list says; without it the click is refused."""
    own = adaptation()
    assert not own.take("ubi-topic", 0, document(clicked(5)), may_wait=True)
    assert own.outputs() == []
    assert not own.counts["documents_read", "ubi"]
    assert own.take("ubi-topic", 1, document(shown(5)), may_wait=True)
    assert own.take("ubi-topic", 0, document(clicked(5)), may_wait=True)
    found = events_in(own.outputs())
    assert [event["query_id"] for _, _, event in found] == ["q5", "q5"]
    assert own.take("ubi-topic", 0, document(clicked(6)))
    assert [each.code for each in own.refusals] == ["no-query"]


def test_clicks_that_wait_behind_each_other_s_lists_wait_for_nothing() -> None:
    """Taken in one millisecond: no order of the two partitions has lists first."""
    own, merge = adaptation(), Merge[str]()
    held = {"a": [clicked(1), shown(2)], "b": [clicked(2), shown(1), clicked(3)]}
    merge.start(held)
    for place, values in held.items():
        merge.add(place, (document(value, n) for n, value in enumerate(values)))
    merge.begin((), now_ms=AT_MS + 10**6)
    while (head := merge.head()) is not None:
        ahead = (("ubi-topic", other) for _, other in merge.look_ahead())
        may_wait = not head.was_held
        if own.take("ubi-topic", 0, head.document, may_wait=may_wait, ahead=ahead):
            merge.pass_on()
        else:
            merge.hold(1_000)
    found = events_in(own.outputs())
    queries = Counter(event["query_id"] for _, _, event in found)
    # What is refused goes as it came, and has the id of its list there.
    assert queries == {"q1": 2, "q2": 2, "l3": 1}
    assert [each.words[:20] for each in own.refusals] == ["a click must have us"]
    assert own.counts["documents_read", "ubi"] == 5


def test_a_list_that_comes_again_is_not_learned_before_its_time() -> None:
    """Clicks between the two go where the first one went."""
    own = adaptation()
    assert own.take("ubi-topic", 0, document(shown(1)))
    again = document(shown(1, user_query="other"))
    ahead = [("ubi-topic", again), ("own-topic", document({"what": "ever"}))]
    assert not own.take(
        "ubi-topic", 0, document(clicked(9)), may_wait=True, ahead=ahead
    )
    assert own.take("ubi-topic", 0, document(clicked(1)))
    found = events_in(own.outputs())
    assert [event["query_id"] for _, _, event in found] == ["q1", "q1"]


def test_an_array_is_many_documents_and_a_tombstone_none() -> None:
    """Each is taken or refused by itself."""
    own = adaptation()
    assert own.take("ubi-topic", 0, document([shown(1), 5, clicked(1)]))
    assert own.take("ubi-topic", 0, Document(8, AT_MS, None))
    assert own.take("own-topic", 0, document([{"at_ms": AT_MS, "shown": ["a"]}]))
    outputs = own.outputs()
    refused = [each for each in outputs if each.headers]
    assert [each.value for each in refused] == [b"5"]
    events = events_in([each for each in outputs if not each.headers])
    assert sorted(topic for topic, _, _ in events) == [CLICKS, QUERIES, QUERIES]
    assert own.counts["documents_silent", "ubi"] == 1


def test_an_array_holds_so_many_documents_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One with more is refused as a whole, and so is one with none."""
    monkeypatch.setattr(adapted, "MAX_ELEMENTS", 3)
    for n, n_events, codes in (
        (3, 3, []),
        (4, 0, ["no-object"]),
        (0, 0, ["no-object"]),
    ):
        own = adaptation()
        assert own.take("ubi-topic", 0, document([shown(i) for i in range(n)]))
        taken = [each for each in own.outputs() if not each.headers]
        assert len(events_in(taken)) == n_events
        assert [each.code for each in own.refusals] == codes


BINARY = (("ce_specversion", b"1.0"), ("ce_id", b"7"), ("ce_source", b"/shop"))


def test_headers_name_one_event_so_an_array_behind_them_is_none() -> None:
    """Two clicks of one id would be one click."""
    own = adaptation()
    one = {"at_ms": AT_MS, "impression_id": "i", "query_id": "q", "item_id": "a"}
    both = document([one, one | {"item_id": "b"}])._replace(headers=BINARY)
    assert own.take("cloud-topic", 0, both)
    assert [each.code for each in own.refusals] == ["no-event"]
    (output,) = own.outputs()
    assert output.value == both.value
    assert own.take("cloud-topic", 0, document(one)._replace(headers=BINARY))
    ((_, _, event),) = events_in(own.outputs())
    assert event == one | {"event_id": "/shop#7"}


def test_an_array_of_envelopes_is_one_event_each() -> None:
    """Whatever other headers its record has, and those of other formats."""
    own = adaptation()
    click = {"at_ms": AT_MS, "impression_id": "i", "query_id": "q", "item_id": "a"}
    envelopes = [
        {"specversion": "1.0", "id": name, "source": "/shop", "data": click}
        for name in ("1", "2")
    ]
    several = document(envelopes)._replace(headers=(("ce_id", b"7"), ("x", b"y")))
    assert own.take("cloud-topic", 0, several)
    assert own.take("own-topic", 0, document([click, click])._replace(headers=BINARY))
    found = [event for _, _, event in events_in(own.outputs())]
    assert [each.get("event_id") for each in found] == [
        "/shop#1",
        "/shop#2",
        None,
        None,
    ]


def test_an_array_may_stand_behind_blanks() -> None:
    """As pretty-printers leave them."""
    own = adaptation()
    value = b" \r\n\t" + json.dumps([shown(1), shown(2)], indent=1).encode()
    assert own.take("ubi-topic", 0, Document(7, AT_MS, value))
    assert own.counts["queries_adapted", "ubi"] == 2


def test_a_document_with_a_number_without_an_end_is_a_dead_letter() -> None:
    """It must not end the role, which would read it again and again."""
    own = adaptation()
    for offset, number in enumerate((10**400, -(10**400), 10**4299)):
        assert own.take("ubi-topic", 0, document(clicked(1, timestamp=number), offset))
        assert own.take("own-topic", 0, document({"at_ms": number}, offset))
    assert [each.code for each in own.refusals] == ["time", "no-event"] * 3
    assert len(own.outputs()) == 6


@pytest.mark.parametrize("topic", ["ubi-topic", "own-topic"])
def test_what_no_topic_takes_is_cut_off_and_says_so(topic: str) -> None:
    """An event or a document of any size makes a record that fits."""
    own = adaptation()
    large = shown(1, query_response_hit_ids=["x" * (9 << 20)])
    ours = {"at_ms": AT_MS, "impression_id": "i", "query_id": "q" * (9 << 20),
            "shown": ["a"]}  # fmt: skip
    assert own.take(topic, 0, document(large if topic == "ubi-topic" else ours))
    assert own.take("ubi-topic", 0, Document(9, AT_MS, b"{" * (20 << 20)))
    for output in own.outputs():
        headers = sum(len(n) + len(c) for n, c in output.headers)
        assert len(output.value or b"") + headers <= MAX_EVENT_BYTES - 512
        assert output.headers
        # No more is cut off than must be.
        assert len(output.value or b"") > MAX_EVENT_BYTES - 2_048
    assert [each.code for each in own.refusals] == ["too-large", "not-json"]
    assert f"must fit {MAX_EVENT_BYTES - WIRE_BYTES} bytes" in own.refusals[0].words


def seen(n: int, place: int, later_ms: int = 0) -> dict[str, Any]:
    """An impression of UBI: item `i<place>` of a list that no query tells."""
    return {
        "action_name": "impression", "query_id": f"l{n}", "user_query": f"q{n}",
        "timestamp": AT_MS + later_ms,
        "event_attributes": {
            "object": {"object_id": f"i{place}"}, "position": {"ordinal": place},
        },
    }  # fmt: skip


def test_impressions_wait_for_those_behind_them() -> None:
    """Then the first makes their list, and the others say nothing."""
    own = adaptation()
    both = [document(seen(1, 2)), document(seen(1, 1))]
    own.note("ubi-topic", both)
    assert not own.take("ubi-topic", 0, both[0], may_wait=True)
    assert own.take("ubi-topic", 0, both[0])
    assert own.take("ubi-topic", 0, both[1], may_wait=True)
    ((_, _, event),) = events_in(own.outputs())
    assert (event["query_id"], event["shown"]) == ("q1", ["i1", "i2"])
    assert own.counts["documents_silent", "ubi"] == 1


def test_a_list_that_was_not_written_is_made_again() -> None:
    """Though its queries were known already in the session that failed."""
    own = adaptation()
    for _ in range(2):
        own.start()
        own.note("ubi-topic", [document(seen(1, 1))])
        assert own.take("ubi-topic", 0, document(seen(1, 1)))
        assert len(events_in(own.outputs())) == 1
    own.written()
    own.start()
    own.note("ubi-topic", [document(seen(1, 1))])
    assert own.take("ubi-topic", 0, document(seen(1, 1)), may_wait=True)
    assert own.outputs() == []


@pytest.mark.parametrize("seed", range(6))
def test_each_list_is_written_once_however_reading_is_cut_and_killed(seed: int) -> None:
    """With all its items, though they lie in two partitions and come in pieces.

    As the role reads, waits and writes; a kill is of a process, or of a session.
    """
    draw = random.Random(seed)  # noqa: S311
    parts: dict[int, list[Document]] = {0: [], 1: []}
    n_lists, n_items = 40, 4
    for at_ms, n, place in sorted(
        (AT_MS + 100 * n + draw.randrange(5_000), n, place)
        for n in range(n_lists)
        for place in [*range(1, n_items + 1), 1]
    ):
        part = parts[draw.randrange(2)]
        value = json.dumps(seen(n, place, at_ms - AT_MS)).encode()
        part.append(Document(len(part), at_ms, value))
    written: list[dict[str, Any]] = []
    positions, n_kills = {0: 0, 1: 0}, 0
    own, merge = adaptation(), Merge[int]()
    merge.start(parts)
    read = dict(positions)
    while any(positions[p] < len(parts[p]) for p in parts):
        for p, part in parts.items():
            piece = part[read[p] : read[p] + draw.randrange(1, 9)]
            read[p] += len(piece)
            merge.add(p, piece)
            own.note("ubi-topic", piece)
        merge.begin([p for p in parts if read[p] < len(parts[p])], now_ms=AT_MS + 10**6)
        passed: dict[int, int] = {}
        while (head := merge.head()) is not None and len(passed) < 30:
            if head.was_held and not merge.is_read_ahead():
                break
            may_wait = not head.was_held
            if own.take("ubi-topic", head.place, head.document, may_wait=may_wait):
                merge.pass_on()
                passed[head.place] = head.document.offset + 1
            else:
                merge.hold(10_000)
        if draw.random() < 0.2 and n_kills < 9:
            n_kills += 1
            if draw.random() < 0.5:
                queries = KnownQueries()
                for event in written:
                    queries[event["impression_id"]] = event["query_id"]
                own = adaptation(queries)
            own.start()
            merge.start(parts)
            read = dict(positions)
            continue
        written += [event for _, _, event in events_in(own.outputs())]
        own.written()
        positions |= passed
    assert n_kills
    assert Counter(event["impression_id"] for event in written) == {
        f"l{n}": 1 for n in range(n_lists)
    }
    assert {tuple(event["shown"]) for event in written} == {("i1", "i2", "i3", "i4")}
