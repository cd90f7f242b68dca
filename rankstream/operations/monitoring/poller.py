"""Reads the evaluation topics, the workers' metrics and Redis, again and again."""

import contextlib
import threading
import time

from producers.readiness import Interrupted, Waiting
from producers.topic_admin import KafkaAway
from producers.topic_reader import TopicReader, TopicUnreadable
from rankstream.operations.answers.health import (
    accepted_losses,
    counts_of_workers,
    loss_in_words,
)
from rankstream.operations.answers.snapshots import served_versions
from rankstream.operations.answers.trainings import CountedSoFar
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.position_bias import PositionBias
from rankstream.settings import Settings
from rankstream.snapshots import (
    SnapshotStore,
    StoreUnavailable,
    store_of,
)
from rankstream.wire.topics import DECISIONS, EVALUATIONS, TRAINING
from streams.training.model_lists import LearnedOnline

EVERY_S = 2.0
EXAMINATION_EVERY_S = 20.0
FIRST_OFFSETS = 2_000
"""So many of the last verdicts are read at the start."""


class Poller:
    """A thread that keeps a `Gathered` up to date until it is closed."""

    def __init__(self, settings: Settings, into: Gathered) -> None:
        self._settings = settings
        self._into = into
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gather", daemon=True)
        self._next_offset = -1
        self._next_training = self._next_decision = 0
        self._bias = PositionBias(LearnedOnline(settings, tuple))
        self._counted = CountedSoFar(settings.kafka.partitions)
        self._examine_at_s = 0.0

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, within a second or two."""
        self._stop.set()
        self._thread.join(timeout=5.0)

    def _run(self) -> None:
        with contextlib.closing(store_of(self._settings, retries=0)) as store:
            while not self._stop.is_set():
                try:
                    with TopicReader(
                        self._settings,
                        waiting=Waiting(self._into.set_trouble),
                        is_stopped=self._stop.is_set,
                    ) as reader:
                        self._rounds(reader, store)
                except Interrupted:
                    return
                except (KafkaAway, TopicUnreadable, OSError) as error:
                    self._into.set_trouble(str(error))
                    self._stop.wait(EVERY_S)

    def _rounds(self, reader: TopicReader, store: SnapshotStore) -> None:
        while not self._stop.is_set():
            self._read_verdicts(reader)
            self._read_training(reader)
            self._read_decisions(reader)
            self._into.set_counts(counts_of_workers(self._settings))
            if time.monotonic() >= self._examine_at_s:
                self._bias.read(reader, self._counted.seen)
                self._into.set_counted(self._counted.counted)
                self._into.set_examination(self._bias.estimate())
                self._into.set_losses(map(loss_in_words, accepted_losses(reader)))
                self._examine_at_s = time.monotonic() + EXAMINATION_EVERY_S
            trouble = self._bias.refused
            try:
                served = served_versions(store)
                self._into.set_snapshots([each.to_dict() for each in served])
            except StoreUnavailable as error:
                trouble = str(error)
            self._into.set_trouble(trouble)
            self._stop.wait(EVERY_S)

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
