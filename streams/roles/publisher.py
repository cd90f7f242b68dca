"""Committed snapshots from their topic into Redis, so that rankers see them.

Learning never waits for Redis: versions that cannot be written yet wait here, at most
the last ones of each model. An emptied Redis is filled again with the same versions.
Two publishers at once do no harm; Redis takes each version once, forwards only.
"""

import asyncio
import contextlib
import logging
import random
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
    decode_snapshot,
    encode_snapshot,
    following_key,
    is_pointer,
    pointer_from,
    pointer_of,
    rolled_back,
    store_of,
)
from rankstream.wire.topics import MIB, SNAPSHOTS, full_name
from streams.kafka.committed_reader import Waiting, committed_batches

KEPT_BYTES = 64 * MIB
"""Of one model's versions kept for a refill; `keep` bounds their number."""

CHECK_S = 1.0
"""How often Redis is asked whether it still has what was written."""

RETRY_S = 0.5

log = logging.getLogger("rankstream.publisher")

Work = list[tuple[str, Pointer, list[bytes]]]


@dataclass
class _Model:
    """Last versions of one model, oldest first, and how far they are written."""

    kept: OrderedDict[Pointer, bytes] = field(default_factory=OrderedDict)
    size: int = 0
    written: Pointer | None = None
    follows_in: int = 0
    """The epoch in which learned versions are served, after a rollback was undone."""

    @property
    def newest(self) -> Pointer | None:
        return next(reversed(self.kept), None)

    def pending(self) -> list[Pointer]:
        written = self.written
        return [at for at in self.kept if written is None or at > written]

    def drop(self, pointer: Pointer) -> None:
        self.size -= len(self.kept.pop(pointer))


