"""Committed snapshots, experiments and decisions from their topics into Redis.

Redis is a copy: what it lost, or what was changed there, is written again.
"""

import asyncio
import contextlib
import time
from collections.abc import Iterator

from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, StoreUnavailable, store_of
from rankstream.wire.topics import DECISIONS, EXPERIMENTS, SNAPSHOTS, full_name
from streams.kafka.committed_reader import CommittedBatch, CompactedView
from streams.kafka.reader_role import FollowedPartition, either, run_reader_role
from streams.kafka.status.status_page import Status
from streams.redis_copies.decision_copy import DecisionCopy
from streams.redis_copies.experiment_copy import ExperimentCopy
from streams.redis_copies.snapshot_copy import SnapshotCopy
from streams.series import Series

CHECK_S = 1.0
"""How often Redis is asked whether it still has what was written."""


class Publisher:
    """Takes records of its topics, and writes what is new to Redis.

    Redis is spoken to in a thread, all else belongs to one event loop.

    Parameters
    ----------
    store
        Where to write; it should not retry by itself.
    keep
        Versions of each model to hold for a refill.
    namespace
        That of the topics.
    """

    absences = (StoreUnavailable,)

    def __init__(
        self, store: SnapshotStore, *, keep: int = 50, namespace: str = ""
    ) -> None:
        self.awaited = f"Redis at {store.place}"
        self.wrote_s: float | None = None
        self.snapshots = SnapshotCopy(store, keep=keep)
        self.experiments = ExperimentCopy(store)
        self.decisions = DecisionCopy(store)
        self._of_snapshots = FollowedPartition(full_name(namespace, SNAPSHOTS))
        self._of_experiments = FollowedPartition(full_name(namespace, EXPERIMENTS))
        self._of_decisions = FollowedPartition(full_name(namespace, DECISIONS))
        self._view = CompactedView()
        self._news = asyncio.Event()
        self._checked_s = float("-inf")
        self._n_failures = 0
        self._is_redis_up = False

    @property
    def sources(self) -> list[FollowedPartition]:
        """What to read."""
        return [self._of_snapshots, self._of_experiments, self._of_decisions]

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Take what was read; never raises for what it holds."""
        if source == self._of_experiments:
            self._take_experiments(batch)
        elif source == self._of_decisions:
            self._take_decisions(batch)
        else:
            self._take_snapshots(batch)

    async def turn(self, stop: asyncio.Event) -> None:
        """Wait for news or for the next look at Redis, and write what it lacks."""
        due_s = self._checked_s + CHECK_S - time.monotonic()
        if due_s > 0:
            await either(self._news, stop, timeout_s=due_s)
        self._news.clear()
        try:
            if time.monotonic() - self._checked_s >= CHECK_S:
                await self._check()
                self._checked_s = time.monotonic()
            await self._push()
            self._is_redis_up = True
        except StoreUnavailable as error:
            self._is_redis_up = error.is_answered
            self._n_failures += 1
            self._news.set()
            raise

    async def close(self) -> None:
        """Write what is left."""
        await self._push()

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many versions wait."""
        return {
            **self.snapshots.counters(),
            **self.experiments.counters(),
            **self.decisions.counters(),
            "publish_failures": self._n_failures,
        }

    def series(self) -> Iterator[Series]:
        """Whether Redis answers, how old models there are, and how late they came."""
        yield Series("redis_up", {}, self._is_redis_up)
        yield from self.snapshots.series()

    def _take_snapshots(self, batch: CommittedBatch) -> None:
        if batch.is_first:
            self.snapshots.begin_anew()
        self.snapshots.is_behind = not batch.at_end
        for key, value in batch.records:
            self.snapshots.take(key, value)
        if batch.records:
            self._news.set()
        if batch.is_settled:
            self.snapshots.settle()

    def _take_experiments(self, batch: CommittedBatch) -> None:
        if self._view.take(batch):
            self.experiments.show(self._view.values)
            # They are written by looking at what Redis has.
            self._checked_s = float("-inf")
            self._news.set()
        if batch.is_settled:
            self.experiments.settle()

    def _take_decisions(self, batch: CommittedBatch) -> None:
        if batch.is_first:
            self.decisions.begin_anew()
        is_news = [self.decisions.take(key, value) for key, value in batch.records]
        if batch.at_end:
            is_news.append(self.decisions.finish())
        if any(is_news):
            # They are written by looking at what Redis has.
            self._checked_s = float("-inf")
            self._news.set()
        if batch.is_settled:
            self.decisions.settle()

    async def _check(self) -> None:
        models = self.snapshots.models()
        self.snapshots.compare(await asyncio.to_thread(self.snapshots.look, models))
        self.experiments.compare(await asyncio.to_thread(self.experiments.look))
        self.decisions.compare(await asyncio.to_thread(self.decisions.look))

    async def _push(self) -> None:
        refused: StoreUnavailable | None = None
        for each in self.snapshots.work():
            try:
                count = await asyncio.to_thread(self.snapshots.write, each)
            except StoreUnavailable as error:
                if not error.is_answered:
                    raise
                # One that is too large for Redis' memory holds nothing else back.
                refused = error
            else:
                self.snapshots.wrote(each, count)
                self.wrote_s = time.monotonic() if count else self.wrote_s
        records = self.experiments.work()
        if records:
            await asyncio.to_thread(self.experiments.write, records)
            self.experiments.wrote(records)
        await self._push_decisions()
        if refused is not None:
            raise refused

    async def _push_decisions(self) -> None:
        for each in self.decisions.work():
            outcome = await asyncio.to_thread(self.decisions.write, each)
            self.decisions.wrote(each, outcome)


async def publish_copies(
    settings: Settings, stop: asyncio.Event, status: Status | None = None
) -> None:
    """Bring what services need from its topics to Redis until the stop."""
    with contextlib.closing(store_of(settings, retries=0)) as store:
        keep = settings.redis.keep_versions
        publisher = Publisher(store, keep=keep, namespace=settings.namespace)
        await run_reader_role(
            settings.kafka, publisher.sources, publisher, stop, status
        )
