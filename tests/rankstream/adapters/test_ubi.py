"""Documents of UBI: lists, clicks, and what is neither."""

import json
from typing import Any

import pytest

from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import adapter_named
from rankstream.wire.routing import routed_impression_id
from rankstream.wire.topics import CLICKS, QUERIES

AT = "2024-12-10T00:01:29.378Z"
AT_MS = 1_733_788_889_378

QUERY = {
    "application": "shop",
    "query_id": "l1",
    "client_id": "c1",
    "user_query": "Red  Shoes",
    "query_attributes": {"experiment": "e"},
    "timestamp": AT,
    "query_response_hit_ids": ["a", "b", 7],
}
EVENT = {
    "action_name": "click",
    "query_id": "l1",
    "user_query": "Red  Shoes",
    "timestamp": AT,
    "event_attributes": {
        "object": {"object_id": "b", "object_id_field": "sku"},
        "position": {"ordinal": 2, "xy": {"x": 3, "y": 4}},
    },
}


def adapted(
    document: object, queries: KnownQueries | None = None, **options: Any
) -> list[tuple[int, str, dict[str, Any]]]:
    """The events of a document, decoded."""
    raw = document if isinstance(document, bytes) else json.dumps(document).encode()
    chosen = AdapterOptions(**options)
    events = adapter_named("ubi").adapt(raw, chosen, (), queries)
    return [(each.at_ms, each.kind, json.loads(each.value)) for each in events]


def seen(item: object, **place: object) -> dict[str, Any]:
    """A click on an item."""
    attributes = {"object": {"object_id": item}, "position": place}
    return EVENT | {"event_attributes": attributes}


def test_a_query_with_its_hits_is_a_list() -> None:
    """Its id joins clicks, its text is the query, whole numbers are names."""
    assert adapted(QUERY) == [
        (
            AT_MS,
            QUERIES,
            {
                "impression_id": "l1",
                "query_id": "Red  Shoes",
                "at_ms": AT_MS,
                "shown": ["a", "b", "7"],
                "user": "c1",
            },
        )
    ]


def test_an_action_on_an_object_is_a_click() -> None:
    """With the action's own name."""
    assert adapted(EVENT | {"action_name": "add_to_cart", "event_id": "e9"}) == [
        (
            AT_MS,
            CLICKS,
            {
                "impression_id": "l1",
                "query_id": "Red  Shoes",
                "at_ms": AT_MS,
                "item_id": "b",
                "action": "add_to_cart",
                "position": 2,
                "event_id": "e9",
            },
        )
    ]


@pytest.mark.parametrize(
    "name",
    [
        "query_response_hit_ids",
        "query_response_object_ids",
        "query_response_objects_ids",
    ],
)
def test_the_list_has_three_names(name: str) -> None:
    """And others where the options say so."""
    fields = {k: v for k, v in QUERY.items() if k != "query_response_hit_ids"}
    ((_, _, event),) = adapted(fields | {name: ["x", "y"]})
    assert event["shown"] == ["x", "y"]

    with pytest.raises(NotAdapted, match="hit_fields") as refusal:
        adapted(fields | {"hits": ["x"]})
    assert (refusal.value.code, refusal.value.kind) == ("no-list", QUERIES)
    assert adapted(fields | {"hits": ["x"]}, hit_fields=("hits",))


def test_names_of_users_and_sessions_are_taken_and_empty_ones_are_none() -> None:
    """`user_id` comes before `client_id`."""
    ((_, _, both),) = adapted(QUERY | {"user_id": "u", "session_id": "s"})
    ((_, _, empty),) = adapted(QUERY | {"user_id": "", "session_id": ""})

    assert (both["user"], both["session"]) == ("u", "s")
    assert (empty["user"], "session" in empty) == ("c1", False)


@pytest.mark.parametrize(
    "document",
    [
        QUERY | {"query_response_hit_ids": []},
        QUERY | {"query_response_hit_ids": None},
        EVENT | {"action_name": "impression"},
        EVENT | {"action_name": "view"},
        EVENT | {"event_attributes": None},
        {"action_name": "search", "message": "red", "timestamp": AT},
        EVENT | {"event_attributes": {"object": {"url": "/docs"}}},
        EVENT | {"event_attributes": {"position": {}}},
    ],
)
def test_what_shows_and_clicks_nothing_says_nothing(document: object) -> None:
    """Searches without hits, items that were seen, actions on no object."""
    assert adapted(document) == []


def test_options_say_which_actions_are_what() -> None:
    """A hover is a click unless it is left out."""
    hover = EVENT | {"action_name": "hover"}
    assert adapted(hover)
    assert adapted(hover, actions=("click", "purchase")) == []
    assert adapted(hover, impression_actions=("hover",)) == []


