"""JSON events of a load, made from a seed."""

import base64
import heapq
import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankstream.lab.benchmarks.pipeline.input_log import InputRecord
from rankstream.lab.benchmarks.workload import Workload, zipf_queries
from rankstream.operations.answers.capacity.load import Load
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
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

N_ORDERS = 16
"""Different lists of a query."""

BLOCK = 4_096
"""Lists that are drawn at once."""

LATEST_MS = 4_000
"""Of a click, after its list: within the window of a short run."""


def events_of(load: Load, start_ms: int) -> Iterator[InputRecord]:
    """Events in the order of their times, without end, at the load's pace."""
    rng = np.random.default_rng(1)
    vectors = _vectors(load, rng)
    waiting: list[InputRecord] = []
    width = load.settings.kafka.input_partitions
    for number, which, places in _drawn(load, rng):
        at_ms = start_ms + int(1_000 * number / load.lists_per_s)
        while waiting and waiting[0].at_ms <= at_ms:
            yield heapq.heappop(waiting)
        query = f"query {which}"
        name = routed_impression_id(f"{number:012x}", route_of_query(query))
        items = [f"d{which}-{row}" for row in range(load.n_candidates)]
        turn = number % N_ORDERS % load.items
        event = QueryEvent(
            impression_id=name,
            query_id=query,
            at_ms=at_ms,
            model="model",
            policy=load.policy,
            shown=[*items[turn : load.items], *items[:turn]],
            candidates=items if load.policy != POLICIES[DETERMINISTIC] else None,
            **vectors[turn],
        )
        partition = partition_of_input(query.encode(), b"", width)
        yield InputRecord(at_ms, QUERIES, partition, encode_event(event))
        for place in places:
            later_ms = at_ms + 1 + (number * 7_919 + place) % LATEST_MS
            click = ClickEvent(
                impression_id=name,
                at_ms=later_ms,
                position=place,
                event_id=f"{number:x}-{place}",
            )
            record = InputRecord(later_ms, CLICKS, partition, encode_event(click))
            heapq.heappush(waiting, record)


def _drawn(
    load: Load, rng: np.random.Generator
) -> Iterator[tuple[int, int, list[int]]]:
    """Number, query and clicked places of each list."""
    plan = Workload(BLOCK, DETERMINISTIC, n_queries=int(load.queries))
    numbers = itertools.count()
    while True:
        which = zipf_queries(plan, rng).tolist()
        n_clicks = np.minimum(rng.poisson(load.clicks, BLOCK), load.items).tolist()
        for query, n in zip(which, n_clicks, strict=True):
            places = (1 + rng.permutation(load.items)[:n]).tolist() if n else []
            yield next(numbers), query, places


def _vectors(load: Load, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Scores, exposures and features of lists, by how far they are turned."""
    n_items, found = load.items, []
    for turn in range(n_items):
        vectors = {}
        if load.features:
            vectors["features"] = _packed(rng.random(n_items * load.features))
        if load.policy == POLICIES[LOGGED]:
            # Half of the time all are a place further down.
            matrix = np.zeros((load.n_candidates, n_items))
            shown = (np.arange(n_items) + turn) % n_items
            for by in (0, 1):
                matrix[shown, (np.arange(n_items) + by) % n_items] = 0.5
            vectors["exposures"] = _packed(matrix)
        elif load.policy != POLICIES[DETERMINISTIC]:
            vectors["scores"] = _packed(rng.standard_normal(load.n_candidates))
        found.append(vectors)
    return found


def _packed(numbers: np.ndarray[Any, np.dtype[np.float64]]) -> str:
    return base64.b64encode(numbers.astype("<f4").tobytes()).decode("ascii")
