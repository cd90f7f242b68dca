"""Features from a table beside what was counted: of whole sets alone."""

from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from producers.formats.feature_rows import FeatureRows
from producers.formats.joined_features import FeatureTable
from rankstream.operations.answers import counted_features
from rankstream.operations.answers.counted_features import recorded_beside
from rankstream.wire.candidates import candidates_key
from rankstream.wire.segments import query_in_segment

RED = query_in_segment("Red", "nl")
SETS = {RED: ("a", "b"), "blue": ("a", "c"), "green": ("d",)}


def table_of(**rows: str) -> FeatureTable:
    """Items of each query with a feature that counts rows."""
    queries = [query for query, items in rows.items() for _ in items]
    features = np.arange(len(queries), dtype=np.float32)[:, None]
    return FeatureTable(
        FeatureRows(["x"], queries, [*"".join(rows.values())], features)
    )


@pytest.fixture(autouse=True)
def _counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """One set of candidates of each query, in one era."""
    scopes = [
        SimpleNamespace(query=query, candidate_set=b"set", era=0, is_growing=False)
        for query in SETS
    ]
    sums = SimpleNamespace(
        scopes=lambda: scopes, items=lambda query, *_: SETS[query][::-1]
    )
    monkeypatch.setattr(counted_features, "Statistics", lambda _: sums)


def test_a_set_is_taken_where_each_item_has_a_row() -> None:
    """A segment's query has the rows of the query; a set that lacks one is left."""
    table = table_of(red="ba", blue="a", green="d")
    found: Any = recorded_beside({}, table).candidates
    red, green = (
        candidates_key(query, b"set", table.list_hash) for query in (RED, "green")
    )
    assert {*found} == {red, green}
    taken = msgspec.msgpack.decode(found[red])
    assert np.array([1, 0], "<f4").tobytes() in taken


def test_where_no_set_is_whole_an_item_is_named() -> None:
    """The first that has no row."""
    with pytest.raises(ValueError, match=r"none of 3 sets has all; item 'b' of query"):
        recorded_beside({}, table_of(red="a"))