def test_the_base_of_ordinals_is_a_setting_and_zero_names_it() -> None:
    """Counted from 1 unless it says 0."""
    ((_, _, first),) = adapted(seen("b", ordinal=0), ordinal_base=0)
    assert first["position"] == 1
    with pytest.raises(NotAdapted, match="set ordinal_base = 0") as refusal:
        adapted(seen("b", ordinal=0))
    assert refusal.value.code == "ordinal"
    with pytest.raises(NotAdapted, match="at least 0"):
        adapted(seen("b", ordinal=-1), ordinal_base=0)


@pytest.mark.parametrize("place", [{}, {"xy": {"x": 1, "y": 2}}, {"ordinal": None}])
def test_without_an_ordinal_the_item_says_where_the_click_was(
    place: dict[str, object],
) -> None:
    """And so it does where ordinals are not to be believed."""
    ((_, _, event),) = adapted(seen("b", **place))
    assert "position" not in event
    ((_, _, event),) = adapted(EVENT, ordinals=False)
    assert "position" not in event


def test_a_click_without_its_query_takes_that_of_its_list() -> None:
    """Where the caller remembers it; else it would go to another partition."""
    mute = {k: v for k, v in EVENT.items() if k != "user_query"}
    with pytest.raises(NotAdapted, match='set query = "id"') as refusal:
        adapted(mute)
    assert refusal.value.code == "no-query"

    queries = KnownQueries()
    adapted(QUERY, queries)
    other = EVENT | {"user_query": "something else"}
    for document in (mute, other):
        ((_, _, event),) = adapted(document, queries)
        assert event["query_id"] == "Red  Shoes"

    ((_, _, event),) = adapted(mute, query="id")
    ((_, _, shown),) = adapted(QUERY, query="id")
    assert event["query_id"] == shown["query_id"] == "l1"


def test_a_list_of_our_own_routes_its_clicks() -> None:
    """Its id says where it went."""
    list_id = routed_impression_id("l1", 77)
    mute = {k: v for k, v in EVENT.items() if k != "user_query"}

    ((_, _, event),) = adapted(mute | {"query_id": list_id})

    assert event["impression_id"] == list_id
    assert "query_id" not in event


@pytest.mark.parametrize("text", ["", "  ", None])
def test_a_list_without_a_query_is_named_by_its_id(text: object) -> None:
    """So are its clicks, where it is remembered."""
    queries = KnownQueries()
    ((_, _, event),) = adapted(QUERY | {"user_query": text}, queries)
    assert event["query_id"] == "l1"
    ((_, _, click),) = adapted(EVENT | {"user_query": text}, queries)
    assert click["query_id"] == "l1"


def test_what_copies_of_an_index_put_around_a_document_is_taken_off() -> None:
    """As tools write it that dump an index."""
    wrapped = {"_index": "ubi_events", "_id": "x", "_source": EVENT}
    assert adapted(wrapped) == adapted(EVENT)


@pytest.mark.parametrize(
    ("document", "code", "kind"),
    [
        (b"nonsense", "not-json", CLICKS),
        (b'{"query_response_hit_ids": [', "not-json", QUERIES),
        (b"\xff\xfe", "not-json", CLICKS),
        (b"[" * 100_000, "not-json", CLICKS),
        ([1], "no-object", CLICKS),
        ({}, "no-id", QUERIES),
        (QUERY | {"query_id": None}, "no-id", QUERIES),
        (QUERY | {"query_id": {"a": 1}}, "type", QUERIES),
        (QUERY | {"query_id": True}, "type", QUERIES),
        (QUERY | {"user_query": ["red"]}, "type", QUERIES),
        (QUERY | {"query_response_hit_ids": {"a": 1}}, "type", QUERIES),
        (QUERY | {"query_response_hit_ids": "a"}, "type", QUERIES),
        (QUERY | {"query_response_hit_ids": [None]}, "type", QUERIES),
        (QUERY | {"query_response_hit_ids": [1.5]}, "type", QUERIES),
        (QUERY | {"timestamp": None}, "time", QUERIES),
        (QUERY | {"timestamp": 1_733_788_889}, "time", QUERIES),
        (EVENT | {"query_id": None}, "no-id", CLICKS),
        (EVENT | {"action_name": ["click"]}, "type", CLICKS),
        (EVENT | {"event_attributes": []}, "type", CLICKS),
        (EVENT | {"event_attributes": {"object": "b"}}, "type", CLICKS),
        (seen({"id": 1}), "type", CLICKS),
        (seen("b", ordinal="2"), "type", CLICKS),
        (seen("b", ordinal=2.5), "type", CLICKS),
        (seen("b", ordinal=True), "type", CLICKS),
        (EVENT | {"timestamp": "soon"}, "time", CLICKS),
    ],
)
def test_what_cannot_be_adapted_is_refused_with_a_reason(
    document: object, code: str, kind: str
) -> None:
    """Of a list among the letters of lists, else among those of clicks."""
    with pytest.raises(NotAdapted) as refusal:
        adapted(document)
    assert (refusal.value.code, refusal.value.kind) == (code, kind)
    assert str(refusal.value)
