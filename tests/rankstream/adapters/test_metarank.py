"""Feedback events of Metarank: lists, clicks, and metadata."""

import json
from typing import Any

import pytest

from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import adapter_named
from rankstream.wire.topics import CLICKS, QUERIES

RANKING = {
    "event": "ranking",
    "id": "r1",
    "timestamp": "1599391467000",
    "user": "u1",
    "session": "s1",
    "fields": [{"name": "query", "value": "cat"}, {"name": "source", "value": "web"}],
    "items": [
        {"id": "a", "fields": [{"name": "price", "value": 3}]},
        {"id": "b", "fields": [{"name": "price", "value": 4.5}]},
    ],
}
INTERACTION = {
    "event": "interaction",
    "id": "e1",
    "ranking": "r1",
    "timestamp": "1599391468000",
    "user": "u1",
    "session": "s1",
    "type": "purchase",
    "item": "b",
    "fields": [{"name": "query", "value": "cat"}],
}


def adapted(
    document: object, queries: KnownQueries | None = None, **options: Any
) -> list[tuple[int, str, dict[str, Any]]]:
    """The events of a document, decoded."""
    raw = json.dumps(document).encode()
    chosen = AdapterOptions(**options)
    events = adapter_named("metarank").adapt(raw, chosen, (), queries)
    return [(each.at_ms, each.kind, json.loads(each.value)) for each in events]


def test_a_ranking_is_a_list_with_features_that_all_items_have() -> None:
    """In the order of their names."""
    assert adapted(RANKING, model="old") == [
        (
            1_599_391_467_000,
            QUERIES,
            {
                "impression_id": "r1",
                "query_id": "cat",
                "at_ms": 1_599_391_467_000,
                "shown": ["a", "b"],
                "model": "old",
                "user": "u1",
                "session": "s1",
                "features": [[3], [4.5]],
            },
        )
    ]


@pytest.mark.parametrize(
    "fields",
    [
        None,
        [],
        [{"name": "price", "value": "4"}],
        [{"name": "price", "value": True}],
        [{"name": "price", "value": 10**400}],
        [{"name": "price", "value": 1}, {"name": "stock", "value": 2}],
    ],
)
def test_features_that_some_item_lacks_are_none(fields: object) -> None:
    """Text and truth are no numbers, nor is what no float holds."""
    rows = [RANKING["items"][0], {"id": "b", "fields": fields}]
    ((_, _, event),) = adapted(RANKING | {"items": rows})
    assert "features" not in event


def test_features_are_in_the_order_of_their_names() -> None:
    """However each item has them."""
    price, stock = {"name": "price", "value": 1}, {"name": "stock", "value": 2}
    rows = [
        {"id": "a", "fields": [stock, price]},
        {"id": "b", "fields": [price, stock]},
    ]
    ((_, _, event),) = adapted(RANKING | {"items": rows})
    assert event["features"] == [[1, 2], [1, 2]]


def test_an_interaction_is_a_click_with_its_id() -> None:
    """Its type is the action."""
    assert adapted(INTERACTION) == [
        (
            1_599_391_468_000,
            CLICKS,
            {
                "impression_id": "r1",
                "query_id": "cat",
                "at_ms": 1_599_391_468_000,
                "item_id": "b",
                "action": "purchase",
                "event_id": "e1",
            },
        )
    ]


def test_without_a_query_a_click_takes_that_of_its_list() -> None:
    """Metarank joins by the ranking alone, so most say none."""
    mute = {k: v for k, v in INTERACTION.items() if k != "fields"}
    with pytest.raises(NotAdapted, match='set query = "id"'):
        adapted(mute)
    queries = KnownQueries()
    adapted(RANKING, queries)
    ((_, _, event),) = adapted(mute, queries)
    assert event["query_id"] == "cat"
    ((_, _, event),) = adapted(mute, query="id")
    assert event["query_id"] == "r1"


@pytest.mark.parametrize(
    "document",
    [
        {"event": "item", "id": "x", "item": "a", "timestamp": "1", "fields": []},
        {"event": "user", "id": "x", "user": "u", "timestamp": "1", "fields": []},
        INTERACTION | {"type": "impression"},
        RANKING | {"items": []},
    ],
)
def test_metadata_says_nothing(document: object) -> None:
    """Nor does an item that was only seen."""
    assert adapted(document) == []


@pytest.mark.parametrize(
    ("document", "code", "kind"),
    [
        ({}, "event", CLICKS),
        ({"event": ["ranking"]}, "event", CLICKS),
        (RANKING | {"id": None}, "no-id", QUERIES),
        (RANKING | {"items": None}, "no-list", QUERIES),
        (RANKING | {"items": {"a": 1}}, "type", QUERIES),
        (RANKING | {"items": ["a"]}, "type", QUERIES),
        (RANKING | {"items": [{}]}, "no-id", QUERIES),
        (RANKING | {"fields": {"query": "cat"}}, "type", QUERIES),
        (RANKING | {"fields": [{"name": 3.5}]}, "type", QUERIES),
        (RANKING | {"timestamp": "1599391467"}, "time", QUERIES),
        (INTERACTION | {"ranking": None}, "no-id", CLICKS),
        (INTERACTION | {"item": ""}, "no-id", CLICKS),
        (INTERACTION | {"type": None}, "type", CLICKS),
        (INTERACTION | {"id": {}}, "type", CLICKS),
    ],
)
def test_what_cannot_be_adapted_is_refused_with_a_reason(
    document: object, code: str, kind: str
) -> None:
    """Of a list among the letters of lists, else among those of clicks."""
    with pytest.raises(NotAdapted) as refusal:
        adapted(document)
    assert (refusal.value.code, refusal.value.kind) == (code, kind)
