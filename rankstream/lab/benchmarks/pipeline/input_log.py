"""JSON events as they come to the input topics: skewed queries, and their clicks.

Lists of 10 of the 40 items of a query, 16 different ones each; 0.4 clicks a list, each
one to ten seconds after it. All events of a query are in one partition: whoever joins
and counts by query needs to send nothing elsewhere.
"""

import heapq
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankstream.lab.benchmarks.workload import START_MS, Workload, zipf_queries
from rankstream.wire.events import (
    DETERMINISTIC,
    POLICIES,
    ClickEvent,
    QueryEvent,
    encode_event,
)
from rankstream.wire.routing import (
    partition_of_input,
    route_of_query,
    routed_impression_id,
)
from rankstream.wire.topics import CLICKS, QUERIES

N_QUERIES, N_ITEMS, N_SHOWN, N_LISTS = 2_000, 40, 10, 16
CLICKS_A_LIST = 0.4
EVENTS_A_LIST = 1.0 + CLICKS_A_LIST
SOONEST_MS, LATEST_MS = 1_000, 10_000
"""Of a click, after its list."""

BLOCK = 4_096
"""Lists that are drawn at once."""


class InputRecord(NamedTuple):
    """An event and where it is sent."""

    at_ms: int
    topic: str
    partition: int
    value: bytes


@dataclass(frozen=True)
class InputLog:
    """A log without end, the same as often as it is read.

    Parameters
    ----------
    n_partitions
        Of each input topic.
    per_second
        Lists of a second of event time.
    start_ms
        Event time of the first list.
    first
        Number of the first list: a log that follows another one.
    """

    n_partitions: int
    per_second: float = 400.0
    start_ms: int = START_MS
    first: int = 0

    def __iter__(self) -> Iterator[InputRecord]:
        """Events in the order of their times."""
        rng = np.random.default_rng(1)
        queries = [
            _Query(number, self.n_partitions, rng) for number in range(N_QUERIES)
        ]
        clicks: list[InputRecord] = []
        numbers = itertools.count(self.first)
        while True:
            for which, row, places, waits in _drawn(rng):
                number, query = next(numbers), queries[which]
                after_s = (number - self.first) / self.per_second
                at_ms = self.start_ms + int(1_000 * after_s)
                while clicks and clicks[0].at_ms <= at_ms:
                    yield heapq.heappop(clicks)
                name = routed_impression_id(f"{number:012x}", query.route)
                event = QueryEvent(
                    impression_id=name,
                    query_id=query.name,
                    at_ms=at_ms,
                    model="model",
                    version=row,
                    policy=POLICIES[DETERMINISTIC],
                    shown=query.lists[row],
                )
                yield InputRecord(at_ms, QUERIES, query.partition, encode_event(event))
                for place, wait_ms in zip(places, waits, strict=True):
                    click = ClickEvent(
                        impression_id=name,
                        query_id=query.name,
                        at_ms=at_ms + wait_ms,
                        position=place,
                        event_id=f"{number:x}-{place}",
                    )
                    record = InputRecord(
                        click.at_ms, CLICKS, query.partition, encode_event(click)
                    )
                    heapq.heappush(clicks, record)


class _Query:
    """Its lists, and where its events go."""

    def __init__(
        self, number: int, n_partitions: int, rng: np.random.Generator
    ) -> None:
        self.name = f"query {number}"
        self.route = route_of_query(self.name)
        self.partition = partition_of_input(self.name.encode(), b"", n_partitions)
        rows = rng.permuted(np.tile(np.arange(N_ITEMS), (N_LISTS, 1)), axis=1)
        self.lists = [
            [f"d{number}-{item}" for item in row] for row in rows[:, :N_SHOWN].tolist()
        ]


def _drawn(rng: np.random.Generator) -> Iterator[tuple[int, int, list[int], list[int]]]:
    """Query, list, clicked places (each once) and when, of a block of lists."""
    plan = Workload(BLOCK, DETERMINISTIC, n_queries=N_QUERIES)
    which = zipf_queries(plan, rng).tolist()
    rows = rng.integers(N_LISTS, size=BLOCK).tolist()
    n_clicks = np.minimum(rng.poisson(CLICKS_A_LIST, BLOCK), N_SHOWN).tolist()
    for query, row, n in zip(which, rows, n_clicks, strict=True):
        places = 1 + rng.permutation(N_SHOWN)[:n] if n else np.zeros(0, int)
        waits = rng.integers(SOONEST_MS, LATEST_MS, size=n) if n else places
        yield query, row, places.tolist(), waits.tolist()
