"""Where records stand: those of one sender among others'."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from producers import event_sink
from producers.event_sink import SentRecords


class RecordPosition(NamedTuple):
    """Where a broker put a record."""

    partition: int
    offset: int


@given(st.sets(st.tuples(st.integers(0, 2), st.integers(0, 60))))
def test_its_own_records_are_told_from_all_others(places: set[tuple[int, int]]) -> None:
    """However they lie among them."""
    sent = SentRecords()
    for partition, offset in sorted(places):
        sent.add("clicks", RecordPosition(partition, offset))

    held = {(p, o) for p in range(4) for o in range(62) if sent.holds("clicks", p, o)}
    assert held == places
    assert not any(sent.holds("queries", p, o) for p, o in places)
    for first in range(62):
        n_left = sum(p == 0 and o >= first for p, o in places)
        assert sent.n_from("clicks", 0, first) == n_left
    assert sent.ends() == {
        ("clicks", p): max(o for q, o in places if q == p) + 1 for p, _ in places
    }


def test_a_record_that_the_broker_had_already_has_no_place() -> None:
    """It is counted: nothing is known of it."""
    sent = SentRecords()
    sent.add("clicks", RecordPosition(0, -1))
    assert (sent.n_unplaced, sent.ends()) == (1, {})


def test_runs_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound what lies between is taken for its own, and nothing is lost."""
    monkeypatch.setattr(event_sink, "MAX_RUNS", 3)
    sent = SentRecords()
    for offset in range(0, 20, 2):
        sent.add("clicks", RecordPosition(0, offset))
    assert all(sent.holds("clicks", 0, offset) for offset in range(0, 20, 2))
    assert not sent.holds("clicks", 0, 1)
    assert not sent.holds("clicks", 0, 19)
