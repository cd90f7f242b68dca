"""The order in which events come changes no count, and nothing counts twice."""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.dead_letter import HEADER_PREFIX
from streams.local import LocalPipeline, local_settings
from streams.stage import Output

NOW_MS = 1_700_000_000_000
STEP_MS = 1_000
N_LISTS = 400

Sent = tuple[int, str, bytes]


def events(disorder_ms: int) -> list[Sent]:
    """Lists, clicks on them, repeats of both and orphans: time, topic, bytes."""
    rng = np.random.default_rng(11)
    found: list[Sent] = []

    def add(topic: str, **event: Any) -> None:
        found.append((event["at_ms"], topic, json.dumps(event).encode()))

    for number in range(N_LISTS):
        at_ms = NOW_MS - STEP_MS * (2 * N_LISTS - number)
        named = {"impression_id": f"i{number}", "query_id": f"q{number % 7}"}
        shown = [f"d{item}" for item in rng.permutation(4)]
        add(QUERIES, **named, at_ms=at_ms, shown=shown, candidates=sorted(shown))
        for _ in range(int(rng.integers(3))):
            clicked_ms = at_ms + int(rng.integers(disorder_ms // 4))
            position = int(rng.integers(1, 5))
            add(CLICKS, **named, at_ms=clicked_ms, position=position)
        if number % 20 == 0:
            found.append((at_ms + 3, *found[-1][1:]))
            add(CLICKS, **{**named, "impression_id": "never"}, at_ms=at_ms, position=1)
    return found


def counted(sent: list[Sent], settings: Settings) -> tuple[Any, dict[str, int]]:
    """Statistics and outcomes of events in an order."""
    pipeline = LocalPipeline(settings, now=lambda: NOW_MS)
    for _, topic, value in sent:
        pipeline.send(topic, value)
    pipeline.end()
    statistics = sorted((each.key, each.value) for each in pipeline.statistics())
    return statistics, pipeline.counters()


@pytest.mark.parametrize("seed", range(6))
def test_order_within_the_disorder_changes_no_count(seed: int) -> None:
    """Each event is moved by less than half of the disorder, also before its list."""
    settings = local_settings(Settings())
    disorder_ms = settings.time.disorder_ms
    sent = events(disorder_ms)
    in_order = sorted(sent)
    rng = np.random.default_rng(seed)
    moved_ms = rng.integers(disorder_ms // 2, size=len(sent)).tolist()
    moved = [
        each for _, each in sorted(zip(
            [at_ms + by_ms for (at_ms, *_), by_ms in zip(sent, moved_ms, strict=True)],
            sent, strict=True,
        ))
    ]  # fmt: skip
    assert moved != in_order
    expected, outcomes = counted(in_order, settings)
    found, others = counted(moved, settings)
    assert found == expected
    for name in ("applied_impressions", "applied_clicks", "orphan", "duplicate"):
        assert others[name] == outcomes[name]
    assert outcomes["late"] == others["late"] == 0
    assert outcomes["orphan"] == N_LISTS // 20
    assert outcomes["duplicate"] >= N_LISTS // 20


def test_a_dead_letter_that_is_sent_again_twice_counts_once() -> None:
    """Its time has come when it is sent again; the second time it is a repeat."""
    letters: list[Output] = []
    clock_ms = [NOW_MS]
    settings = local_settings(Settings())
    pipeline = LocalPipeline(
        settings,
        now=lambda: clock_ms[0],
        on_output=lambda out: (
            letters.append(out) if out.topic.endswith("dlq") else None
        ),
    )
    ahead_ms = 2 * settings.time.ahead_ms
    event = {"impression_id": "i", "query_id": "q", "at_ms": NOW_MS + ahead_ms}
    pipeline.send(QUERIES, json.dumps({**event, "shown": ["a", "b"]}).encode())
    pipeline.flush()
    (letter,) = letters
    assert dict(letter.headers)[HEADER_PREFIX + "code"] == b"time-future"
    clock_ms[0] += ahead_ms
    for _ in range(2):
        assert letter.value is not None
        pipeline.send(QUERIES, letter.value)
    pipeline.end()
    outcomes = Counter(pipeline.counters())
    assert outcomes["applied_impressions"] == 1
    assert outcomes["duplicate"] == 1
    assert len(letters) == 1


def test_clicks_at_one_place_are_two_if_their_times_differ() -> None:
    """Else the second is a repeat, however often it comes."""
    pipeline = LocalPipeline(local_settings(Settings()), now=lambda: NOW_MS)
    named = {"impression_id": "i", "query_id": "q"}
    shown = named | {"at_ms": NOW_MS, "shown": ["a", "b"]}
    pipeline.send(QUERIES, json.dumps(shown).encode())
    for after_ms in (1, 8, 1, 8, 8):
        click = named | {"at_ms": NOW_MS + after_ms, "position": 2}
        pipeline.send(CLICKS, json.dumps(click).encode())
    pipeline.end()
    outcomes = pipeline.counters()
    assert outcomes["applied_clicks"] == 2
    assert outcomes["duplicate"] == 3
