"""What is foretold of an order bounds what the folds do with it."""

import json
import random

import msgspec
import pytest

from producers.prescan import forecast
from rankstream.settings import Settings, TimeSettings
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline, local_settings

START_MS = 1_600_000_000_000


def query(name, at_ms):
    """A query event at a time after the start."""
    fields = {"impression_id": name, "query_id": "q", "shown": ["a"]}
    return Event(START_MS + at_ms, QUERIES,
                 json.dumps(fields | {"at_ms": START_MS + at_ms}).encode())  # fmt: skip


def click(name, at_ms):
    """A click event at a time after the start."""
    fields = {"impression_id": name, "query_id": "q", "position": 1}
    return Event(START_MS + at_ms, CLICKS,
                 json.dumps(fields | {"at_ms": START_MS + at_ms}).encode())  # fmt: skip


def test_sorted_events_are_never_late():
    """Only a click without impression remains."""
    events = [query("a", 0), click("a", 1_000), click("x", 2_000), query("b", 900_000)]
    found = forecast(events, disorder_ms=30_000, window_ms=300_000)
    assert (found.queries, found.clicks, found.late, found.orphans) == (2, 2, 0, 1)
    assert (found.disordered, found.first_ms) == (0, START_MS)


def test_the_window_holds_for_clicks_on_open_impressions():
    """A click after the window's end is late, one at its end is not."""
    events = [query("a", 0), click("a", 300_000), click("a", 300_001)]
    found = forecast(events, disorder_ms=30_000, window_ms=300_000)
    assert (found.late, found.orphans) == (1, 0)


@pytest.mark.parametrize("seed", range(5))
def test_the_forecast_bounds_what_the_folds_count(seed):
    """Shuffled within twice the disorder, taken one event at a time."""
    rng = random.Random(seed)  # noqa: S311  no secret
    events = []
    for number in range(600):
        at_ms = number * 2_000
        events.append(query(f"i{number}", at_ms))
        events += [
            click(f"i{number}", at_ms + rng.randrange(1, 70_000))
            for _ in range(rng.randrange(3))
        ]
    events.sort(key=lambda event: event.at_ms + rng.randrange(-60_000, 60_000))
    time = TimeSettings(disorder_ms=20_000, click_window_ms=50_000, remember_ms=1)
    found = forecast(events, disorder_ms=20_000, window_ms=50_000)
    settings = msgspec.structs.replace(local_settings(Settings()), time=time)
    pipeline = LocalPipeline(settings, now=lambda: START_MS + 10_000_000)
    for event in events:
        pipeline.send(event.kind, event.value)
        pipeline.flush()
    pipeline.end()
    counters = pipeline.counters()
    counted = counters["late"] + counters["orphan"]
    # The pipeline's time believes a source only after some events: a little later.
    assert counted > 100
    assert counted <= found.late + found.orphans <= 1.1 * counted
