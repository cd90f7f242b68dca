"""Interventions on Kafka: statistics and features in, trained snapshots out.

Follows what the statistics have counted. Where a model is due, or somebody asked, it
reads both topics whole, trains, and then writes snapshot, deployment note, run record
and position in one short transaction. It stores nothing else: what was begun and not
published is begun anew.
"""

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Iterator
from typing import NamedTuple

from aiokafka.errors import KafkaError

from rankstream.settings import Settings
from rankstream.wire.envelope import pointer_of
from rankstream.wire.models.training import ASKED, DONE, LEFT_ALONE
from rankstream.wire.models.training import TRAINING as UNDER_WAY
from rankstream.wire.topics import (
    PREFERENCES,
    SNAPSHOTS,
    STATISTICS,
    TRAINING,
    full_name,
)
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import CommittedBatch, client_options
from streams.kafka.deployment.fenced_log import WriterFenced
from streams.kafka.deployment.model_log import ModelLog
from streams.kafka.reader_role import FollowedPartition, either, run_reader_role
from streams.kafka.status.status_page import Status
from streams.kafka.training.background_thread import BackgroundThread, Stopped, Task
from streams.kafka.training.canaries import Canaries
from streams.kafka.training.intervention import BEAT_S, Ending, Intervention, Train
from streams.kafka.training.memory import MemoryLimit, give_back_free_pages
from streams.kafka.training.training_outcomes import FENCED, Trainings
from streams.kafka.training.valuations import Valuations
from streams.series import Series
from streams.statistics import keys
from streams.training.model_records import ModelRecords
from streams.training.schedule import Retries, Standing, due, least_watermark, n_passed
from streams.training.trained_snapshot import train_model

LOOK_S = 1.0
"""How often it is looked whether a model is due, if nothing was read."""

LEASE_S = 30.0
"""Another trainer that has said nothing for so long has ended."""

ALIKE_S = 2.0 * BEAT_S
"""The same of one of a worker of the same instance: most likely that one was started
again, and this is its successor. Who lives says so before."""

NICENESS = 10
"""So that the fold keeps its core."""

log = logging.getLogger("rankstream.trainer")


class Heard(NamedTuple):
    """When another trainer said that it is at work, and how long that holds."""

    at_s: float
    lease_s: float


