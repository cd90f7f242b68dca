"""What is accepted at a look, ingestion accepts; and nearly all clicks are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.operations.serving.document_checks import PlainClicks, plain_clicks
from rankstream.wire.bounds import MAX_CLICK_BYTES
from rankstream.wire.topics import BATCH_BYTES
from streams.dead_letter import Origin
from streams.ingest.elements import elements_of
from streams.ingest.validation import EventValidator
from tests.hostile import NOW_MS, hostile_records, strange_but_good

PLACE = Origin("clicks", 0, 0, 0)
CLICK: dict[str, Any] = {
    "impression_id": "i", "query_id": "q", "at_ms": NOW_MS, "position": 1,
}  # fmt: skip

TEXT = st.one_of(
    st.text(max_size=3),
    st.sampled_from(
        ["", " ", "\u00a0", "\u2003\t", "é", "x" * 256, "x" * 257, "q" * 5_000]
    ),
)
NUMBER = st.one_of(
    st.integers(),
    st.integers(NOW_MS - 10, NOW_MS + 400_000),
    st.sampled_from([0, 1, 10_000, 10_001, 2**63, NOW_MS // 1_000, NOW_MS * 1_000]),
)
FIELDS = {
    "impression_id": TEXT, "query_id": TEXT, "item_id": TEXT, "action": TEXT,
    "event_id": TEXT, "at_ms": NUMBER, "position": NUMBER, "schema": NUMBER,
    "surprise": TEXT,
}  # fmt: skip


def looked(body: bytes) -> PlainClicks | None:
    """As the server looks at a body."""
    return plain_clicks(body, latest_ms=NOW_MS + 300_000, most=10_000)


def check(body: bytes) -> None:
    """Ingestion accepts all that a look does, as the same events."""
    found = looked(body)
    if found is not None:
        validator = EventValidator(max_documents=10_000, ahead_ms=300_000)
        values = [value for each in found.records for value in elements_of(each)]
        for value in values:
            validator.click(value, NOW_MS, PLACE)
        assert values == elements_of(body)
        assert len(values) == found.n


@given(
    st.lists(
        st.builds(
            lambda changes, left_out: {
                k: v for k, v in (CLICK | changes).items() if k not in left_out
            },
            st.fixed_dictionaries({}, optional=FIELDS),
            st.sets(st.sampled_from(sorted(CLICK)), max_size=1),
        ),
        max_size=3,
    ),
    st.booleans(),
)
def test_what_a_look_accepts_ingestion_accepts(
    events: list[dict[str, Any]], is_one: bool
) -> None:
    """Whatever the fields hold."""
    check(json.dumps(events[0] if is_one and events else events).encode())


@pytest.mark.parametrize("name", sorted(hostile_records()))
def test_hostile_records_are_no_plain_clicks(name: str) -> None:
    """Each is looked at as ingestion does."""
    assert looked(hostile_records()[name] or b"") is None


@pytest.mark.parametrize("name", sorted(strange_but_good()))
def test_strange_events_are_none_either(name: str) -> None:
    """They are lists."""
    assert looked(strange_but_good()[name]) is None


def test_ordinary_clicks_are_accepted_at_a_look() -> None:
    """One, or many, as one record that is the body; with spaces around them."""
    one = json.dumps(CLICK).encode()
    many = b"[" + one + b" ,\n" + one + b"]"
    assert looked(one) == (1, [one])
    assert looked(many) == (2, [many])
    full = CLICK | {"item_id": "a", "action": "buy", "event_id": "e", "schema": 1}
    assert looked(json.dumps(full).encode())
    assert looked(b"[]") is None


@pytest.mark.parametrize("n_spaces", [0, 1])
@pytest.mark.parametrize("n_others", [0, 1, 1_000])
def test_a_click_is_no_larger_than_ingestion_takes(
    n_spaces: int, n_others: int
) -> None:
    """However many are beside it, and whatever makes it large."""
    one = json.dumps(CLICK).encode()
    wide = one[:-1] + b" " * (MAX_CLICK_BYTES - len(one) + n_spaces) + b"}"
    body = b"[" + b",".join([one] * n_others + [wide]) + b"]" if n_others else wide
    assert (looked(body) is None) == bool(n_spaces)
    check(body)


def test_a_large_body_is_parted_into_records_of_the_size_of_a_batch() -> None:
    """All clicks are in them, in their order."""
    events = [CLICK | {"event_id": f"{n:0200}"} for n in range(4_000)]
    body = json.dumps(events).encode()
    found = looked(body)
    assert found is not None
    assert len(found.records) == -(-len(body) // BATCH_BYTES) == 3
    assert max(map(len, found.records)) <= BATCH_BYTES
    check(body)
