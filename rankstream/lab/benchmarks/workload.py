"""The workload of benchmarks: a canonical log, or JSON events, made from a seed.

Zipf queries (s = 1) over 100,000, 20 candidates each, lists of 10, 0.4 clicks a
list on average, event time at 400 impressions a second, so that a window of five
minutes holds 120,000 open impressions.
"""

import base64
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    ENDED,
    LOGGED,
    PLACKETT_LUCE,
    POLICIES,
    SCHEMA,
    Click,
    ClickEvent,
    Element,
    Frontier,
    Impression,
    QueryEvent,
    encode_event,
    encode_record,
)
from rankstream.wire.exposures import pack_exposures
from rankstream.wire.routing import (
    identity,
    partition_of_route,
    route_of_query,
    routed_impression_id,
)
from rankstream.wire.topics import CLICKS, QUERIES

START_MS = 1_700_000_000_000
DISORDER_MS = 30_000
RECORD_EVENTS = 250

INPUT_PER_SECOND, INPUT_SHOWN = 400, 10
"""Lists a second of the input topics, and documents of each."""


@dataclass(frozen=True)
class Workload:
    """What the log holds.

    Parameters
    ----------
    policy
        Number of the logging policy: logged exposures, deterministic or
        Plackett-Luce.
    n_features
        Features of each shown document, 0 for none.
    rescored_ms
        Event time after which the scores of a query are new.
    first, first_query
        Numbers of the first impression and query: a log that follows another one.
    """

    n_impressions: int
    policy: int
    n_queries: int = 100_000
    n_candidates: int = 20
    n_shown: int = 10
    clicks_per_list: float = 0.4
    per_second: float = 400.0
    n_features: int = 0
    rescored_ms: int = 1_000
    n_partitions: int = 4
    first: int = 0
    first_query: int = 0


class _Query:
    """What is the same for every impression of a query."""

    def __init__(self, number: int, plan: Workload, rng: np.random.Generator) -> None:
        self.name = f"query {number}"
        names = sorted(f"d{number}-{row}" for row in range(plan.n_candidates))
        self.candidates = msgspec.msgpack.encode(names)
        route = route_of_query(self.name)
        self.partition = partition_of_route(route, plan.n_partitions)
        self.ranking = rng.permutation(plan.n_candidates)[: plan.n_shown].astype("<u2")
        self.shown = self.ranking.tobytes()
        # What the logged exposures say: half of the time all are a place further down.
        self.rotated = np.roll(self.ranking, 1).tobytes()
        self.exposures = b""
        if plan.policy == LOGGED:
            matrix = np.zeros((plan.n_candidates, plan.n_shown), "<f4")
            matrix[self.ranking, np.arange(plan.n_shown)] = 0.5
            matrix[self.ranking, (np.arange(plan.n_shown) + 1) % plan.n_shown] = 0.5
            self.exposures = pack_exposures(matrix)
        self.scored_ms = -1
        self.scores = b""
        self.weights: npt.NDArray[np.float32] = np.zeros(0, "<f4")

    def rescore(self, at_ms: int, plan: Workload, rng: np.random.Generator) -> None:
        """New scores, where the old ones are too old."""
        period = at_ms // plan.rescored_ms
        if plan.policy == PLACKETT_LUCE and period != self.scored_ms:
            self.scored_ms = period
            self.weights = rng.standard_normal(plan.n_candidates).astype("<f4")
            self.scores = self.weights.tobytes()


