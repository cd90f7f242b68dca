"""Lists that only impression events tell: of all that was noted, in any order."""

import itertools
import json
import random
from typing import Any

import pytest

from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.impressions import (
    MOST_OF_LIST,
    Awaited,
    Awaiting,
    Impression,
    Making,
    Seen,
    SeenItems,
    shown_items,
)
from rankstream.adapters.known_queries import KnownQueries
from rankstream.adapters.registry import adapter_named

AT_MS = 1_733_788_889_378

Document = dict[str, Any]


def impression(
    place: int, item: str, at_ms: int = AT_MS, list_id: str = "l1", **fields: Any
) -> Document:
    """An item that was seen."""
    return {
        "action_name": "impression", "query_id": list_id, "user_query": "red",
        "client_id": "c", "timestamp": at_ms,
        "event_attributes": {
            "object": {"object_id": item}, "position": {"ordinal": place},
        },
    } | fields  # fmt: skip


def query(**fields: Any) -> Document:
    """A query whose answer has no list."""
    return {"query_id": "l1", "user_query": "Red", "timestamp": AT_MS} | fields


class Reader:
    """Reads all documents ahead, then adapts one after another."""

    def __init__(self, **options: Any) -> None:
        self.options = AdapterOptions(**options)
        self.queries, self.items = KnownQueries(), SeenItems()
        self.refused: list[str] = []

    def adapt(self, document: Document, seen: Seen) -> list[Document]:
        """The events of one."""
        raw = json.dumps(document).encode()
        found = adapter_named("ubi").adapt(raw, self.options, (), self.queries, seen)
        return [json.loads(each.value) for each in found]

    def lists(self, *documents: Document) -> list[Document]:
        """The lists that come of these."""
        for each in documents:
            self.adapt(each, Seen(self.items))
        found = []
        for each in documents:
            try:
                found += self.adapt(each, Making(self.items))
            except NotAdapted as error:
                self.refused.append(f"{error.kind}: {error.code}")
        return found


def test_impressions_of_a_query_are_its_list_by_place() -> None:
    """With the query, the user and the time of the first."""
    reader = Reader()
    (event,) = reader.lists(
        impression(2, "b", AT_MS + 5), impression(3, "c"), impression(1, "a", AT_MS + 9)
    )
    assert event == {
        "impression_id": "l1",
        "query_id": "red",
        "at_ms": AT_MS,
        "shown": ["a", "b", "c"],
        "user": "c",
    }
    assert (reader.refused, len(reader.items), reader.items.n_made) == ([], 0, 1)


def test_no_order_and_no_repeat_changes_a_list() -> None:
    """Of two at one place the earlier counts, and of two places of an item too."""
    seen = [
        impression(1, "a"),
        impression(2, "b", AT_MS + 1),
        impression(2, "x", AT_MS + 2),
        impression(3, "a", AT_MS + 3),
        impression(3, "c", AT_MS + 4),
    ]
    found = set()
    for order in itertools.permutations(range(len(seen))):
        repeats = [seen[n] for n in (*order, *order[:3])]
        (event,) = Reader().lists(*repeats)
        found.add(json.dumps(event))
    (one,) = found
    assert json.loads(one)["shown"] == ["a", "b", "c"]


def test_what_is_seen_later_than_it_may_be_is_not_of_the_list() -> None:
    """The window begins at the first that was seen."""
    seen = [impression(1, "a", AT_MS), impression(2, "b", AT_MS + 10_000)]
    late = impression(3, "c", AT_MS + 10_001)
    (event,) = Reader().lists(*seen, late)
    assert event["shown"] == ["a", "b"]
    (event,) = Reader(impression_ms=10_001).lists(*seen, late)
    assert event["shown"] == ["a", "b", "c"]
    assert Reader(impression_ms=0).lists(*seen) == []


def test_a_list_ends_before_a_place_that_nobody_saw() -> None:
    """Else an item would count at a rank that it did not have."""
    (event,) = Reader().lists(
        impression(1, "a"), impression(2, "b"), impression(4, "d")
    )
    assert event["shown"] == ["a", "b"]
    (event,) = Reader(ordinals=False).lists(impression(4, "d"), impression(2, "b"))
    assert event["shown"] == ["b", "d"]


@pytest.mark.parametrize("places", [(0, 1), (3, 4), (-1, 1)])
def test_a_list_that_does_not_begin_at_the_base_is_refused_once(
    places: tuple[int, int],
) -> None:
    """And its other impressions are passed over, not made a list without the first."""
    reader = Reader()
    assert reader.lists(*(impression(p, f"i{p}") for p in (*places, 2))) == []
    assert reader.refused == ["queries: ordinal"]
    (event,) = Reader(ordinal_base=0).lists(impression(0, "a"), impression(1, "b"))
    assert event["shown"] == ["a", "b"]


def test_the_refusal_names_the_option() -> None:
    """Of base 0, or of lists that begin elsewhere."""
    seen = [Impression(AT_MS, 0, "a", "l1"), Impression(AT_MS, 1, "b", "l1")]
    with pytest.raises(NotAdapted, match="list 'l1' begins at 0: set ordinal_base = 0"):
        shown_items(seen, AdapterOptions())
    with pytest.raises(NotAdapted, match="begins at 1: set ordinals = false"):
        shown_items(seen[1:], AdapterOptions(ordinal_base=0))


