"""Queries of lists: the newest are known, and memory has a bound."""

import pytest

from rankstream.adapters.known_queries import KnownQueries
from rankstream.wire.bounds import MAX_ID_CHARACTERS, MAX_QUERY_CHARACTERS


def n_characters(known: KnownQueries) -> int:
    """Of all that is remembered."""
    return sum(len(list_id) + len(query) for list_id, query in known.items())


@pytest.mark.parametrize("most", [2, 10, 1_000])
def test_the_newest_lists_are_known_and_no_more_than_the_bound(most: int) -> None:
    """At least half of them, at any time."""
    known = KnownQueries(most)
    for number in range(5 * most):
        known[f"l{number}"] = f"q{number % 3}"
        assert len(known) == len(list(known)) <= most
        for newer in range(max(0, number - most // 2 + 1), number + 1):
            assert known[f"l{newer}"] == f"q{newer % 3}"
    assert "l0" not in known


def test_long_names_take_no_more_room_than_short_ones() -> None:
    """The bound is on characters as well."""
    known = KnownQueries(most_characters=10_000)
    for number in range(1_000):
        known[f"{number}-".ljust(MAX_ID_CHARACTERS, "i")] = f"{number}".ljust(200, "q")
        assert n_characters(known) <= 10_000
    assert len(known) > 10


@pytest.mark.parametrize(
    ("list_id", "query"),
    [
        ("i" * (MAX_ID_CHARACTERS + 1), "q"),
        ("i", "q" * (MAX_QUERY_CHARACTERS + 1)),
        ("i" * (1 << 20), "q" * (1 << 20)),
    ],
)
def test_what_ingestion_refuses_is_not_remembered(list_id: str, query: str) -> None:
    """It pushes out nothing that a click may need."""
    known = KnownQueries()
    known["good"] = "query"
    known[list_id] = query
    assert dict(known) == {"good": "query"}


def test_names_at_their_longest_are_remembered() -> None:
    """As ingestion takes them."""
    known = KnownQueries()
    list_id, query = "i" * MAX_ID_CHARACTERS, "q" * MAX_QUERY_CHARACTERS
    known[list_id] = query
    assert known[list_id] == query


def test_the_last_query_of_a_list_counts_and_it_can_be_forgotten() -> None:
    """Whichever half it is in."""
    known = KnownQueries(4)
    for number in range(3):
        known[f"l{number}"] = "old"
    known["l0"] = "new"
    assert (known["l0"], known["l2"]) == ("new", "old")
    assert sorted(known) == ["l0", "l1", "l2"]
    for list_id in list(known):
        del known[list_id]
    assert not known
    with pytest.raises(KeyError):
        del known["l0"]
