"""Events of a run whose outcome is certain, in the order in which they are sent.

Event time passes by a step with each event, however fast they are sent. What must be
late, or a repeat of something long closed, is held until the watermark, as the sender
sees it in the canonical log, has passed what makes it so; nothing else comes so close
to a bound that an interleaving could change its outcome.
"""

import heapq
import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankstream.wire.routing import (
    normalised_query,
    partition_of_route,
    route_of_query,
)
from tests.fire.expectations import Expected, Letter, Shown
from tests.fire.hostile import Hostile, hostile_records
from tests.fire.lists import query_event

LEAST_STEP_MS, MOST_STEP_MS = 50, 600
WHOLE_MS = 1_800_000
"""Event time that a run covers at least."""

DISORDER_MS = 120_000
WINDOW_MS = 300_000
REMEMBER_MS = 300_000
KEEP_MS = 400_000
"""Eras are so short that several leave in a run."""

ACTIONS = {"click-1": "purchase", "click-2": "long"}
"""Classes of actions; others are clicks, of which statistics speak."""

JITTER_MS = 20_000
CLICK_MS = 60_000
LEAST_SLACK_MS = 10_000
N_QUERIES = 300


@dataclass(frozen=True)
class Event:
    """Something to send, not before a watermark, and never after another time.

    `expect` is told where it went: partition and offset at ingestion.
    """

    topic: str
    value: bytes | None
    partition_of_log: int = 0
    not_before_ms: int = -1
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    expect: Callable[[int, int], None] | None = None
    not_after_ms: int = 2**63
    timestamp_ms: int | None = None
    """What the record says of its own time, which nobody is to believe."""


@dataclass
class Past:
    """An impression that was sent, so that others can refer to it."""

    name: str
    query: str
    at_ms: int
    partition: int
    value: bytes
    n_shown: int
    clicks: list[bytes]


FASTER = 2.5
"""Event time passes so many times as fast as the clock at least, where it may."""


