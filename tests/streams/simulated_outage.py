"""A broker that is away for a while: live senders that keep what they cannot send.

All but the broker, its clients and their clocks is real: what the answers say of ends,
ingestion, and the fold. Time passes in steps; nothing sleeps.
"""

import json
from collections import Counter, deque
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, EVENTS, QUERIES
from streams.ingest.ingest import END_HEADER, Ingest
from streams.kafka.append_time import (
    LOG_APPEND_TIME,
    AppendTimes,
    ClockDifference,
)
from streams.kafka.end_of_source import EndOfSource
from streams.partition_fold import partition_fold
from streams.stage import Change, Output, SourceRecord

START_MS = 1_700_000_000_000
STEP_MS = 250
BEFORE_S = 40
AFTER_S = 110
RESTART_S = 3
A_REQUEST = {QUERIES: 10, CLICKS: 80}
"""Events of one partition that fit a request: those of clicks are small."""

Place = tuple[str, int]


@dataclass(frozen=True)
class Case:
    """What happens.

    Parameters
    ----------
    outage_s
        How long the broker is away.
    backoffs_s
        Of each service: how long after its return its producer of lists finds the
        broker there, and its producer of clicks.
    lists_per_s
        Lists that are shown; each is clicked once.
    patience_s
        A worker that was without a broker for so long ends, and starts again.
    clock_ms
        By how much the worker's clock is ahead.
    jumps_after_s
        From when on it is; right before.
    """

    outage_s: float = 0.0
    backoffs_s: tuple[tuple[float, float], ...] = ((0.2, 0.2),)
    lists_per_s: float = 12.0
    patience_s: float = 60.0
    clock_ms: int = 0
    jumps_after_s: float = 0.0
    seed: int = 1


@dataclass
class Source:
    """One partition: what the broker has of it, and its reader."""

    ingest: Ingest
    log: list[tuple[int, bytes, Any]] = field(default_factory=list)
    end: EndOfSource = field(default_factory=EndOfSource)
    position: int = 0
    pending: list[Output] = field(default_factory=list)
    stored: list[Change] = field(default_factory=list)
    stored_position: int = 0


class Sender:
    """A service: shows lists and hears clicks, whether the broker is there or not."""

    def __init__(self, number: int, case: Case, n_partitions: int) -> None:
        self.sent: Counter[str] = Counter()
        self._number = number
        self._per_step = case.lists_per_s / len(case.backoffs_s) * STEP_MS / 1_000
        self._rng = np.random.default_rng((case.seed, number))
        self._n_partitions = n_partitions
        self._kept: dict[Place, deque[bytes]] = {}
        self._clicks: list[tuple[int, dict[str, Any]]] = []

    def show(self, now_ms: int) -> None:
        """One step of service."""
        for _ in range(int(self._rng.poisson(self._per_step))):
            self.sent[QUERIES] += 1
            name = f"{self._number}-{self.sent[QUERIES]}"
            named = {"impression_id": name, "query_id": f"q{self._rng.integers(50)}"}
            self._keep(QUERIES, named | {"at_ms": now_ms, "shown": ["a", "b", "c"]})
            click_ms = now_ms + int(self._rng.integers(300, 15_000))
            self._clicks.append((click_ms, named | {"at_ms": click_ms, "position": 1}))
        due = [click for at_ms, click in self._clicks if at_ms <= now_ms]
        self._clicks = [each for each in self._clicks if each[0] > now_ms]
        for click in due:
            self.sent[CLICKS] += 1
            self._keep(CLICKS, click)

    def send(self, topic: str, sources: dict[Place, Source], now_ms: int) -> None:
        """A request: as much of each partition as it takes."""
        for place, kept in self._kept.items():
            if place[0] != topic:
                continue
            for _ in range(min(len(kept), A_REQUEST[place[0]])):
                sources[place].log.append((now_ms, kept.popleft(), ()))

    def _keep(self, topic: str, event: dict[str, Any]) -> None:
        place = topic, int(self._rng.integers(self._n_partitions))
        self._kept.setdefault(place, deque()).append(json.dumps(event).encode())


