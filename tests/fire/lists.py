"""Shown lists of every logging policy, as rankers would report them."""

import base64
import hashlib
from typing import Any

import numpy as np

from rankstream.wire.envelope import features_hash
from rankstream.wire.routing import (
    normalised_query,
    route_of_query,
    routed_impression_id,
)

MODEL = "fire"
TRAINED = "one"
"""A model that is trained, from lists that are logged under its name."""

ON_POLICY = f"{TRAINED}@0.7"
"""What some of its lists say that they were made by."""

N_FEATURES = 4
N_ITEMS = 10
N_SHOWN = 5
N_SESSIONS = 60
SCORE_VERSIONS = 3


def query_event(
    rng: np.random.Generator, number: int, name: str, at_ms: int
) -> dict[str, Any]:
    """The event of one shown list, its id made of a number and the query's route."""
    query = normalised_query(name)
    route = route_of_query(query)
    variant = int(rng.integers(2))
    items = [f"{query}/{variant}{n}" for n in range(N_ITEMS)]
    rng.shuffle(items)
    event: dict[str, Any] = {
        "impression_id": routed_impression_id(f"f{number}", route),
        "query_id": name,
        "at_ms": at_ms,
        "model": MODEL if rng.random() < 0.8 else "other",
        "intervention": str(rng.choice([TRAINED, "two"])),
        "shown": items[:N_SHOWN],
        "candidates": items,
    }
    if number % 5 == 0 and event["intervention"] == TRAINED:
        event["intervention"] = ON_POLICY
    if rng.random() < 0.9:
        event["session"] = f"s{rng.integers(N_SESSIONS)}"
    policy = rng.random()
    if policy < 0.6:
        _draw_plackett_luce(rng, event, items, route + variant)
    elif policy < 0.75:
        event["policy"] = "deterministic"
    elif policy < 0.85:
        event["policy"] = "tail-shuffle"
    elif policy < 0.95:
        event["policy"] = "logged"
        exposures = np.full((N_ITEMS, N_SHOWN), 1.0 / N_ITEMS, "<f4")
        event["exposures"] = base64.b64encode(exposures.tobytes()).decode()
    else:
        del event["candidates"]
    is_learned_from = event["intervention"] == TRAINED
    if (is_learned_from or number % 3 == 0) and "candidates" in event:
        event["features_hash"] = features_hash(N_FEATURES).hex()
        rows = np.array([_features_of(item) for item in items], "<f4")
        event["candidate_features"] = base64.b64encode(rows.tobytes()).decode()
    return event


def _features_of(item: str) -> list[float]:
    """Of an item, the same each time."""
    digest = hashlib.blake2b(item.encode(), digest_size=N_FEATURES).digest()
    return [byte / 256 for byte in digest]


def _draw_plackett_luce(
    rng: np.random.Generator, event: dict[str, Any], items: list[str], name: int
) -> None:
    version = int(rng.integers(SCORE_VERSIONS))
    of_model = np.random.default_rng((name % 2**63, version))
    by_item = dict(zip(sorted(items), of_model.normal(0, 1, N_ITEMS), strict=True))
    scores = np.array([by_item[item] for item in items])
    drawn = np.argsort(-(scores + rng.gumbel(size=N_ITEMS)))[:N_SHOWN]
    features = rng.random((N_SHOWN, N_FEATURES)).astype("<f4")
    event["shown"] = [items[place] for place in drawn]
    event |= {
        "policy": "plackett-luce",
        "version": version,
        "scores": [round(float(score), 4) for score in scores],
        "features": base64.b64encode(features.tobytes()).decode(),
    }
