"""Logs that make every part of the statistics, folded and counted again."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from rankstream.operations.recount.stored_statistics import stored
from rankstream.settings import (
    LimitSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
)
from rankstream.wire.events import (
    ACTIVE,
    DETERMINISTIC,
    ENDED,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    Element,
    EventRecord,
    Frontier,
    encode_record,
)
from rankstream.wire.exposures import pack_exposures
from streams.partition_fold import partition_fold
from streams.recount.differences import Verdict
from streams.recount.recount import Found, recount
from streams.recount.rules import rules_of
from streams.stage import SourceRecord
from tests.event_factory import START_MS, click, impression

ITEMS = ("a", "b", "c", "d", "e")
LONG = tuple(f"x{number:02}" for number in range(40))
ACTIONS = {"buy": "purchase", "pay": "purchase", "linger": "dwell", "save": "kept"}
LIMITS = LimitSettings(
    candidate_sets=4, interventions=4, exposure_rows=2, lists=3, clicks=3
)
ERA_MS = 2_000_000


def settings_of(keep_ms: int = ERA_MS, reward: str = "click") -> Settings:
    """With eras so short that several begin and leave."""
    time = TimeSettings(
        disorder_ms=60_000,
        click_window_ms=300_000,
        remember_ms=600_000,
        keep_ms=keep_ms,
    )
    kept = StatisticsSettings(groups=3, reward=reward, actions=ACTIONS)
    return Settings(time=time, limits=LIMITS, statistics=kept)


SETTINGS = settings_of()
COUNTED = msgspec.msgpack.encode(["counted", 0])


def some_impression(rng: np.random.Generator, number: int, at_ms: int) -> Any:
    """An impression of a few queries, sets, interventions, policies and rows."""
    n_items = int(rng.integers(3, 6))
    items = sorted(rng.choice(ITEMS, n_items, replace=False).tolist())
    if rng.random() < 0.5:
        items = list(ITEMS)
    n_shown = int(rng.integers(1, 4))
    if rng.random() < 0.05:
        items, n_shown = list(LONG), int(rng.integers(31, 35))
    n_items = len(items)
    shown = rng.choice(items, n_shown, replace=False).tolist()
    if rng.random() < 0.5:
        shown = items[:n_shown]
    policy = int(rng.integers(0, 6))
    fields: dict[str, Any] = {"policy": policy}
    if policy == PLACKETT_LUCE:
        scores = np.arange(n_items) * float(rng.integers(0, 8))
        fields["scores"] = scores.astype("<f4").tobytes()
    if policy == LOGGED:
        exposures = np.full((n_items, n_shown), 1.0 / n_items, np.float32)
        if rng.random() < 0.5:
            exposures[1:] = 0.0
        fields["exposures"] = pack_exposures(exposures)
    if policy in (UNKNOWN, DETERMINISTIC, TAIL_SHUFFLE) and rng.random() < 0.5:
        fields["is_open_set"], items = True, sorted(shown)
    return impression(
        f"i{number}",
        at_ms,
        items=items,
        shown=shown,
        query_id=f"q{rng.integers(3)}",
        model=f"m{rng.integers(3)}",
        intervention=f"v{rng.integers(6)}",
        unit=int(rng.integers(7)) << int(rng.integers(50)),
        **fields,
    )


def random_log(seed: int, n_events: int = 400) -> list[list[Element]]:
    """Records of a log that goes over eras, out of order, with repeats and strays."""
    rng = np.random.default_rng(seed)
    log: list[list[Element]] = []
    known: list[Any] = []
    for number in range(n_events):
        now_ms = START_MS + number * int(rng.integers(15_000, 20_000)) * (
            1 if seed % 2 else 6
        )
        at_ms = now_ms + int(rng.integers(-90_000, 1))
        record: list[Element] = [some_impression(rng, number, at_ms)]
        known = [*known[-20:], record[0]]
        for _ in range(int(rng.integers(4))):
            owner = known[int(rng.integers(len(known)))]
            when_ms = owner.at_ms + int(rng.integers(0, 400_000))
            what: dict[str, Any] = {"position": int(rng.integers(0, 5))}
            if not what["position"] or rng.random() < 0.3:
                what["item_id"] = str(rng.choice(ITEMS))
            what["action"] = str(rng.choice(["click", "other", *ACTIONS]))
            name = owner.impression_id if rng.random() < 0.9 else f"i{number + 1}"
            record.append(click(name, when_ms, **what))
        if rng.random() < 0.2:
            record.append(known[int(rng.integers(len(known)))])
        order = rng.permutation(len(record))
        record = [record[place] for place in order]
        source = int(rng.integers(2))
        record.append(Frontier(source, 2, at_ms - 60_000, ACTIVE))
        log.append(record)
    end_ms = max(each.at_ms for record in log for each in record) + 500_000
    return [*log, [Frontier(0, 2, end_ms, ENDED)], [Frontier(1, 2, end_ms, ENDED)]]


class Folded:
    """A log, and what the real fold makes of it up to a checkpoint."""

    def __init__(
        self,
        log: Sequence[list[Element]],
        checkpoint: int | None = None,
        settings: Settings = SETTINGS,
    ) -> None:
        self.settings = settings
        self.checkpoint = len(log) if checkpoint is None else checkpoint
        self.log: list[tuple[int, int, bytes]] = []
        fold = partition_fold(0, settings)
        self.state: dict[bytes, bytes] = {}
        self.outcomes: dict[str, int] = {}
        interactions = []
        for offset, elements in enumerate(log):
            value = encode_record(EventRecord(1, 0, offset + 1, elements))
            self.log.append((0, offset, value))
            fold.fold(SourceRecord("events", 0, offset, 0, None, value, ()))
            interactions += fold.outputs()
            if offset == self.checkpoint - 1:
                for change in fold.changes():
                    if change.topic == "statistics":
                        self.state[change.key] = change.value or b""
                self.outcomes = fold.counters()
        self.interactions = [
            (output.partition, output.value)
            for output in interactions
            if output.topic == "interactions" and output.value
        ]

    def counted(self) -> Any:
        """What the record of what was counted says."""
        return msgspec.msgpack.decode(self.state[COUNTED])

    def change(self, kind: str, change: Callable[[Any], bool]) -> None:
        """Change the first value of a kind that lets itself be changed."""
        for key, value in sorted(self.state.items()):
            decoded = msgspec.msgpack.decode(value) if value else None
            if value and msgspec.msgpack.decode(key)[0] == kind and change(decoded):
                self.state[key] = msgspec.msgpack.encode(decoded)
                return
        raise AssertionError(f"no {kind} could be changed")

    def verdict(self) -> Verdict:
        """What the recount says."""
        values = [(key, value) for key, value in self.state.items() if value]
        found = {0: Found(self.checkpoint - 1, len(self.log) - 1, self.outcomes)}
        return recount(
            self.log, found, stored(values), self.interactions, rules_of(self.settings)
        )


@functools.cache
def small_log() -> list[list[Element]]:
    """One that the tests of what is amiss share."""
    return random_log(1, 150)