def step_of(n_events: int, rate: float | None = None) -> int:
    """Event time from one event to the next, milliseconds.

    Parameters
    ----------
    rate
        Events a second, where so few are sent that event time would pass slower than
        the clock.
    """
    by_the_clock = round(FASTER * 1_000 / rate) if rate else 0
    least = max(LEAST_STEP_MS, WHOLE_MS // n_events, by_the_clock)
    return min(MOST_STEP_MS, least)


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


class Events:
    """The events of a run; `expected` grows as they are taken.

    Attributes
    ----------
    unsent
        Kinds of hostile records that were not among them yet.

    Parameters
    ----------
    start_ms
        Event time of the first.
    now_ms
        The wall clock, for what is ahead of it.
    n_events
        How many to give, the bad ones included.
    n_partitions
        Of the canonical log.
    rate
        See `step_of`.
    """

    hostile_share = 0.02
    disorder_ms = DISORDER_MS

    def __init__(
        self,
        seed: int,
        start_ms: int,
        now_ms: int,
        n_events: int,
        n_partitions: int,
        *,
        rate: float | None = None,
    ) -> None:
        self.expected = Expected()
        self.now_ms = start_ms
        self.step_ms = step_of(n_events, rate)
        # The least frontier may be so far behind the newest event, less the disorder.
        self._slack_ms = max(LEAST_SLACK_MS, 100 * self.step_ms)
        self._rng = np.random.default_rng(seed)
        self.start_ms = start_ms
        self._n_events = n_events
        self._n_partitions = n_partitions
        self._number = 0
        self._planned: list[tuple[int, int, Event]] = []
        self._past: deque[Past] = deque()
        weights = 1.0 / np.arange(1, N_QUERIES + 1)
        self._cumulated = np.cumsum(weights / weights.sum())
        self.unsent = {one.name for one in hostile_records(start_ms, now_ms)}
        self._hostile = self._hostile_events(now_ms)

    @property
    def lasts_ms(self) -> int:
        """About how much event time passes."""
        return self._n_events * self.step_ms

    def time_ms(self) -> int:
        """The event time at which what is given now is sent."""
        return self.now_ms

    def __iter__(self) -> Iterator[Event]:
        for number in range(self._n_events):
            self.now_ms = self.start_ms + number * self.step_ms
            yield self._next(number)
        # Clicks without which an impression would be other than it was told to be.
        while self._planned:
            self.now_ms += self.step_ms
            yield heapq.heappop(self._planned)[2]

    def _next(self, number: int) -> Event:
        """What was planned for now, else something new."""
        if self._planned and self._planned[0][0] <= self.now_ms:
            return heapq.heappop(self._planned)[2]
        return self._new(number)

    def _new(self, number: int) -> Event:
        closed_ms = self.disorder_ms + WINDOW_MS + self._slack_ms
        past_ms = self.now_ms - self.start_ms
        kind = self._rng.random()
        if self._rng.random() < self.hostile_share:
            return next(self._hostile)
        if kind < 0.01:
            return self._orphan()
        if kind < 0.03 and past_ms > closed_ms + 70_000:
            return self._late()
        if kind < 0.05:
            repeat = self._repeat()
            if repeat is not None:
                return repeat
        return self._impression(number)

    def _plan(self, at_ms: int, event: Event) -> None:
        self._number += 1
        heapq.heappush(self._planned, (at_ms, self._number, event))

    def _impression(self, number: int) -> Event:
        rng = self._rng
        name = self._name_of_query()
        query = normalised_query(name)
        at_ms = self.now_ms - int(rng.integers(JITTER_MS))
        route = route_of_query(query)
        event = query_event(rng, number, name, at_ms)
        identity = event["impression_id"]
        value = _json(event)
        past = Past(
            identity,
            name,
            at_ms,
            partition_of_route(route, self._n_partitions),
            value,
            len(event["shown"]),
            [],
        )
        era = at_ms // KEEP_MS, past.partition
        shown = Shown(query, event["intervention"], tuple(event["shown"]), era)
        self.expected.shown[identity] = shown
        self._past.append(past)
        is_late_to_its_clicks = rng.random() < 0.1
        span_ms = self.now_ms - at_ms + 1 if is_late_to_its_clicks else CLICK_MS
        for number_of_click in range(int(rng.choice([0, 0, 0, 1, 1, 2, 3]))):
            self._click(past, shown, number_of_click, span_ms)
        if rng.random() < 0.03:
            self.expected.duplicates += 1
            self._plan(self.now_ms + int(rng.integers(30_000)), Event("queries", value))
        if rng.random() < 0.02:
            self._missed_click(past)
        if rng.random() < 0.01:
            self._click_after_the_window(past)
        if is_late_to_its_clicks and past.clicks:
            # Sent some seconds after its clicks, which wait for it.
            self._plan(self.now_ms + int(rng.integers(5_000)), Event("queries", value))
            for click in past.clicks[1:]:
                self._plan(self.now_ms, Event("clicks", click))
            return Event("clicks", past.clicks[0])
        for (click_ms, *_), click in zip(shown.marks, past.clicks, strict=True):
            self._plan(max(click_ms, self.now_ms + 500), Event("clicks", click))
        return Event("queries", value)

    def _click(self, past: Past, shown: Shown, number: int, span_ms: int) -> None:
        rng = self._rng
        position = int(rng.integers(1, past.n_shown + 1))
        at_ms = past.at_ms + int(rng.integers(span_ms))
        event: dict[str, Any] = {"impression_id": past.name, "at_ms": at_ms}
        form = rng.random()
        if form < 0.5:
            event["position"] = position
        else:
            event["item_id"] = shown.items[position - 1]
        if form < 0.3:
            event["query_id"] = past.query
        # One that is named, one that is what it says: repeats of both are known.
        event["event_id"] = f"{past.name}/{number}"
        if form > 0.8:
            del event["event_id"]
            event["action"] = f"click-{number}"
        shown.marks.append((at_ms, position, event.get("action", "click")))
        past.clicks.append(_json(event))

    def _missed_click(self, past: Past) -> None:
        """On a place that the list does not have."""
        place = {"position": past.n_shown + 1}
        if self._rng.random() < 0.5:
            place = {"position": 1, "item_id": "not shown"}  # type: ignore[dict-item]
        at_ms = past.at_ms + 1_000
        named = {"impression_id": past.name, "at_ms": at_ms, "action": "missed"}
        value = _json({**named, **place})
        delay_ms = int(self._rng.integers(1_000, CLICK_MS))
        self._plan(self.now_ms + delay_ms, self._dying("clicks", value))

    def _dying(self, topic: str, value: bytes) -> Event:
        def expect(partition: int, offset: int) -> None:
            letter = Letter(value, "not-shown", is_of_join=True)
            self.expected.letters[topic, partition, offset, 0] = letter

        return Event(topic, value, expect=expect)

    def _click_after_the_window(self, past: Past) -> None:
        """Late whether its impression is open or closed."""
        at_ms = past.at_ms + WINDOW_MS + 1 + int(self._rng.integers(20_000))
        event = {"impression_id": past.name, "at_ms": at_ms, "position": 1}
        value = _json({**event, "action": "belated"})

        def expect(_: int, __: int) -> None:
            self.expected.aside["late", value] += 1

        self._plan(at_ms + 1, Event("clicks", value, expect=expect))

    def _orphan(self) -> Event:
        """Of an impression that never was."""
        self._number += 1
        at_ms = self.now_ms - int(self._rng.integers(JITTER_MS))
        named = {"impression_id": f"never {self._number}", "at_ms": at_ms}
        query = self._name_of_query()
        value = _json({**named, "position": 1, "query_id": query})
        self.expected.aside["orphan", value] += 1
        return Event("clicks", value)

    def _late(self) -> Event:
        """An impression whose window has closed, sometimes with a click."""
        self._number += 1
        name = self._name_of_query()
        ago_ms = self.disorder_ms + WINDOW_MS + self._slack_ms
        ago_ms += int(self._rng.integers(50_000))
        at_ms = self.now_ms - ago_ms
        event = query_event(self._rng, self._number, name, at_ms)
        event["impression_id"] = f"late {event['impression_id']}"
        partition = self._partition(name)
        self.expected.aside["late", event["impression_id"]] += 1
        if self._rng.random() < 0.3:
            # Nobody took the impression in, so its click has none.
            named = {"impression_id": event["impression_id"], "at_ms": at_ms + 1_000}
            value = _json({**named, "position": 1, "query_id": name})
            self.expected.aside["orphan", value] += 1
            closed_ms = at_ms + WINDOW_MS
            self._plan(self.now_ms, Event("clicks", value, partition, closed_ms))
        return Event("queries", _json(event), partition, at_ms + WINDOW_MS)

    def _repeat(self) -> Event | None:
        """Something of a closed impression again."""
        forgotten = self._rng.random() < 0.2
        since_ms = self.disorder_ms + WINDOW_MS + self._slack_ms
        since_ms += REMEMBER_MS if forgotten else 0
        past = self._closed_since(since_ms)
        if past is None:
            return None
        closed_ms = past.at_ms + WINDOW_MS
        if forgotten:
            return self._forgotten(past, closed_ms + REMEMBER_MS)
        kind = self._rng.random()
        topic, value = "clicks", past.clicks[0] if past.clicks else b""
        if kind < 0.4:
            topic, value = "queries", past.value
        is_new = kind >= 0.7 or not value
        if is_new:
            self._number += 1
            event = {"impression_id": past.name, "at_ms": past.at_ms + 2_000}
            value = _json({**event, "position": 1, "action": f"again {self._number}"})

        def expect(_: int, __: int) -> None:
            if is_new:
                self.expected.aside["late", value] += 1
            else:
                self.expected.duplicates += 1

        return Event(
            topic,
            value,
            past.partition,
            closed_ms,
            expect=expect,
            not_after_ms=closed_ms + REMEMBER_MS,
        )

    def _forgotten(self, past: Past, forgotten_ms: int) -> Event:
        if past.clicks and self._rng.random() < 0.5:
            click = past.clicks[-1]
            self.expected.aside["orphan", click] += 1
            return Event("clicks", click, past.partition, forgotten_ms)
        self.expected.aside["late", past.name] += 1
        return Event("queries", past.value, past.partition, forgotten_ms)

    def _closed_since(self, ago_ms: int) -> Past | None:
        """An impression of about so long ago, and a little more."""
        horizon_ms = self.now_ms - self.disorder_ms - WINDOW_MS - REMEMBER_MS
        horizon_ms -= 120_000
        while self._past and self._past[0].at_ms < horizon_ms - JITTER_MS:
            self._past.popleft()
        newest_ms = self.now_ms - ago_ms
        if not self._past or self._past[0].at_ms > newest_ms:
            return None
        place = int((newest_ms - self._past[0].at_ms) / self.step_ms * 0.3)
        place = min(place, len(self._past) - 1)
        while place and self._past[place].at_ms > newest_ms:
            place -= min(place, 20)
        past = self._past[place]
        is_near = newest_ms - 60_000 <= past.at_ms <= newest_ms
        return past if is_near else None

    def _name_of_query(self) -> str:
        """A query by its popularity, in one of two spellings."""
        number = int(np.searchsorted(self._cumulated, self._rng.random()))
        return f"query {number}" if self._rng.random() < 0.5 else f" Query  {number}"

    def _partition(self, name: str) -> int:
        route = route_of_query(normalised_query(name))
        return partition_of_route(route, self._n_partitions)

    def _hostile_events(self, now_ms: int) -> Iterator[Event]:
        rounds = 0
        while True:
            records = hostile_records(self.now_ms, now_ms, seed=rounds)
            order = self._rng.permutation(len(records))
            for place in order:
                record = records[place]
                if rounds and len(record.value or b"") > 1_000_000:
                    continue
                self.unsent.discard(record.name)
                yield self._hostile_event(record)
            rounds += 1

    def _hostile_event(self, record: Hostile) -> Event:
        def expect(partition: int, offset: int) -> None:
            for index, (value, code) in enumerate(record.letters):
                letter = Letter(value, code, record.key, record.headers)
                place = (record.topic, partition, offset, index)
                self.expected.letters[place] = letter

        return Event(
            record.topic,
            record.value,
            key=record.key,
            headers=record.headers,
            expect=expect,
        )
