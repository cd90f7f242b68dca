"""Reads the evaluation topics, the workers' metrics and Redis, again and again."""

import contextlib
import threading
import time
from collections.abc import Callable

from producers.brokers.cluster import KafkaAway
from producers.readiness import Interrupted, Waiting, why_no_kafka
from producers.topic_reader import TopicReader, TopicUnreadable
from rankstream.operations.answers.installation.first_steps import STEPS, steps_done
from rankstream.operations.answers.installation.health import (
    accepted_losses,
    counts_of_stages,
    losses_in_words,
    pages_of_roles,
)
from rankstream.operations.answers.models.snapshots import served_versions
from rankstream.operations.answers.models.trainings import CountedSoFar
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.parts import KAFKA, REDIS, ROLE
from rankstream.operations.monitoring.position_bias import PositionBias
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, StoreUnavailable, store_of
from rankstream.wire.topics import DECISIONS, EVALUATIONS, TRAINING
from streams.training.model_lists import LearnedOnline

EVERY_S = 2.0
EXAMINATION_EVERY_S = 20.0
FIRST_OFFSETS = 2_000
"""So many of the last verdicts are read at the start."""

NO_SNAPSHOT = (
    "Redis answers, and holds no snapshot of a model: rankers have nothing to load. "
    "The role publish of a worker brings what the topic `snapshots` has."
)


class Poller:
    """Threads that keep a `Gathered` up to date until they are closed.

    Topics have a thread of their own, so that Redis and workers are looked at also
    where the broker is away.
    """

    def __init__(self, settings: Settings, into: Gathered) -> None:
        self._settings = settings
        self._into = into
        self._stop = threading.Event()
        self._looked = [threading.Event(), threading.Event()]
        self._threads = [
            threading.Thread(target=each, name="gather", daemon=True)
            for each in (self._read_topics, self._look_around)
        ]
        self._next_offset = -1
        self._next_training = self._next_decision = 0
        self._bias = PositionBias(LearnedOnline(settings, tuple))
        self._counted = CountedSoFar(settings.kafka.partitions)
        self._examine_at_s = 0.0
        self._n_steps = 0
        self._is_broker_away = False

    def start(self) -> None:
        """Begin."""
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """End, within a second or two."""
        self._stop.set()
        for thread in self._threads:
            thread.join(timeout=5.0)

    @property
    def has_looked(self) -> bool:
        """Whether each part was asked once, and answered or did not."""
        return all(each.is_set() for each in self._looked)

    def _read_topics(self) -> None:
        away = _Away(lambda why: self._miss(KAFKA, why))
        while not self._stop.is_set():
            try:
                with TopicReader(
                    self._settings, waiting=away, is_stopped=self._stop.is_set
                ) as reader:
                    self._rounds(reader)
            except Interrupted:
                return
            except TopicUnreadable as error:
                if error.__cause__ is not None:  # the client's: nobody answered
                    self._miss(KAFKA, str(error))
                else:
                    self._into.heard(KAFKA, _now_ms())
                    self._into.note("topics", str(error))
            except (KafkaAway, OSError) as error:
                self._miss(KAFKA, str(error))
            self._looked[0].set()
            self._stop.wait(EVERY_S)

    def _miss(self, part: str, why: str) -> None:
        self._into.missed(part, why, _now_ms())
        self._looked[part == REDIS].set()

    def _rounds(self, reader: TopicReader) -> None:
        while not self._stop.is_set():
            if self._is_broker_away:  # a client that asked now would wait long
                self._stop.wait(EVERY_S)
                continue
            if self._n_steps < len(STEPS):
                done = steps_done(reader)
                self._n_steps = sum(done)
                self._into.set_steps(done)
            self._read_verdicts(reader)
            self._read_training(reader)
            self._read_decisions(reader)
            if time.monotonic() >= self._examine_at_s:
                self._examine(reader)
                self._examine_at_s = time.monotonic() + EXAMINATION_EVERY_S
            self._into.note("topics", "")
            self._into.note("scopes", self._bias.refused)
            self._into.heard(KAFKA, _now_ms())
            self._looked[0].set()
            self._stop.wait(EVERY_S)

    def _examine(self, reader: TopicReader) -> None:
        self._bias.read(reader, self._counted.seen)
        self._into.set_counted(self._counted.counted)
        self._into.set_examination(self._bias.estimate())
        self._into.note("losses", losses_in_words(accepted_losses(reader)))

    def _look_around(self) -> None:
        with contextlib.closing(store_of(self._settings, retries=0)) as store:
            while not self._stop.is_set():
                self._look_at_broker()
                self._look_at_roles()
                self._look_at_redis(store)
                self._looked[1].set()
                self._stop.wait(EVERY_S)

    def _look_at_broker(self) -> None:
        # A client in the middle of a read takes half a minute to say the same. That it
        # is there again is said by who reads.
        why = why_no_kafka(self._settings.kafka, is_stopped=self._stop.is_set)
        self._is_broker_away = bool(why)
        if why:
            self._miss(KAFKA, why)

    def _look_at_roles(self) -> None:
        pages, at_ms = pages_of_roles(self._settings), _now_ms()
        for role, counts in pages.items():
            if counts is None:
                self._into.missed(ROLE + role, "no answer from its page", at_ms)
            else:
                self._into.heard(ROLE + role, at_ms)
        if any(counts is not None for counts in pages.values()):
            # What was counted last stays to be seen where all are away.
            self._into.set_counts(counts_of_stages(pages))
        self._into.take_flow(pages, time.monotonic())

    def _look_at_redis(self, store: SnapshotStore) -> None:
        try:
            served = served_versions(store)
        except StoreUnavailable as error:
            self._miss(REDIS, str(error))
            return
        self._into.heard(REDIS, _now_ms())
        is_empty = bool(not served and self._settings.models)
        self._into.note("snapshots", NO_SNAPSHOT if is_empty else "")
        if served:
            self._into.set_snapshots([each.to_dict() for each in served])

    def _read_verdicts(self, reader: TopicReader) -> None:
        if self._next_offset < 0:
            records = reader.last_records(EVALUATIONS, FIRST_OFFSETS)
        else:
            records = reader.records(EVALUATIONS, {0: self._next_offset})
        for record in records:
            self._into.take_verdict(record.value)
            self._next_offset = record.offset + 1

    def _read_training(self, reader: TopicReader) -> None:
        # Namespaces of earlier releases lack it until `topics create` runs again.
        if not reader.partitions(TRAINING):
            return
        records = list(reader.records(TRAINING, {0: self._next_training}))
        self._into.take_training((each.key or b"", each.value) for each in records)
        if records:
            self._next_training = records[-1].offset + 1

    def _read_decisions(self, reader: TopicReader) -> None:
        # As above.
        if not reader.partitions(DECISIONS):
            return
        for each in reader.records(DECISIONS, {0: self._next_decision}):
            self._into.take_decisions(each.key or b"", each.value)
            self._next_decision = each.offset + 1


class _Away(Waiting):
    """Tells at each attempt what is in the way, as a screen shows it all the time."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        super().__init__()
        self._tell = tell

    def waits(self, what: str, why: str = "", since_s: float | None = None) -> None:
        """Hear that somebody still waits, and what is in the way."""
        del since_s
        self._tell(why or f"no answer from {what}")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
