"""Sorting by time, in memory and on disk."""

import random

import pytest

from producers.external_sort import OrderedEvents
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES


def shuffled(n_events, seed=0):
    """Events with many equal times, in any order; some are documents that are none."""
    rng = random.Random(seed)  # noqa: S311  no secret
    return [
        Event(
            rng.randrange(n_events // 3),
            rng.choice((QUERIES, CLICKS)),
            b"%d" % n,
            "" if n % 7 else f"no-id: Nümber {n}",
        )
        for n in range(n_events)
    ]


@pytest.mark.parametrize("memory_bytes", [1, 5_000, 1 << 30])
def test_the_order_is_that_of_a_stable_sort(memory_bytes, tmp_path):
    """Whatever memory there is; readable twice; nothing stays on disk."""
    events = shuffled(700)
    expected = sorted(events, key=lambda event: event.at_ms)
    with OrderedEvents(
        iter(events), memory_bytes=memory_bytes, scratch=tmp_path
    ) as ordered:
        assert list(ordered) == expected
        assert list(ordered) == expected
        assert ordered.n_events == 700
        assert (ordered.n_runs > 0) == (memory_bytes < 1 << 30)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("memory_bytes", [5_000, 1 << 30])
def test_events_can_keep_their_order(memory_bytes, tmp_path):
    """On disk, too."""
    events = shuffled(700)
    with OrderedEvents(
        events, memory_bytes=memory_bytes, scratch=tmp_path, is_sorted=False
    ) as ordered:
        assert list(ordered) == events


def test_disordered_events_are_counted():
    """Those that come after a later one."""
    times = [5, 7, 6, 7, 1, 9]
    with OrderedEvents([Event(at, QUERIES, b"") for at in times]) as ordered:
        assert ordered.n_disordered == 2


def test_a_source_that_breaks_leaves_nothing_on_disk(tmp_path):
    """And its error comes through."""

    def broken():
        yield from shuffled(300)
        raise ValueError("line 301")

    with pytest.raises(ValueError, match="line 301"):
        OrderedEvents(broken(), memory_bytes=1_000, scratch=tmp_path)
    assert list(tmp_path.iterdir()) == []
