"""The events of the takeover: half of them for the old worker, half for the new one."""

import json
from typing import Any, NamedTuple

import numpy as np

from rankstream.experiments import Running
from rankstream.ranker import Ranker
from rankstream.settings import ExperimentSettings
from rankstream.wire.topics import CLICKS, QUERIES

NAMESPACE = "takeover"
N_IMPRESSIONS = 480
N_HALF = N_IMPRESSIONS // 2
STEP_MS = 1_000
START_MS = 1_700_000_000_000
ITEMS = [f"d{number}" for number in range(8)]
EXPERIMENT = ExperimentSettings(
    rankers={"good": "", "bad": ""},
    method="team-draft",
    also={"sample-scored": {}},
    length=4,
)

SETTINGS = """
[time]
click_window_ms = 60_000
disorder_ms = 10_000
remember_ms = 60_000
idle_ms = 1_000_000_000_000  # event time is that of the events, whenever this runs
[models.m]
features = 2
[experiments.boost]
method = "team-draft"
also = { sample-scored = {} }
rankers = { good = "", bad = "" }
length = 4
"""
"""What the settings of the old worker and of the new one share."""


class Sent(NamedTuple):
    """An event, and what becomes of it: applied, duplicate, late, orphan, a letter."""

    topic: str
    value: bytes
    outcome: str = "applied"


def events(first: int, last: int) -> list[Sent]:
    """What belongs to some impressions: half of the model, half of the experiment."""
    return [sent for number in range(first, last) for sent in _around(number)]


def _around(number: int) -> list[Sent]:
    rng = np.random.default_rng((10, number))
    at_ms, query = START_MS + number * STEP_MS, f"q{number % 24}"
    name = Ranker.impression_id(f"i{number}", query)
    make = _of_the_model if number % 2 else _of_the_experiment
    shown = make(rng, name, query, at_ms, f"s{number // 3}")
    found = [Sent(QUERIES, shown)]
    for position in (1, 2):
        if rng.random() < 0.5 / position:
            found.append(_click(name, query, at_ms + 400 * position, position))
    extra = number % 20
    if extra == 3:
        found.append(Sent(QUERIES, shown, "duplicate"))
    elif extra == 7:
        never = Ranker.impression_id(f"never {number}", query)
        found.append(_click(never, query, at_ms, 1, "orphan"))
    elif extra == 11:
        found.append(_click(name, query, at_ms + 60_001, 1, "late"))
    elif extra == 15:
        found.append(_click(name, query, at_ms + 100, 9, "letter"))
    elif extra == 19:
        found.append(Sent(CLICKS, b"no JSON", "letter"))
    return found


def _click(
    name: str,
    query: str,
    at_ms: int,
    position: int,
    outcome: str = "applied",
) -> Sent:
    fields: dict[str, Any] = {"query_id": query, "position": position}
    value = Ranker.click_event(name, at_ms=at_ms, **fields)
    return Sent(CLICKS, value, outcome)


def _of_the_model(
    rng: np.random.Generator, name: str, query: str, at_ms: int, session: str
) -> bytes:
    event = {
        "impression_id": name,
        "query_id": query,
        "at_ms": at_ms,
        "session": session,
        "model": "m",
        "policy": "plackett-luce",
        "candidates": ["a", "b", "c"],
        "shown": ["b", "a"],
        "scores": [1.0, 2.0, 0.0],
        "features": rng.random((2, 2)).round(3).tolist(),
    }
    return json.dumps(event).encode()


def _of_the_experiment(
    _: np.random.Generator, name: str, query: str, at_ms: int, session: str
) -> bytes:
    running = Running("boost", EXPERIMENT)
    rankings = {"good": ITEMS[:5], "bad": ITEMS[:2:-1]}
    drawn = running.combine(rankings, query_id=query, impression_id=name)
    return running.query_event(drawn, at_ms=at_ms, session=session, candidates=ITEMS)