class Simulation:
    """A pipeline of ingestion and fold, with the default settings."""

    def __init__(self, case: Case) -> None:
        self.settings = Settings()
        self.clocks = ClockDifference()
        self.outcomes: Counter[str] = Counter()
        self._case = case
        self._times = AppendTimes()
        n_inputs = self.settings.kafka.input_partitions
        self._sources = {
            (topic, partition): Source(self._ingest(topic, partition))
            for topic in (QUERIES, CLICKS)
            for partition in range(n_inputs)
        }
        self._senders = [
            Sender(number, case, n_inputs) for number in range(len(case.backoffs_s))
        ]
        self._folds = [
            partition_fold(partition, self.settings)
            for partition in range(self.settings.kafka.partitions)
        ]
        self._offsets = [0] * len(self._folds)
        self._away_ms = START_MS + BEFORE_S * 1_000
        self._gone_ms = int(case.outage_s * 1_000)
        self._back_ms = self._away_ms + self._gone_ms
        self._is_dead = False

    def run(self) -> "Simulation":
        """All of it, and the ends of all sources."""
        end_ms = self._back_ms + AFTER_S * 1_000
        for now_ms in range(START_MS, end_ms, STEP_MS):
            self._step(now_ms)
        for topic, partition in self._sources:
            self._sources[topic, partition].log.append((end_ms, b"", (END_HEADER,)))
        self._step(end_ms)
        for fold in self._folds:
            fold.settle()
            self.outcomes.update(fold.counters())
        for source in self._sources.values():
            self.outcomes["dead_letter"] += source.ingest.counters()["dead_letter"]
        self.outcomes["sent"] = sum(each.sent.total() for each in self._senders)
        return self

    def _step(self, now_ms: int) -> None:
        is_up = not self._away_ms <= now_ms < self._back_ms
        for sender, backoffs_s in zip(
            self._senders, self._case.backoffs_s, strict=True
        ):
            sender.show(now_ms)
            for topic, backoff_s in zip((QUERIES, CLICKS), backoffs_s, strict=True):
                if not 0 <= now_ms - self._away_ms < self._gone_ms + backoff_s * 1_000:
                    sender.send(topic, self._sources, now_ms)
        if self._is_running(now_ms):
            self._work(now_ms, is_up=is_up)

    def _is_running(self, now_ms: int) -> bool:
        end_ms = self._away_ms + int(self._case.patience_s * 1_000)
        if end_ms <= now_ms < self._back_ms + RESTART_S * 1_000:
            self._is_dead = self._back_ms > end_ms
        elif self._is_dead:
            self._is_dead = False
            self._restart()
        return not self._is_dead

    def _restart(self) -> None:
        for (topic, partition), source in self._sources.items():
            source.ingest = self._ingest(topic, partition)
            source.ingest.restore(source.stored)
            source.end, source.pending = EndOfSource(), []
            source.position = source.stored_position

    def _ingest(self, topic: str, partition: int) -> Ingest:
        ingest = Ingest(topic, partition, self.settings)
        ingest.tick(at_end_ms=0)
        return ingest

    def _work(self, now_ms: int, *, is_up: bool) -> None:
        now_s = (now_ms - START_MS) / 1_000
        if is_up:
            for place, source in self._sources.items():
                self._deliver(source)
                self._read(place, source, now_ms, now_s)
        # While one partition's transaction waits for the broker, no other begins.
        if any(source.pending for source in self._sources.values()):
            return
        for source in self._sources.values():
            source.ingest.tick(at_end_ms=source.end.at_end_ms(now_s))
            source.pending = source.ingest.outputs()
            if is_up:
                self._deliver(source)

    def _read(self, place: Place, source: Source, now_ms: int, now_s: float) -> None:
        first = source.position
        for offset in range(first, len(source.log)):
            appended_ms, value, headers = source.log[offset]
            record = SimpleNamespace(
                timestamp=appended_ms, timestamp_type=LOG_APPEND_TIME
            )
            own_ms = now_ms + self._ahead_ms(now_s)
            told_ms = source.end.told_ms
            self.clocks.see(place, record, told_ms=told_ms, now_ms=own_ms)
            (at_ms,) = self._times.of(place, [record])
            source.ingest.fold(
                SourceRecord(*place, offset, at_ms, None, value, headers)
            )
        source.position = len(source.log)
        answer_ms = now_ms + self._ahead_ms(now_s)
        source.end.hear(answer_ms, source.position, len(source.log), now_s=now_s)

    def _ahead_ms(self, now_s: float) -> int:
        return self._case.clock_ms if now_s >= self._case.jumps_after_s else 0

    def _deliver(self, source: Source) -> None:
        for output in source.pending:
            if output.topic == EVENTS:
                offset = self._offsets[output.partition]
                self._offsets[output.partition] += 1
                self._folds[output.partition].fold(
                    SourceRecord(
                        EVENTS, output.partition, offset, 0, None, output.value, ()
                    )
                )
        if source.pending or source.stored_position < source.position:
            source.stored = list(source.ingest.changes())
            source.stored_position = source.position
        source.pending = []
