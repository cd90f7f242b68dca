"""JSON events of the input topics, made from a seed: lists, and clicks on them."""

import base64
from collections.abc import Iterator
from typing import Any

import numpy as np

from rankstream.lab.benchmarks.workload import START_MS, Workload, zipf_queries
from rankstream.wire.events import (
    DETERMINISTIC,
    PLACKETT_LUCE,
    POLICIES,
    ClickEvent,
    QueryEvent,
    encode_event,
)
from rankstream.wire.routing import route_of_query, routed_impression_id
from rankstream.wire.topics import CLICKS, QUERIES

PER_SECOND = 400
N_SHOWN = 10


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
    plan = Workload(n_impressions, policy, n_shown=N_SHOWN)
    rng = np.random.default_rng(1)
    queries = zipf_queries(plan, rng).tolist()
    clicks_each = rng.poisson(plan.clicks_per_list, n_impressions).tolist()
    features = rng.random(N_SHOWN * n_features).astype("<f4").tobytes()
    packed = base64.b64encode(features).decode("ascii")
    for number, (which, n_clicks) in enumerate(zip(queries, clicks_each, strict=True)):
        at_ms = START_MS + number * 1_000 // PER_SECOND
        query = f"query {which}"
        name = routed_impression_id(f"{number:012x}", route_of_query(query))
        items = [f"d{which}-{row}" for row in range(N_SHOWN)]
        scored: dict[str, Any] = {}
        if n_features:
            scores = [float(row) for row in range(N_SHOWN)]
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
                position=1 + (number + nth) % N_SHOWN,
                event_id=f"{number:x}-{nth}",
            )
            yield CLICKS, encode_event(click)
