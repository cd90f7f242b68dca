"""A query with its segment: one form for each pair, and one route for all of them."""

import itertools
from typing import Any

import pytest

from rankstream.wire.routing import hash_of_query, normalised_query, route_of_query
from rankstream.wire.segments import query_in_segment, query_of_list

TEXTS = ["a", "b", "a b", "b a", "a\x1fb", "A", "\x1fa", "␟", "a␟b"]


def test_no_two_pairs_have_one_form() -> None:
    """Unless their query and their segment are the same, each by itself."""
    pairs = [*itertools.product(TEXTS, TEXTS)]
    named = {(normalised_query(q), normalised_query(s)) for q, s in pairs}
    forms = {query_in_segment(q, s) for q, s in pairs}
    assert len(forms) == len(named) < len(pairs)
    assert not forms & {normalised_query(f"{q} {s}") for q, s in pairs}


def test_a_route_is_that_of_the_query_and_a_hash_is_not() -> None:
    """Clicks find their lists without a segment; decisions are told apart by it."""
    forms = [query_in_segment("red shoes", x) for x in ("nl", "de")]
    assert {*map(route_of_query, forms)} == {route_of_query("red shoes")}
    assert len({*map(hash_of_query, [*forms, "red shoes"])}) == 3
    assert hash_of_query("red shoes") == route_of_query("red shoes")


def test_lists_are_named_as_their_attributes_say() -> None:
    """By one attribute alone; without a setting by none."""
    told = {"country": " NL", "device": "tv"}
    assert query_of_list("Q", told, "country") == query_in_segment("q", "nl")
    assert query_of_list("Q", told, "device") == query_in_segment("q", "tv")
    assert query_of_list("Q", told, "") == query_of_list("Q", None, "") == "q"
    assert query_of_list(" ", None, "country") == ""


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "it is missing"),
        ({}, "it is missing"),
        ({"country": None}, "it is missing"),
        ({"country": 31}, "must be text; got 31"),
        ({"country": ["nl"]}, "must be text"),
        ({"country": ""}, "a visible character"),
        ({"country": " \x1f "}, "a visible character"),
        ({"country": "x" * 257}, "at most 256 characters; got 257"),
    ],
)
def test_a_list_without_a_segment_is_refused(
    told: dict[str, Any] | None, why: str
) -> None:
    """And told which attribute it is."""
    with pytest.raises(ValueError, match=why):
        query_of_list("q", told, "country")
