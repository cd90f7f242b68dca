"""Events of which many are poison, and some are only strange."""

import json
from collections.abc import Iterator

from tests.fire.events import Event, Events
from tests.fire.expectations import Letter, Shown
from tests.fire.hostile import TWO_HOURS_MS, good_click, good_query, strange_queries
from tests.fire.lists import MODEL

AHEAD_SHARE = 0.05
TIMESTAMPED_SHARE = 0.05
YEAR_2012_MS = 1_340_000_000_000
DAY_MS = 86_400_000


class PoisonedEvents(Events):
    """One of twenty hours ahead, records dated 2012 and tomorrow, and the strangest.

    Every kind of hostile record is among them, as in `Events`, only sooner.
    """

    hostile_share = 0.04

    wall_ms = 0

    def __iter__(self) -> Iterator[Event]:
        ordinary = super().__iter__()
        yield next(ordinary)
        yield from self._strange()
        for event in ordinary:
            yield event
            if self._rng.random() < AHEAD_SHARE:
                yield self._ahead()

    def _new(self, number: int) -> Event:
        event = super()._new(number)
        if self._rng.random() < TIMESTAMPED_SHARE:
            tomorrow_ms = self.wall_ms + DAY_MS
            dated_ms = YEAR_2012_MS if self._rng.random() < 0.5 else tomorrow_ms
            return Event(**{**event.__dict__, "timestamp_ms": dated_ms})
        return event

    def _strange(self) -> Iterator[Event]:
        for _, value, query, items in strange_queries(self.now_ms):
            name = json.loads(value)["impression_id"]
            self.expected.shown[name] = Shown(query, MODEL, tuple(items))
            yield Event("queries", value)

    def _ahead(self) -> Event:
        at_ms = self.wall_ms + TWO_HOURS_MS
        is_query = self._rng.random() < 0.7
        topic, good = ("queries", good_query) if is_query else ("clicks", good_click)
        value = json.dumps(good(at_ms, "ahead")).encode()

        def expect(partition: int, offset: int) -> None:
            letter = Letter(value, "time-future")
            self.expected.letters[topic, partition, offset, 0] = letter

        return Event(topic, value, expect=expect)
