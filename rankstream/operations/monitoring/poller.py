"""Reads the evaluation topics, the workers' metrics and Redis, again and again."""

import contextlib
import http.client
import threading
import time
from typing import Any

from producers.readiness import Interrupted, Waiting
from producers.topic_admin import KafkaAway
from producers.topic_reader import TopicReader, TopicUnreadable
from rankstream.operations.accepted_losses import accepted_losses, told
from rankstream.operations.monitoring.overview import Gathered, added_up
from rankstream.operations.monitoring.position_bias import PositionBias
from rankstream.operations.monitoring.schedules import CountedSoFar
from rankstream.settings import Settings
from rankstream.snapshots import (
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
    decode_at,
    store_of,
)
from rankstream.wire.topics import EVALUATIONS, TRAINING
from streams.training.learned_online import LearnedOnline
from streams.worker_roles import ROLES, kinds_of

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
        self._next_training = 0
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
            self._into.set_counts(metrics_of(self._settings))
            if time.monotonic() >= self._examine_at_s:
                self._bias.read(reader, self._counted.seen)
                self._into.set_counted(self._counted.counted)
                self._into.set_examination(self._bias.estimate())
                self._into.set_losses(map(told, accepted_losses(reader)))
                self._examine_at_s = time.monotonic() + EXAMINATION_EVERY_S
            trouble = self._bias.refused
            try:
                self._into.set_snapshots(snapshots_of(store))
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


def metrics_of(settings: Settings) -> dict[str, int]:
    """Counts of all roles' pages, added up; none where a page does not answer."""
    total: dict[str, int] = {}
    if not settings.metrics.port:
        return total
    ports = [role.metrics_port for name, role in ROLES.items() if kinds_of(name)]
    for port in ports:
        page = _page(settings.metrics.host, settings.metrics.port + port)
        for name, count in added_up(page).items():
            total[name] = total.get(name, 0) + count
    return total


def _page(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=1.0)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read().decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()


def snapshots_of(store: SnapshotStore) -> list[dict[str, Any]]:
    """What is served of each model.

    Raises
    ------
    StoreUnavailable
    """
    found = []
    for model, pointer in sorted(store.standing(store.models()).items()):
        try:
            snapshot = decode_at(store.load(model, pointer) or b"", model, pointer)
        except SnapshotError:
            continue
        found.append(
            {
                "model": model,
                "version": str(pointer),
                "created_ms": snapshot.created_ms,
                "updates": snapshot.updates,
                # What is learned online names no groups.
                "is_trained": bool(snapshot.groups),
            }
        )
    return found