class Trainer:
    """Takes what was counted, what is served and what is asked for; trains what is due.

    Parameters
    ----------
    cluster
        Where to read and write.
    train
        Makes a snapshot of inputs.
    worker
        Names the worker that this one is of, after each start of the role; if not
        given this one alone.
    """

    absences = (KafkaError,)

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        train: Train = train_model,
        *,
        worker: str = "",
    ) -> None:
        self.awaited = f"{TRAINING} at {settings.kafka.bootstrap}"
        self.wrote_s: float | None = None
        self._settings = settings
        self._cluster = cluster
        self._train = train
        worker = worker or uuid.uuid4().hex[:12]
        self._own_id = f"{settings.delivery.instance_id}/{worker}"
        self._models = frozenset(settings.schedules) | frozenset(settings.deployed)
        self._seen = ModelRecords(self._models, _passed)
        self._counted: dict[int, keys.Counted] = {}
        self._valuations = Valuations(settings, cluster)
        self._canaries = Canaries(
            settings, cluster, self._seen, f"train {self._own_id}"
        )
        self._retries = Retries()
        self._others: dict[str, Heard] = {}
        self._news = asyncio.Event()
        self._trainings = Trainings(settings.schedules)
        self._n_under_way = 0

    @property
    def sources(self) -> list[FollowedPartition]:
        """What to follow."""
        namespace = self._settings.namespace
        topics = [STATISTICS, *([PREFERENCES] if self._settings.deployed else [])]
        return [
            *(
                FollowedPartition(full_name(namespace, topic), n)
                for topic in topics
                for n in range(self._settings.kafka.partitions)
            ),
            FollowedPartition(full_name(namespace, SNAPSHOTS)),
            FollowedPartition(full_name(namespace, TRAINING)),
        ]

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Take what was read. It is a hint: whoever acts on it reads it again."""
        if source.topic == full_name(self._settings.namespace, PREFERENCES):
            self._canaries.take(source.partition, batch)
            return
        of_counted = keys.counted_key(source.partition)
        for key, value in batch.records:
            if key is None:
                continue
            if source.topic == full_name(self._settings.namespace, STATISTICS):
                if key == of_counted and value is not None:
                    self._counted[source.partition] = keys.decode_counted(value)
            elif source.topic == full_name(self._settings.namespace, SNAPSHOTS):
                self._seen.take_snapshot(key, value)
                self._valuations.take_snapshot(key, value)
            else:
                self._hear(self._seen.take_training(key, value))
        if batch.records:
            self._news.set()

    def counters(self) -> dict[str, int]:
        """What happened so far, and whether something is under way."""
        return {
            **self._trainings.totals(),
            **self._valuations.counters(),
            **self._canaries.counters(),
            "interventions_pending": self._n_under_way,
        }

    def series(self) -> Iterator[Series]:
        """Trainings and canaries by model."""
        yield from self._trainings.series()
        yield from self._canaries.series()

    async def turn(self, stop: asyncio.Event) -> None:
        """Wait for news, train what is due, and value what is served.

        Canaries are judged meanwhile: one that is worse waits for no training.

        Where another trainer, or an operator, took the model over meanwhile, nothing of
        it was written, and it goes on with what that one leaves.
        """
        await either(self._news, stop, timeout_s=LOOK_S)
        self._news.clear()
        is_over = asyncio.Event()
        judging = asyncio.create_task(self._canaries.run(is_over))
        try:
            for name in self._settings.schedules:
                if not stop.is_set() and self._is_wanted(name):
                    await self._intervene(name, stop)
            await self._valuations.turn(stop, self._counted, self._is_any_wanted)
        finally:
            is_over.set()
            await judging

    async def close(self) -> None:
        """Nothing is left: each training lets go of what it has."""

    # What is due.

    def _hear(self, name: str) -> None:
        """Note that another trainer is at work, or no longer is."""
        status = self._seen.statuses.get(name)
        if status is None:
            return
        is_other = status.state == UNDER_WAY and status.by != self._own_id
        if is_other:
            self._others[name] = Heard(time.monotonic(), self._lease_s(status.by))
        else:
            self._others.pop(name, None)

    def _lease_s(self, by: str) -> float:
        """How long another one's word holds."""
        instance = self._settings.delivery.instance_id
        is_alike = bool(instance) and by.rpartition("/")[0] == instance
        return ALIKE_S if is_alike else LEASE_S

    def _is_wanted(self, name: str) -> bool:
        heard = self._others.get(name)
        if heard is not None and time.monotonic() - heard.at_s < heard.lease_s:
            return False
        task = self._task_of(name, self._seen)
        if task is None or task.reason == ASKED:
            return task is not None
        return not self._retries.is_held(name, self._standing(name), time.monotonic())

    def _is_any_wanted(self) -> bool:
        return any(self._is_wanted(name) for name in self._settings.schedules)

    def _task_of(self, name: str, records: ModelRecords) -> Task | None:
        request = records.asked(name)
        if request is not None:
            return Task(name, ASKED, request.id)
        if name in records.canaries or name in records.unreadable_canaries:
            # A second version cannot go out beside it; what is due waits.
            return None
        schedule = self._settings.schedules[name]
        position = records.positions.get(name)
        reason = due(schedule, position, self._n_counted(), self._watermark_ms())
        return None if reason is None else Task(name, reason, "")

    def _n_counted(self) -> int:
        return sum(sum(each.sources.values()) for each in self._counted.values())

    def _watermark_ms(self) -> int | None:
        known = [each.watermark_ms for each in self._counted.values()]
        return least_watermark(known, self._settings.kafka.partitions)

    def _standing(self, name: str) -> Standing:
        newest = self._seen.newest.get(name)
        schedule = self._settings.schedules[name]
        return Standing(
            None if newest is None else pointer_of(newest),
            n_passed(schedule, self._n_counted(), self._watermark_ms()),
        )

    # An intervention.

    async def _intervene(self, name: str, stop: asyncio.Event) -> None:
        started_s = time.monotonic()
        timeout_ms = self._settings.delivery.transaction_timeout_ms
        own = ModelLog(self._cluster, name, timeout_ms)
        self._n_under_way = 1
        try:
            await own.fence()
            records = await own.read(self._models, lambda: _check(stop))
            self._learn(records, name)
            task = self._task_of(name, records)
            if task is not None:
                memory = MemoryLimit(self._settings.train.memory_mb)
                thread = BackgroundThread(task, stop, memory)
                run = Intervention(
                    self._settings, self._cluster, own, thread,
                    by=self._own_id, train=self._train,
                )  # fmt: skip
                known = (each.watermark_ms for each in self._counted.values())
                at_ms = min((each for each in known if each is not None), default=0)
                ended = await run.run(records, at_ms)
                self._trainings.ended(name, ended.state, time.monotonic() - started_s)
                self._take_ending(name, ended)
        except WriterFenced as error:
            self._trainings.ended(name, FENCED)
            log.warning("event=fenced model=%s reason=%s", name, error)
        except Stopped:
            log.info("event=given-up model=%s reason=it is stopping", name)
        finally:
            self._n_under_way = 0
            await own.close()
            give_back_free_pages()

    def _learn(self, records: ModelRecords, name: str) -> None:
        """What was read after the fence holds, whatever was seen before."""
        if name in records.positions:
            self._seen.positions[name] = records.positions[name]
        if name in records.newest:
            self._seen.newest[name] = records.newest[name]

    def _take_ending(self, name: str, ending: Ending) -> None:
        """Know what was written before it is read."""
        for each in ending.written:
            if each.topic == SNAPSHOTS:
                self._seen.take_snapshot(each.key or b"", each.value)
            else:
                self._seen.take_training(each.key or b"", each.value)
        if ending.state == DONE:
            self._retries.forget(name)
            self.wrote_s = time.monotonic()
        elif ending.state == LEFT_ALONE:
            self._retries.leave(name, self._standing(name))
        else:
            now_s, standing = time.monotonic(), self._standing(name)
            if self._retries.refuse(name, ending.why, standing, now_s):
                log.warning(
                    "event=training-refused model=%s reason=%s", name, ending.why,
                    exc_info=ending.cause,
                )  # fmt: skip


def _passed(why: str) -> None:
    log.warning("event=passed-over topic=%s record=%s", TRAINING, why)


def _check(stop: asyncio.Event) -> None:
    if stop.is_set():
        raise Stopped


async def train(
    settings: Settings, stop: asyncio.Event, status: Status | None = None
) -> None:
    """Train what is due until the stop."""
    os.nice(NICENESS)
    cluster = Cluster(settings.namespace, client_options(settings.kafka), {})
    trainer = Trainer(settings, cluster, worker=status.worker if status else "")
    await run_reader_role(settings.kafka, trainer.sources, trainer, stop, status)