@pytest.mark.parametrize("is_first", [True, False])
def test_a_list_of_its_own_counts_before_impressions(is_first: bool) -> None:
    """Whichever comes first."""
    own = query(query_response_hit_ids=["x", "y"])
    documents = [own, impression(1, "a")]
    reader = Reader()
    (event,) = reader.lists(*(documents if is_first else reversed(documents)))
    assert event["shown"] == ["x", "y"]
    assert (reader.items.n_made, len(reader.items)) == (0, 0)


@pytest.mark.parametrize("hits", [{}, {"query_response_hit_ids": []}])
def test_a_query_without_hits_has_the_list_that_was_seen(hits: Document) -> None:
    """And gives it its text, where impressions have none."""
    reader = Reader()
    (event,) = reader.lists(query(**hits), impression(1, "a", user_query=None))
    assert event["shown"] == ["a"]
    assert event["query_id"] == "Red"
    assert reader.refused == []


def test_a_query_of_which_nothing_was_seen_is_refused_as_before() -> None:
    """It showed something, and nobody says what."""
    reader = Reader()
    assert reader.lists(query(), impression(1, "a", list_id="l2"))[0]["shown"] == ["a"]
    assert reader.refused == ["queries: no-list"]


@pytest.mark.parametrize(
    "document",
    [
        impression(1, "a", event_attributes={"object": {"object_id": "a"}}),
        impression(1, "a", query_id=None),
        impression(1, ""),
    ],
)
def test_an_impression_without_place_query_or_item_says_nothing(
    document: Document,
) -> None:
    """As a view of one product, which is of no list."""
    reader = Reader()
    assert reader.lists(document) == []
    assert reader.refused == []


def test_a_click_without_its_query_takes_that_of_a_list_under_way() -> None:
    """Though the list itself is made later."""
    reader = Reader()
    reader.adapt(impression(1, "a"), Seen(reader.items))
    click = impression(1, "a", action_name="click", user_query=None)
    (event,) = reader.adapt(click, Making(reader.items))
    assert event["query_id"] == "red"


def test_impressions_wait_until_their_list_is_known() -> None:
    """Then they say nothing any more."""
    reader = Reader()
    with pytest.raises(Awaited) as awaited:
        reader.adapt(impression(1, "a"), Awaiting(reader.items))
    assert awaited.value.at_ms == AT_MS
    with pytest.raises(Awaited):
        reader.adapt(query(), Awaiting(reader.items))
    assert len(reader.lists(impression(1, "a"))) == 1
    assert reader.adapt(impression(2, "b"), Awaiting(reader.items)) == []
    assert reader.adapt(query(), Awaiting(reader.items)) == []


def test_memory_is_bounded_and_what_is_beyond_is_refused() -> None:
    """No list is made of a part of it."""
    reader = Reader()
    reader.items = SeenItems(most=3)
    found = reader.lists(
        impression(1, "a"), impression(2, "b"),
        impression(1, "a", list_id="l2"), impression(2, "b", list_id="l2"),
        impression(1, "a", list_id="l3"),
    )  # fmt: skip
    assert [(each["impression_id"], each["shown"]) for each in found] == [
        ("l1", ["a", "b"]),
        ("l3", ["a"]),
    ]
    assert reader.refused == ["queries: impressions"]

    reader = Reader()
    long = [impression(n, f"i{n}") for n in range(1, MOST_OF_LIST + 2)]
    assert (reader.lists(*long), reader.refused) == ([], ["queries: impressions"])


def test_random_impressions_are_listed_as_by_looking_at_each() -> None:
    """A second way: place after place, the earliest that is free."""
    draw = random.Random(3)  # noqa: S311
    for _ in range(300):
        seen = [
            Impression(
                AT_MS + draw.randrange(4), draw.randrange(1, 6), draw.choice("abcdef"),
                "l1",
            )
            for _ in range(draw.randrange(1, 12))
        ]  # fmt: skip
        places: dict[int, str] = {}
        left = sorted(set(seen))
        while left:
            first = left.pop(0)
            places[first.ordinal] = first.item
            left = [
                each
                for each in left
                if each.ordinal != first.ordinal and each.item != first.item
            ]
        expected = []
        for place in range(1, 7):
            if place not in places:
                break
            expected.append(places[place])
        if not expected:
            with pytest.raises(NotAdapted):
                shown_items(seen, AdapterOptions())
        else:
            assert shown_items(seen, AdapterOptions()) == expected


@pytest.mark.parametrize("texts", [("boots", "shoes"), ("shoes", "boots")])
def test_of_several_texts_of_a_query_the_least_counts(texts: tuple[str, str]) -> None:
    """In whatever order their documents come."""
    seen = SeenItems()
    for text in texts:
        seen.note_query("l1", text)
    seen.note(Impression(AT_MS, 0, "a", "l1"))
    assert seen.query_of("l1", AdapterOptions()) == "boots"
