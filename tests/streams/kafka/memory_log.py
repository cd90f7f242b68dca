"""The topics of one partition in memory, just enough to hold a committer to its rules.

Every write is whole or not at all, and only the owner that fenced last may write.
"""

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any

import msgspec

from rankstream.settings import DeliverySettings, Settings
from streams.kafka.group.membership import Membership
from streams.kafka.partitions.committer import Committer
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    SourcePartition,
    decode_position,
)
from streams.kafka.state.state_log import StateRead
from streams.stage import Change, Output, SourceRecord, Stage
from streams.topology import StageKind
from tests.streams.kafka.toy import OUT, SOURCE, STATE, Toy

FIRST = 10
"""Offset of the oldest record of the source."""


class Fenced(Exception):
    """Another owner has the partition."""


class Topics:
    """What a partition's topics hold."""

    def __init__(self, end: int = 1_000) -> None:
        self.items: dict[tuple[str, bytes], bytes] = {}
        self.outputs: list[Output] = []
        self.n_writes = 0
        self.committed: int | None = None
        self.source = SourcePartition("toy[0]", "id", 1, FIRST, end)
        self.owner: MemoryLog | None = None

    @property
    def passed_on(self) -> list[int]:
        """Numbers that came out, in order."""
        return [
            number
            for output in self.outputs
            for number in msgspec.msgpack.decode(output.value or b"")[1]
        ]

    @property
    def position(self) -> Any:
        """The resume position."""
        return decode_position(self.items[STATE, POSITION_KEY])


class MemoryLog:
    """One owner's view of them."""

    def __init__(self, topics: Topics) -> None:
        self.topics = topics
        self.calls: list[str] = []
        self.member: Membership | None = None
        self.may_write = asyncio.Event()
        self.may_write.set()
        self.may_read = asyncio.Event()
        self.may_read.set()
        self.error: Exception | None = None

    def join(self, member: Membership | None) -> None:
        """Hear as whom it is owned."""
        self.member = member

    def gathering(self) -> contextlib.AbstractContextManager[None]:
        """Nothing else is written with it."""
        return contextlib.nullcontext()

    async def fence(self, timeout_ms: int) -> None:
        """Become the owner."""
        assert timeout_ms > 0
        self.calls.append("fence")
        self.topics.owner = self

    async def read(self) -> StateRead:
        """Everything, once it may be read."""
        self.calls.append("read")
        await self.may_read.wait()
        items = dict(self.topics.items)
        return StateRead(items, len(items), self.topics.source)

    async def write(
        self, outputs: list[Output], changes: Iterable[Change], next_offset: int
    ) -> None:
        """All of it, once it may be written."""
        self.calls.append("write")
        await self.may_write.wait()
        if self.error is not None:
            raise self.error
        if self.topics.owner is not self:
            raise Fenced
        self.topics.n_writes += 1
        self.topics.committed = next_offset
        self.topics.outputs += outputs
        for topic, key, value in changes:
            assert value is not None
            self.topics.items[topic, key] = value

    async def close(self) -> None:
        """Be the owner no more."""
        self.calls.append("close")


class Acknowledged:
    """A record's event, as Faust has it."""

    def __init__(self) -> None:
        self.n_acks = 0

    def ack(self) -> None:
        """Count it."""
        self.n_acks += 1


def _toy(_settings: Settings, partition: int) -> Stage:
    return Toy(partition)


KIND = StageKind("toy", SOURCE, (STATE,), _toy, (OUT,))

SETTINGS = Settings(
    delivery=DeliverySettings(
        state_s=3_600.0, state_records=1_000_000, commit_s=3_600.0
    )
)
"""No commit and no checkpoint comes because of the time."""


def committer_on(log: MemoryLog, settings: Settings = SETTINGS) -> Committer:
    """A committer of the toy stage."""
    return Committer(KIND, 0, log, settings)


def numbered(offset: int, n_bytes: int = 8) -> SourceRecord:
    """The record at an offset; its number is the offset."""
    value = offset.to_bytes(8, "big").ljust(n_bytes, b".")
    return SourceRecord(SOURCE, 0, offset, 0, b"key", value, ())
