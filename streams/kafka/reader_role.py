"""The loop of a role that reads topics from their beginning and folds nothing.

A role is what it takes and what it does in a turn:

    class Trainer:
        awaited = "..."
        absences = (KafkaError,)

        def take(self, source, batch): ...
        async def turn(self, stop): ...
        async def close(self): ...

    await run_reader_role(settings.kafka, sources, Trainer(), stop)

The loop reads every source on and on, begins the turns once the end of all of them was
reached, waits where something is away, and ends when it is told to or one part fails.
"""

import asyncio
import contextlib
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

from rankstream.settings import KafkaSettings
from streams.kafka.committed_reader import CommittedBatch, Waiting, committed_batches
from streams.kafka.status.role_status import RoleStatus
from streams.kafka.status.status_page import Status
from streams.series import Series

RETRY_S = 0.5
"""Pause, at least, before a turn that failed is tried again."""


class FollowedPartition(NamedTuple):
    """A partition to read; the topic by its full name."""

    topic: str
    partition: int = 0


class ReaderRole(Protocol):
    """What a role does with what is read.

    All of it is called in one event loop; a turn may work in a thread meanwhile.

    Attributes
    ----------
    awaited
        What a turn needs, as the log names it.
    absences
        Errors of a turn that mean that it is away: the turn is tried again. Any other
        ends the role.
    wrote_s
        By the monotonic clock, when it last wrote what it is there for; None before.
    """

    @property
    def awaited(self) -> str:
        """What a turn needs, as the log names it."""

    @property
    def absences(self) -> tuple[type[Exception], ...]:
        """Errors of a turn that mean: try again."""

    @property
    def wrote_s(self) -> float | None:
        """When it last wrote; None before."""

    def counters(self) -> Mapping[str, int]:
        """What happened so far, and gauges, by metric name."""

    def series(self) -> Iterable[Series]:
        """What it tells by model, rule or experiment; those that matter most first."""

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Take what was read. After an outage a source begins anew: `is_first`."""

    async def turn(self, stop: asyncio.Event) -> None:
        """Wait for something to do, and do it; return soon after the stop."""

    async def close(self) -> None:
        """Do what is left and let go, after the last turn."""


async def run_reader_role(
    kafka: KafkaSettings,
    sources: Sequence[FollowedPartition],
    role: ReaderRole,
    stop: asyncio.Event,
    status: Status | None = None,
) -> None:
    """Read and take turns until the stop.

    Parameters
    ----------
    sources
        What to read; no turn begins before the end of each was reached once.
    stop
        Ends it. It is set, too, where a part of it failed.
    status
        Is told how the role fares, once a second.

    Raises
    ------
    Exception
        Whatever a part of the role failed with. A part that was cancelled though nobody
        asked has failed too: a client may let a cancellation of its own out.
    """
    status = status or Status("")
    fares = RoleStatus(status.role, sources)
    status.registry.register(fares)
    level = _Level(sources)
    reading = [
        asyncio.create_task(_read(kafka, source, role, level, fares))
        for source in sources
    ]
    working = asyncio.create_task(_work(role, level, stop, fares))
    tasks = [*reading, working]
    beating = asyncio.create_task(status.beat(lambda: _troubles(role, fares, stop)))
    ended: set[asyncio.Task[None]] = set()
    try:
        ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        is_asked = stop.is_set()
        stop.set()
        for task in reading:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        beating.cancel()
    for result in results:
        if isinstance(result, Exception):
            raise result
    cancelled = [task for task in ended if task.cancelled()]
    if cancelled and not is_asked:
        raise RuntimeError(
            f"a part of the role {status.role!r} was cancelled, though nobody asked"
        ) from results[tasks.index(cancelled[0])]


async def either(*events: asyncio.Event, timeout_s: float | None = None) -> None:
    """Wait until one of the events is set, or for so long."""
    waits = [asyncio.ensure_future(event.wait()) for event in events]
    try:
        await asyncio.wait(
            waits, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        for wait in waits:
            wait.cancel()


class _Level:
    """Which sources have not been read to their end yet."""

    def __init__(self, sources: Sequence[FollowedPartition]) -> None:
        self._behind = set(sources)
        self.reached = asyncio.Event()
        self._tell()

    def reach(self, source: FollowedPartition) -> None:
        self._behind.discard(source)
        self._tell()

    def _tell(self) -> None:
        if not self._behind:
            self.reached.set()


def _troubles(role: ReaderRole, fares: RoleStatus, stop: asyncio.Event) -> list[str]:
    """What the page is to say, with fresh counts."""
    fares.count(role.counters(), role.wrote_s, role.series())
    return ["it is stopping"] if stop.is_set() else list(fares.troubles())


async def _read(
    kafka: KafkaSettings,
    source: FollowedPartition,
    role: ReaderRole,
    level: _Level,
    fares: RoleStatus,
) -> None:
    batches = committed_batches(kafka, source.topic, source.partition)
    async with contextlib.aclosing(batches):
        async for batch in batches:
            role.take(source, batch)
            fares.take(source, batch)
            if batch.at_end:
                level.reach(source)


async def _work(
    role: ReaderRole, level: _Level, stop: asyncio.Event, fares: RoleStatus
) -> None:
    await either(level.reached, stop)
    if not level.reached.is_set():
        return
    waiting = Waiting(role.awaited)
    try:
        while not stop.is_set():
            try:
                await role.turn(stop)
                waiting.over()
                fares.away = ""
            except role.absences as error:
                waiting.say(error)
                fares.away = f"{role.awaited} does not answer: {error}"
                # Many lose one server at once; they should not return at once.
                pause_s = RETRY_S * (1.0 + random.SystemRandom().random())
                await either(stop, timeout_s=pause_s)
    finally:
        with contextlib.suppress(*role.absences):
            await role.close()
