"""Partitions of a stage: outputs, resume position and state, committed at once.

A *commit* writes a stage's outputs and its resume position in one transaction of a
producer whose id names the partition. A *checkpoint* is a commit that also writes the
state that changed. Taking a partition over is: initialise that producer (which fences
whoever had it), read the state back, go on behind the resume position. Records between
the last checkpoint and that position are folded again with their outputs dropped: a
stage is a pure function of its log, and the stored fingerprint proves that it was.
"""

import asyncio
import logging
import time
from typing import Any

from rankstream.settings import Settings
from rankstream.wire.bounds import carried_bytes
from rankstream.wire.topics import MIB
from streams.kafka.planted_faults import (
    REPEATED_RECORDS,
    SKIP_RESUME_POSITION,
    is_planted,
)
from streams.kafka.resume_position import (
    POSITION_KEY,
    SCHEMA,
    ResumePosition,
    Source,
    StateRefused,
    check_missing,
    check_position,
    decode_position,
    encode_position,
    start_of,
)
from streams.kafka.state_log import Cluster, StateLog
from streams.stage import Change, Output, SourceRecord
from streams.topology import StageKind

__all__ = [
    "POSITION_KEY",
    "Cluster",
    "Committer",
    "StateRefused",
    "decode_position",
]

RECORD_BYTES = 512
"""What a record costs in memory beside its value, roughly."""

SOON_BYTES = 8 * MIB
"""After so much a commit is due, whatever the clock says."""

FULL_BYTES = 16 * MIB
"""After so much nothing more is folded before a commit has begun."""

log = logging.getLogger("rankstream.commit")


