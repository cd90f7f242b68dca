"""Schedules of what clients and operators do, drawn from a seed.

Where a broker would be free to answer in two ways, a schedule does not go; see
`tests.fakes.driver`.
"""

from random import Random
from typing import Any

TOPICS = {"one": 2, "two": 1}
NAMES = ("x", "y", "x")
"""Of the transactions of each slot: the first and the last fence each other."""

CONSUMERS = (
    ("one", 0, "read_committed", "earliest"),
    ("one", 1, "read_uncommitted", "latest"),
    ("two", 0, "read_committed", "none"),
    ("two", 0, "read_uncommitted", "latest"),
)
"""Consumers that go on through a whole schedule: place, isolation, reset."""

N_STEPS = 30

Step = tuple[Any, ...]


def drawn(seed: int) -> list[Step]:
    """A schedule: mostly what a producer may do, now and then what it may not."""
    rng = Random(seed)  # noqa: S311
    is_begun: list[bool | None] = [False, False, None]
    steps: list[Step] = [("start", 0), ("start", 1)]
    while len(steps) < N_STEPS:
        kind, slot = _kind(rng, is_begun)
        steps.append((kind, *_arguments(rng, kind, slot)))
        if kind == "recreate":
            is_begun = [False, False, None]
        elif kind in CHANGES:
            is_begun[slot] = CHANGES[kind]
            if kind == "start" and slot != 1 and rng.random() < 0.6:
                is_begun[2 - slot] = None  # fenced: little of it is worth a look
    if seed % 10 == 0:
        steps += [("expire", 0), ("look",)]
    return [*steps, ("read",), ("look",)]


CHANGES = {"start": False, "stop": None, "begin": True, "commit": False, "abort": False}
"""Whether a producer is in a transaction after a step; None where there is none."""

SELDOM = {"read": 1, "look": 1, "seek": 2, "poll": 2, "delete": 1, "recreate": 0.3}
"""Steps that are no producer's, or that of one without transactions."""

WEIGHTS: dict[bool | None, dict[str, float]] = {
    None: {"start": 6},
    False: {"begin": 20, "start": 1, "stop": 0.5},
    True: {
        "send": 12, "batch": 2, "offsets": 2, "commit": 5, "abort": 2, "start": 0.7,
        "stop": 0.3,
    },
}  # fmt: skip


def _kind(rng: Random, is_begun: list[bool | None]) -> tuple[str, int]:
    slot = rng.choices((0, 1, 2), (6, 3, 2))[0]
    is_odd = rng.random() < 0.07
    weights = WEIGHTS[rng.choice((True, False)) if is_odd else is_begun[slot]]
    weights = weights | SELDOM | {"write": 2}
    return rng.choices(list(weights), list(weights.values()))[0], slot


def _arguments(rng: Random, kind: str, slot: int) -> Step:  # noqa: PLR0911
    match kind:
        case "send":
            records = [
                (_place(rng), *_record(rng)) for _ in range(rng.choice((1, 2, 4)))
            ]
            return slot, records
        case "batch":
            return slot, _place(rng), [_record(rng) for _ in range(rng.randint(1, 5))]
        case "write":
            return _place(rng), _record(rng)
        case "offsets":
            return slot, _place(rng), rng.randrange(100)
        case "seek" | "poll":
            return rng.randrange(len(CONSUMERS)), rng.randrange(30)
        case "delete":
            return _place(rng), rng.random()
        case "recreate":
            return (rng.choice(list(TOPICS)),)
        case "read" | "look":
            return ()
        case _:
            return (slot,)


def _place(rng: Random) -> tuple[str, int]:
    topic = rng.choice(list(TOPICS))
    return topic, rng.randrange(TOPICS[topic])


def _record(rng: Random) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes]]]:
    key = rng.choice((None, b"k%d" % rng.randrange(5)))
    value = b"v%d" % rng.randrange(1_000) if key is None or rng.random() < 0.8 else None
    return key, value, [("h", b"1")] if rng.random() < 0.2 else []