class Publisher:
    """Takes records of the snapshots topic, and writes what is new to Redis.

    `take` and `run` belong to one event loop; Redis is spoken to in a thread.

    Parameters
    ----------
    store
        Where to write; it should not retry by itself.
    keep
        Versions of each model to hold for a refill.
    """

    def __init__(self, store: SnapshotStore, *, keep: int = 50) -> None:
        self._store = store
        self._keep = keep
        self._models: dict[str, _Model] = {}
        self._news = asyncio.Event()
        self._caught_up = asyncio.Event()
        self._checked_s = time.monotonic()
        self._waiting = Waiting(f"Redis at {store.place}")
        self._counts = dict.fromkeys(
            (
                "snapshots_published",
                "snapshots_coalesced",
                "snapshots_rejected",
                "publish_failures",
                "redis_refills",
            ),
            0,
        )

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take one record; never raises for what it holds.

        Parameters
        ----------
        key
            `MODEL/EPOCH.VERSION` of a snapshot, `MODEL` of the snapshot that a
            rollback made the newest, `MODEL/follow` of the one with which learned
            versions are served again, in its epoch.
        value
            Its envelope; None removes an old version.
        """
        name = key or b""
        if value is None:
            self._forget(name)
            return
        try:
            snapshot = decode_snapshot(value)
            pointer = pointer_of(snapshot)
            whole = f"{snapshot.model}/{pointer}".encode()
            following = following_key(snapshot.model)
            if name not in (whole, snapshot.model.encode(), following):
                raise SnapshotError("misplaced", f"the key must be {whole!r}")
        except SnapshotError as error:
            self._counts["snapshots_rejected"] += 1
            log.warning(
                "event=snapshot-rejected key=%r reason=%s %s",
                name[:100], error.reason, error,
            )  # fmt: skip
            return
        model = self._models.setdefault(snapshot.model, _Model())
        if name == whole and model.follows_in > pointer.epoch:
            moved = rolled_back(snapshot, model.follows_in)
            pointer, value = pointer_of(moved), encode_snapshot(moved)
        if model.newest is not None and pointer <= model.newest:
            return
        if name != whole:
            model.follows_in = pointer.epoch if name == following else 0
        model.kept[pointer] = value
        model.size += len(value)
        self._trim(model)
        self._news.set()

    def caught_up(self) -> None:
        """Say that the end of the topic was reached; `run` writes nothing before."""
        self._caught_up.set()

    def push_pending(self) -> int:
        """Write what is new, waiting for Redis; returns how many versions went in.

        Raises
        ------
        StoreUnavailable
        """
        return self._wrote(self._write(self._work()))

    def check(self) -> int:
        """Ask Redis what it has, and make pending what it lost; returns how much.

        Raises
        ------
        StoreUnavailable
        """
        return self._compare(self._store.standing(list(self._models)))

    async def run(self, stop: asyncio.Event) -> None:
        """Write until the stop and once more then, waiting while Redis is away."""
        stopping = asyncio.ensure_future(stop.wait())
        try:
            await _either(self._caught_up, stopping, None)
            while not stop.is_set():
                await self._turn(stopping)
            with contextlib.suppress(StoreUnavailable):
                await self._push()
        finally:
            stopping.cancel()

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many versions wait."""
        pending = sum(len(model.pending()) for model in self._models.values())
        return self._counts | {"snapshots_pending": pending}

    async def _turn(self, stopping: asyncio.Future[Any]) -> None:
        due_s = self._checked_s + CHECK_S - time.monotonic()
        await _either(self._news, stopping, max(due_s, 0.0))
        self._news.clear()
        try:
            if time.monotonic() - self._checked_s >= CHECK_S:
                models = list(self._models)
                self._compare(await asyncio.to_thread(self._store.standing, models))
                self._checked_s = time.monotonic()
            await self._push()
            self._waiting.over()
        except StoreUnavailable as error:
            self._counts["publish_failures"] += 1
            self._waiting.say(error)
            # Many publishers lose one Redis at once; they should not return at once.
            pause_s = RETRY_S * (1.0 + random.random())  # noqa: S311
            await asyncio.wait({stopping}, timeout=pause_s)
            self._news.set()

    async def _push(self) -> None:
        work = self._work()
        if work:
            self._wrote(await asyncio.to_thread(self._write, work))

    def _work(self) -> Work:
        work: Work = []
        for name, model in self._models.items():
            pending = model.pending()
            if pending:
                values = [model.kept[pointer] for pointer in pending]
                work.append((name, pending[-1], values))
        return work

    def _write(self, work: Work) -> list[tuple[str, Pointer, int]]:
        return [
            (name, last, self._store.publish_all(values)) for name, last, values in work
        ]

    def _wrote(self, done: list[tuple[str, Pointer, int]]) -> int:
        total = 0
        for name, last, count in done:
            self._models[name].written = last
            total += count
        self._counts["snapshots_published"] += total
        return total

    def _compare(self, standing: dict[str, Pointer]) -> int:
        lost = 0
        for name, model in self._models.items():
            held = standing.get(name)
            if model.written is not None and (held is None or held < model.written):
                model.written = None
                lost += 1
        self._counts["redis_refills"] += lost
        return lost

    def _trim(self, model: _Model) -> None:
        while len(model.kept) > 1 and (
            len(model.kept) > self._keep or model.size > KEPT_BYTES
        ):
            oldest = next(iter(model.kept))
            if model.written is None or oldest > model.written:
                self._counts["snapshots_coalesced"] += 1
            model.drop(oldest)

    def _forget(self, key: bytes) -> None:
        name, _, place = key.rpartition(b"/")
        model = self._models.get(name.decode(errors="replace"))
        if model is None or not is_pointer(place):
            return
        pointer = pointer_from(place)
        if pointer in model.kept and pointer != model.newest:
            model.drop(pointer)


async def publish_snapshots(
    settings: Settings,
    stop: asyncio.Event | None = None,
    publisher: Publisher | None = None,
) -> None:
    """Bring snapshots from their topic to Redis until the stop.

    Parameters
    ----------
    publisher
        One of the caller's own, to read its counters; else one is made.
    """
    stop = stop or asyncio.Event()
    if publisher is None:
        with contextlib.closing(store_of(settings, retries=0)) as store:
            made = Publisher(store, keep=settings.redis.keep_versions)
            await publish_snapshots(settings, stop, made)
        return
    reading = asyncio.create_task(_read(settings, publisher))
    writing = asyncio.create_task(publisher.run(stop))
    try:
        await asyncio.wait({reading, writing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stop.set()
        reading.cancel()
        results = await asyncio.gather(reading, writing, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _read(settings: Settings, publisher: Publisher) -> None:
    topic = full_name(settings.namespace, SNAPSHOTS)
    batches = committed_batches(settings.kafka, topic)
    async with contextlib.aclosing(batches):
        async for batch in batches:
            for key, value in batch.records:
                publisher.take(key, value)
            if batch.at_end:
                publisher.caught_up()


async def _either(
    event: asyncio.Event, stopping: asyncio.Future[Any], timeout_s: float | None
) -> None:
    waiting: asyncio.Future[Any] = asyncio.ensure_future(event.wait())
    await asyncio.wait(
        {waiting, stopping}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
    )
    waiting.cancel()