class Committer:
    """A stage on one partition of its source.

    Not for use after an error: the caller ends the process, and the next owner's
    producer aborts the open transaction.
    """

    def __init__(
        self,
        kind: StageKind,
        partition: int,
        cluster: Cluster,
        settings: Settings,
    ) -> None:
        self.kind = kind
        self.partition = partition
        self.stage = kind.build(settings, partition)
        self.folded = -1
        self.seconds = 0.0
        self.lock = asyncio.Lock()
        self.room = asyncio.Event()
        self.is_suspended = False
        self.counts: dict[str, int] = {}
        self._cluster = cluster
        self._delivery = settings.delivery
        self._state = StateLog(
            kind.name, kind.source, kind.state_topics, kind.outputs, partition
        )
        self._writing = asyncio.Lock()
        self._resumed: ResumePosition | None = None
        self._written = self._committed = -1
        self._next_offset = 0
        self._checkpoint = -1
        self._checkpoint_fingerprint = b""
        self._checkpoint_at_s = time.monotonic()
        self._records_since_checkpoint = 0
        self._is_dirty = False
        self._number = 0
        self._n_partitions = 0
        self._events: list[Any] = []
        self._unwritten_bytes = 0

    @property
    def name(self) -> str:
        """Topic and partition, for log lines."""
        return f"{self.kind.source}[{self.partition}]"

    @property
    def number(self) -> int:
        """Commits that this partition has had."""
        return self._number

    @property
    def is_silent(self) -> bool:
        """Whether records before the resume position are being folded again."""
        return self._resumed is not None

    @property
    def is_due(self) -> bool:
        """Whether so many bytes wait that the next commit should begin at once."""
        return self._unwritten_bytes >= SOON_BYTES

    @property
    def is_full(self) -> bool:
        """Whether folding is to wait for `room`."""
        return self._unwritten_bytes >= FULL_BYTES

    @property
    def n_unacknowledged(self) -> int:
        """Records that were folded and are not in a commit that succeeded."""
        return len(self._events)

    async def open(self, committed: int | None, now_ms: int) -> int:
        """Fence, read back, and say at which offset to start.

        Parameters
        ----------
        committed
            What the consumer group committed for the partition, if anything.
        now_ms
            A stage that hears a clock must have heard it before its first record.

        Raises
        ------
        StateRefused
            Where state and log do not belong together.
        """
        try:
            return await self._open(committed, now_ms)
        except BaseException:  # a cancelled start must not leave its producer open
            await self._state.close()
            raise

    def fold(self, record: SourceRecord, event: Any) -> None:
        """Take a record; `event` is acknowledged when a commit covers it."""
        if record.offset <= self.folded:
            self._hold(record.offset, event)
            return
        self.stage.fold(record)
        self.folded = record.offset
        self._records_since_checkpoint += 1
        self._is_dirty = True
        self._hold(record.offset, event)
        if self._resumed is None:
            self._unwritten_bytes += RECORD_BYTES + len(record.value or b"")
            if record.key or record.headers:
                self._unwritten_bytes += carried_bytes(record.key, record.headers)
        elif record.offset >= self._resumed.offset:
            self._catch_up(self._resumed)

    async def commit(
        self,
        now_ms: int,
        *,
        at_end: bool,
        reached: int | None = None,
        final: bool = False,
    ) -> bool:
        """Write what is new, if anything; False if there was nothing to write.

        Parameters
        ----------
        reached
            Offset behind all that was read, where all that was read is folded.
        final
            Checkpoint now, as the partition is given up.
        """
        async with self._writing:
            async with self.lock:
                if self.is_silent or not self._state.is_open:
                    return False
                if not final:
                    self.stage.tick(now_ms, at_end=at_end)
                if self.folded > self._written:
                    await asyncio.to_thread(self.stage.settle)
                outputs = self.stage.outputs()
                is_checkpoint = self._is_checkpoint_due(final=final)
                if not (outputs or self.folded > self._written or is_checkpoint):
                    return False
                self._next_offset = max(self.folded + 1, reached or 0)
                is_checkpoint = is_checkpoint or self.kind.state_always
                changes, events = self._gathered(is_checkpoint=is_checkpoint)
            await self._write(outputs, changes)
            for event in events:
                event.ack()
            if is_checkpoint and not self.kind.state_always:
                log.info(
                    "event=checkpoint partition=%s offset=%d records=%d",
                    self.name, self._checkpoint, len(changes),
                )  # fmt: skip
            return True

    async def close(self) -> None:
        """Close the producer, once nothing is being written."""
        async with self._writing:
            await self._state.close()
        self.room.set()

    async def _open(self, committed: int | None, now_ms: int) -> int:
        log.info("event=restoring partition=%s", self.name)
        started = time.monotonic()
        await self._state.fence(self._cluster, self._delivery.transaction_timeout_ms)
        items, n_records, source = await self._state.read()
        self._n_partitions = source.n_partitions
        packed = items.pop((self.kind.state_topics[0], POSITION_KEY), None)
        if packed is None:
            state_topic = self.kind.state_topics[0]
            check_missing(source, state_topic, committed=committed, n_keys=len(items))
        else:
            position = decode_position(packed)
            check_position(position, source, self.kind.version, self.kind.conversion)
        changes = (Change(topic, key, value) for (topic, key), value in items.items())
        # Beside the loop, which reads what other partitions need meanwhile.
        await asyncio.to_thread(self.stage.restore, changes)
        start = source.first if packed is None else self._resume(position)
        self.stage.tick(now_ms, at_end=False)
        if packed is None:
            await self._begin(source)
        # Partitions of a process checkpoint one after another, not all at once.
        share = self.partition / max(1, source.n_partitions)
        self._checkpoint_at_s = time.monotonic() - self._delivery.state_s * share
        if is_planted(SKIP_RESUME_POSITION, self.kind.name):
            log.warning("event=fault-planted partition=%s", self.name)
            start = max(source.first, self._checkpoint + 1 - REPEATED_RECORDS)
            self._resumed, self.folded = None, start - 1
        log.info(
            "event=restored partition=%s records=%d keys=%d checkpoint=%d position=%d "
            "seconds=%.2f",
            self.name, n_records, len(items), self._checkpoint, self._written,
            time.monotonic() - started,
        )  # fmt: skip
        return start

    async def _begin(self, source: Source) -> None:
        """Write a resume position before anything is read, and so before commits."""
        self.folded = source.first - 1
        self._next_offset = source.first
        # What a stage says before its first record goes with the first resume position.
        outputs = self.stage.outputs()
        changes, _ = self._gathered(is_checkpoint=True)
        await self._write(outputs, changes)

    def _resume(self, position: ResumePosition) -> int:
        self._checkpoint = self.folded = position.checkpoint_offset
        self._checkpoint_fingerprint = position.checkpoint_fingerprint
        self._written = self._committed = position.offset
        self._number = position.number
        if self.stage.fingerprint() != position.checkpoint_fingerprint:
            raise StateRefused(
                f"the state of {self.name} must match its resume position; it does "
                "not: fold the log from its beginning in a new --namespace"
            )
        if position.offset > position.checkpoint_offset:
            self._resumed = position
            self._is_dirty = True
        return start_of(position)

    def _catch_up(self, position: ResumePosition) -> None:
        self.stage.settle()
        self.stage.outputs()
        if self.stage.fingerprint() != position.fingerprint:
            raise StateRefused(
                f"folding {self.name} again up to {position.offset} must give "
                "the same; it did not: was it written by another version? Run that one "
                "and stop it gracefully, or fold the log in a new --namespace"
            )
        self._resumed = None
        log.info("event=caught-up partition=%s offset=%d", self.name, position.offset)

    def _hold(self, offset: int, event: Any) -> None:
        if offset <= self._committed:
            event.ack()
        else:
            self._events.append(event)

    def _gathered(self, *, is_checkpoint: bool) -> tuple[list[Change], list[Any]]:
        """Everything that the commit covers, before anything else is folded."""
        fingerprint = self.stage.fingerprint()
        changes: list[Change] = []
        if is_checkpoint:
            changes = list(self.stage.changes())
            self._checkpoint, self._checkpoint_fingerprint = self.folded, fingerprint
            self._checkpoint_at_s = time.monotonic()
            self._records_since_checkpoint = 0
            self._is_dirty = False
        self._written = self.folded
        self._number += 1
        position = ResumePosition(
            SCHEMA, self.folded, self._checkpoint,
            fingerprint, self._checkpoint_fingerprint,
            self._cluster.topic_ids.get(self.kind.source, ""), self._number,
            self._next_offset, self._n_partitions, self.kind.version,
        )  # fmt: skip
        changes.append(
            Change(self.kind.state_topics[0], POSITION_KEY, encode_position(position))
        )
        self.counts = self.stage.counters()
        events, self._events = self._events, []
        self._unwritten_bytes = 0
        self.room.set()
        return changes, events

    async def _write(self, outputs: list[Output], changes: list[Change]) -> None:
        started = time.monotonic()
        written = self._written
        await self._state.write(outputs, changes)
        self._committed = written
        self.seconds = time.monotonic() - started

    def _is_checkpoint_due(self, *, final: bool) -> bool:
        """Whether state is to be written, also where nothing else is."""
        if not self._is_dirty or self.kind.state_always:
            return False
        return (
            final
            or time.monotonic() - self._checkpoint_at_s >= self._delivery.state_s
            or self._records_since_checkpoint >= self._delivery.state_records
        )
