"""What is accepted at a look, ingestion accepts; and nearly all clicks are."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rankstream.operations.serving.document_checks import plain_clicks
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


def looked(body: bytes) -> list[bytes] | None:
    """As the server looks at a body."""
    return plain_clicks(body, latest_ms=NOW_MS + 300_000, most=10_000)


def check(body: bytes) -> None:
    """Ingestion accepts all that a look does, as the same events."""
    found = looked(body)
    if found is not None:
        validator = EventValidator(max_documents=10_000, ahead_ms=300_000)
        for value in found:
            validator.click(value, NOW_MS, PLACE)
        assert found == elements_of(body)


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
    """One, or many; with spaces around them."""
    one = json.dumps(CLICK).encode()
    assert looked(one) == [one]
    assert looked(b"[" + one + b" ,\n" + one + b"]") == [one, one]
    full = CLICK | {"item_id": "a", "action": "buy", "event_id": "e", "schema": 1}
    assert looked(json.dumps(full).encode())
    assert looked(b"[]") is None
    assert looked(one[:-1] + b" " * 70_000 + b"}") is None
