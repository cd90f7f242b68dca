"""When lists of a simulation are shown, in event time."""

from typing import cast

import msgspec
import numpy as np
import pytest

from models.click_models.registry import click_model_of
from producers.formats.letor import generated_queries
from producers.simulation import CLICK_MS, Plan, Progress, simulate, start_ms_for
from producers.topic_reader import Record, TopicReader, newest_ms, reached_ms
from rankstream.ranker import Ranker
from rankstream.wire.events import ACTIVE, ENDED, Frontier, encode_record
from rankstream.wire.topics import QUERIES
from tests.snapshot_factory import envelope

NOW_MS, AHEAD_MS, STEP_MS = 1_750_000_000_000, 300_000, 1_000
PLAN = Plan(100, 0, STEP_MS)
LONG_MS = PLAN.n_impressions * STEP_MS
LAST_CLICK_MS = PLAN.cutoff * CLICK_MS


def started(after_ms: int | None, namespace: str = "") -> int:
    """The time of the first list."""
    return start_ms_for(
        PLAN, now_ms=NOW_MS, after_ms=after_ms, ahead_ms=AHEAD_MS, namespace=namespace
    )


def test_the_last_list_is_of_now_where_nothing_is_in_the_way() -> None:
    """Or where what was before is long ago."""
    start_ms = NOW_MS - LONG_MS
    assert started(None) == start_ms
    assert started(start_ms - 1) == start_ms
    assert started(start_ms) == start_ms + 1


def test_lists_come_after_what_was_shown_before() -> None:
    """As long as none is too far ahead of the clock."""
    largest = NOW_MS + AHEAD_MS - LONG_MS - LAST_CLICK_MS - 1
    assert started(largest) == largest + 1
    with pytest.raises(ValueError, match=r"time\.ahead_ms"):
        started(largest + 1)


def test_what_does_not_fit_is_refused_with_a_remedy() -> None:
    """Both times, and when it would fit."""
    after_ms = NOW_MS + AHEAD_MS
    with pytest.raises(ValueError, match="must come after") as refused:
        started(after_ms, "shop")
    said = str(refused.value)
    for words in (
        "namespace 'shop' is at 2025-06-15 15:11:40.000 UTC",
        "100 lists, 1 s apart, would end at 2025-06-15 15:13:30.000 UTC",
        "another --namespace",
        "try again after 2025-06-15 15:08:30.000 UTC",
    ):
        assert words in said, said
    with pytest.raises(ValueError, match="the default namespace is at"):
        started(after_ms)


class Sent:
    """Times of lists that were sent."""

    def __init__(self) -> None:
        self.times: list[int] = []

    def send(self, topic: str, value: bytes) -> None:
        """Of a sink."""
        if topic == QUERIES:
            self.times.append(msgspec.json.decode(value)["at_ms"])

    def flush(self) -> None:
        """Of a sink."""

    def end(self) -> None:
        """Of a sink."""


@pytest.mark.parametrize("is_live", [True, False])
def test_lists_after_a_pause_are_later_where_sources_fall_idle(
    is_live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By as much as it lasted, so that time which passed makes none of them late."""
    now_s, sent = [1_000.0], Sent()
    monkeypatch.setattr("producers.simulation.time.monotonic", lambda: now_s[0])

    def follow(progress: Progress) -> None:
        now_s[0] += {3: 7.5, 5: 40.0}.get(progress.shown, 0.01)

    rng = np.random.default_rng(1)
    queries = generated_queries(n_queries=2, n_documents=4, n_features=3, rng=rng)
    plan = Plan(6, NOW_MS, STEP_MS, learns_online=False, is_live=is_live)
    ranker = Ranker("m", source=envelope)
    users = click_model_of("perfect", 5)
    simulate(queries, users, ranker, sent, plan, rng=rng, on_progress=follow)
    steps = np.diff(sent.times) - STEP_MS
    assert steps.tolist() == [0, 0, 7_500 * is_live, 0, 40_000 * is_live]


class Log:
    """Frontiers at the end of `events`, of two partitions."""

    def __init__(self, *frontiers: Frontier) -> None:
        self._frontiers = frontiers

    def last_records(self, topic: str, n_offsets: int) -> list[Record]:
        """Of `TopicReader`."""
        assert topic == "events"
        assert n_offsets > 1
        return [
            Record(i % 2, i, 0, None, encode_record([1, 0, 1, [each]]), ())
            for i, each in enumerate(self._frontiers)
        ]


def test_the_newest_time_is_that_of_the_furthest_source() -> None:
    """Whether it is read or has ended; the slowest one is behind it."""
    log = Log(
        Frontier(0, 3, 50, ACTIVE),
        Frontier(1, 3, 90, ENDED),
        Frontier(2, 3, 30, ACTIVE),
        Frontier(0, 3, 60, ACTIVE),
        Frontier(1, 3, -1, ACTIVE),
    )
    reader = cast("TopicReader", log)
    assert (newest_ms(reader), reached_ms(reader)) == (90, 30)
    assert newest_ms(cast("TopicReader", Log())) is None