def zipf_queries(plan: Workload, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The query of each impression: P(q) in proportion to 1 / (q + 1)."""
    cumulated = np.cumsum(1.0 / np.arange(1, plan.n_queries + 1))
    draws = rng.random(plan.n_impressions) * cumulated[-1]
    queries: npt.NDArray[np.int64] = np.searchsorted(cumulated, draws).astype(np.int64)
    return queries


def canonical_elements(
    plan: Workload, rng: np.random.Generator
) -> Iterator[tuple[int, int, Element]]:
    """`(partition, at_ms, element)` of every event, in the order of event time."""
    known: dict[int, _Query] = {}
    clicks_each = rng.poisson(plan.clicks_per_list, plan.n_impressions)
    features = rng.random(plan.n_shown * max(plan.n_features, 1)).astype("<f4")
    queries = zipf_queries(plan, rng) + plan.first_query
    for number, which in enumerate(queries.tolist(), plan.first):
        query = known.get(which)
        if query is None:
            query = known[which] = _Query(which, plan, rng)
        at_ms = START_MS + int(number * 1_000 / plan.per_second)
        query.rescore(at_ms, plan, rng)
        shown = query.shown
        if plan.policy == LOGGED and rng.random() < 0.5:
            shown = query.rotated
        if plan.policy == PLACKETT_LUCE:
            order = np.argsort(rng.gumbel(size=plan.n_candidates) + query.weights)
            shown = order[::-1][: plan.n_shown].astype("<u2").tobytes()
        name = f"{number:012x}"
        own = identity("i", name)
        impression = Impression(
            own, name, query.name, at_ms, "model", 1, "model", number, plan.policy,
            query.candidates, shown, False, query.scores, query.exposures,
            features.tobytes() if plan.n_features else b"", plan.n_features,
            int.from_bytes(own[:8], "big"), b"",
        )  # fmt: skip
        yield query.partition, at_ms, impression
        for nth in range(int(clicks_each[number - plan.first])):
            position = 1 + int(rng.integers(plan.n_shown))
            mark = identity("c", name, str(nth))
            click = Click(
                mark, own, "", position, at_ms + nth, "click",
                b'{"impression_id":"%s","position":%d}' % (name.encode(), position),
                ("clicks", 0, number, nth),
            )  # fmt: skip
            yield query.partition, at_ms, click


def canonical_records(
    plan: Workload,
    rng: np.random.Generator,
    *,
    is_over: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[int, bytes, int]]:
    """`(partition, value, number of events)` of every record of the log.

    One source; each record ends with its frontier, and the last of each partition
    with one that closes everything.

    Parameters
    ----------
    is_over
        Whether the log is to end early.
    """
    pending: list[list[Element]] = [[] for _ in range(plan.n_partitions)]
    sequences = [0] * plan.n_partitions
    at_ms = START_MS

    def record(partition: int, frontier: Frontier) -> tuple[int, bytes, int]:
        elements = pending[partition]
        pending[partition] = []
        sequences[partition] += 1
        value = encode_record([SCHEMA, 0, sequences[partition], [*elements, frontier]])
        return partition, value, len(elements)

    for partition, at_ms, element in canonical_elements(plan, rng):
        pending[partition].append(element)
        if len(pending[partition]) >= RECORD_EVENTS:
            yield record(partition, Frontier(0, 1, at_ms - DISORDER_MS, ACTIVE))
            if is_over():
                break
    for partition in range(plan.n_partitions):
        yield record(partition, Frontier(0, 1, at_ms + 86_400_000, ENDED))


def input_events(
    n_impressions: int, n_features: int = 0
) -> Iterator[tuple[str, bytes]]:
    """`(topic, JSON)` of impressions and their clicks, in the order of time.

    Parameters
    ----------
    n_features
        Of each item; the lists are then drawn by Plackett-Luce, else deterministic.
    """
    policy = PLACKETT_LUCE if n_features else DETERMINISTIC
    plan = Workload(n_impressions, policy, n_shown=INPUT_SHOWN)
    rng = np.random.default_rng(1)
    queries = zipf_queries(plan, rng).tolist()
    clicks_each = rng.poisson(plan.clicks_per_list, n_impressions).tolist()
    features = rng.random(INPUT_SHOWN * n_features).astype("<f4").tobytes()
    packed = base64.b64encode(features).decode("ascii")
    for number, (which, n_clicks) in enumerate(zip(queries, clicks_each, strict=True)):
        at_ms = START_MS + number * 1_000 // INPUT_PER_SECOND
        query = f"query {which}"
        name = routed_impression_id(f"{number:012x}", route_of_query(query))
        items = [f"d{which}-{row}" for row in range(INPUT_SHOWN)]
        scored: dict[str, Any] = {}
        if n_features:
            scores = [float(row) for row in range(INPUT_SHOWN)]
            scored = {"candidates": items, "scores": scores, "features": packed}
        event = QueryEvent(
            impression_id=name,
            query_id=query,
            at_ms=at_ms,
            model="model",
            policy=POLICIES[policy],
            shown=items,
            **scored,
        )
        yield QUERIES, encode_event(event)
        for nth in range(n_clicks):
            click = ClickEvent(
                impression_id=name,
                at_ms=at_ms + nth,
                position=1 + (number + nth) % INPUT_SHOWN,
                event_id=f"{number:x}-{nth}",
            )
            yield CLICKS, encode_event(click)
