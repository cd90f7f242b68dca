"""CloudEvents: two modes, one content."""

import base64
import json
from typing import Any

import pytest

from rankstream.adapters.adapter import AdapterOptions, Headers, NotAdapted
from rankstream.adapters.registry import adapter_named, options_of
from rankstream.wire.topics import CLICKS

CLICK = {"impression_id": "i", "query_id": "q", "item_id": "a"}
ENVELOPE = {
    "specversion": "1.0",
    "id": "7",
    "source": "/shop",
    "type": "click",
    "time": "2024-12-10T00:01:29.378Z",
    "data": CLICK,
}
AT_MS = 1_733_788_889_378
ADAPTED = CLICK | {"at_ms": AT_MS, "event_id": "/shop#7"}


def adapted(
    document: object, headers: Headers = (), **options: Any
) -> list[dict[str, Any]]:
    """The events of a document, decoded."""
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    chosen = AdapterOptions(**options)
    events = adapter_named("cloudevents").adapt(raw, chosen, headers)
    assert all(each.kind == CLICKS or "shown" in str(each.value) for each in events)
    return [json.loads(each.value) for each in events]


@pytest.mark.parametrize("prefix", ["ce_", "ce-", "CE-"])
def test_both_modes_give_the_same_event(prefix: str) -> None:
    """With the envelope's time, and an id of source and id."""
    headers = tuple(
        (prefix + name, str(value).encode())
        for name, value in ENVELOPE.items()
        if name != "data"
    )
    packed = base64.b64encode(json.dumps(CLICK).encode()).decode()
    bare = {k: v for k, v in ENVELOPE.items() if k != "data"}

    assert adapted(ENVELOPE) == [ADAPTED]
    assert adapted(CLICK, headers) == [ADAPTED]
    assert adapted(bare | {"data_base64": packed}) == [ADAPTED]


def test_what_an_event_says_itself_holds() -> None:
    """Its own time and id are not replaced."""
    own = CLICK | {"at_ms": 5, "event_id": "own"}
    assert adapted(ENVELOPE | {"data": own}) == [own]


def test_a_list_gets_no_event_id() -> None:
    """Its id is that of the list."""
    shown = {"impression_id": "i", "query_id": "q", "at_ms": 5, "shown": ["a"]}
    assert adapted(ENVELOPE | {"data": shown}) == [shown]


def test_it_may_carry_documents_of_others() -> None:
    """The envelope's time is theirs where they have none."""
    event = {
        "action_name": "click",
        "query_id": "i",
        "user_query": "q",
        "event_attributes": {"object": {"object_id": "a"}},
    }
    assert adapted(ENVELOPE | {"data": event}, data="ubi") == [
        ADAPTED | {"action": "click"}
    ]


def test_a_long_source_is_shortened_to_one_of_its_own() -> None:
    """Ingestion takes ids of 256 characters."""
    ids = {
        adapted(ENVELOPE | {"source": "x" * 300 + str(number)})[0]["event_id"]
        for number in range(3)
    }
    assert len(ids) == 3
    assert {len(each) for each in ids} == {32}


def test_a_mark_in_a_source_or_an_id_makes_no_two_events_one() -> None:
    """However long they are."""
    parts = [("a#b", "c"), ("a", "b#c"), ("", "a#b#c"), ("a#b#c", ""), ("a#", "b#c")]
    long = [(f"a#{'b' * 300}", "c"), ("a", f"{'b' * 300}#c")]
    ids = [
        adapted(ENVELOPE | {"source": source, "id": name})[0]["event_id"]
        for source, name in parts + long
        if name
    ]
    assert len({*ids}) == len(ids) == 6


@pytest.mark.parametrize("name", ["at_ms", "event_id"])
def test_what_is_null_is_not_there(name: str) -> None:
    """So the envelope says it."""
    assert adapted(ENVELOPE | {"data": CLICK | {name: None}}) == [ADAPTED]


def test_an_option_that_names_no_adapter_is_refused_where_it_is_set() -> None:
    """Before the first event."""
    with pytest.raises(ValueError, match="cloudevents"):
        options_of({"data": "cloudevents"})


@pytest.mark.parametrize(
    ("document", "headers", "code"),
    [
        (b"", (), "not-json"),
        (b"[1]", (), "not-json"),
        (CLICK, (), "specversion"),
        (ENVELOPE | {"specversion": "0.3"}, (), "specversion"),
        (ENVELOPE | {"specversion": 1.0}, (), "specversion"),
        (ENVELOPE | {"id": None}, (), "no-id"),
        (ENVELOPE | {"id": 7}, (), "type"),
        (ENVELOPE | {"source": {}}, (), "type"),
        (ENVELOPE | {"data": None}, (), "no-data"),
        ({k: v for k, v in ENVELOPE.items() if k != "data"}, (), "no-data"),
        (ENVELOPE | {"data_base64": "?"}, (), "no-data"),
        (ENVELOPE | {"data_base64": 5}, (), "not-json"),
        (ENVELOPE | {"data": "text"}, (), "no-event"),
        (ENVELOPE | {"time": "noon"}, (), "time"),
        (ENVELOPE | {"time": [1]}, (), "time"),
        (b"", (("ce_specversion", b"1.0"), ("ce_id", b"1")), "no-data"),
        (b"{", (("ce_specversion", b"1.0"), ("ce_id", b"1")), "no-event"),
        (
            b"{",
            (("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_time", b"1")),
            "not-json",
        ),
        (CLICK, (("ce_specversion", b"\xff"),), "specversion"),
    ],
)
def test_what_cannot_be_adapted_is_refused_with_a_reason(
    document: object, headers: Headers, code: str
) -> None:
    """Whatever is wrong with the envelope or in it."""
    with pytest.raises(NotAdapted) as refusal:
        adapted(document, headers)
    assert refusal.value.code == code
