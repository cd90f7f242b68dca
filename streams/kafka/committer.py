"""Partitions of a stage: outputs, resume position and state, committed at once.

A *commit* writes a stage's outputs and its resume position in one transaction, with
those of other partitions of the process (`streams.kafka.state.joint_log`). A
*checkpoint* is a commit that also writes the state that changed. Taking a partition
over is: shut out whoever had it, read the state back, go on behind the resume position.
Records between the last checkpoint and that position are folded again with their
outputs dropped: a stage is a pure function of its log, and the stored fingerprint
proves that it was.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import msgspec

from rankstream.settings import Settings
from streams.kafka.backlog import Backlog
from streams.kafka.checkpoint_due import CheckpointDue
from streams.kafka.commit_lines import CommitLines
from streams.kafka.membership import Membership
from streams.kafka.partition_life import Event, PartitionLife, State
from streams.kafka.planted_faults import (
    REPEATED_RECORDS,
    SKIP_RESUME_POSITION,
    is_planted,
)
from streams.kafka.state.lost_records import LossRule
from streams.kafka.state.resume_position import (
    NOWHERE,
    POSITION_KEY,
    Loss,
    ResumePosition,
    StateRefused,
    encode_position,
    first_position,
    start_of,
    taken_position,
)
from streams.kafka.state.state_log import PartitionLog, StateRead
from streams.kafka.status.start_phases import Opening
from streams.stage import Change, Output, SourceRecord
from streams.topology import StageKind, pinned_settings

QUIET_S = 1.0
"""So long after the last commit, one is made for transaction markers that were read."""

log = logging.getLogger("rankstream.commit")


class Commit(NamedTuple):
    """What one transaction writes, and what is acknowledged once it is committed."""

    outputs: list[Output]
    changes: list[Change]
    events: list[Any]
    is_checkpoint: bool


class Committer:
    """A stage on one partition of its source.

    Not for use after an error: the caller ends the process, and the next owner's
    producer aborts the open transaction.

    Parameters
    ----------
    accepted
        Records that may be missing, as an operator said.

    Attributes
    ----------
    member
        As whom the process has it.
    life
        What the partition is doing. What is asked of it in between follows from that.
    position
        What the last commit wrote, or was about to write when it failed.
    folded
        Offset of the last record that the stage has taken; -1 before the first.
    committed
        Offset of the last record whose commit succeeded.
    losses
        What it may go on without.
    counts, seconds
        What the stage had counted at the last commit, and how long that took.
    opening
        How long it took to be opened.
    live_s
        When the stage was last found to be where the position is, on the monotonic
        clock.
    """

    def __init__(
        self,
        kind: StageKind,
        partition: int,
        state: PartitionLog,
        settings: Settings,
        accepted: Loss | None = None,
    ) -> None:
        self.kind = kind
        self.partition = partition
        self.stage = kind.build(settings, partition)
        self.member: Membership | None = None
        self.life = PartitionLife(self.name)
        self.position = NOWHERE
        self.folded = self.committed = -1
        self.backlog = Backlog()
        self.counts: dict[str, int] = {}
        self.seconds = 0.0
        self.opening = Opening()
        self.live_s = 0.0
        self._state = state
        self.losses = LossRule(kind, partition, settings, accepted)
        self._pinned = pinned_settings(kind, settings)
        self._delivery = settings.delivery
        self._checkpoint = CheckpointDue(settings.delivery)
        self._written_at_s = time.monotonic()
        self._lines = CommitLines(self.name)
        self._gathering, self._writing = asyncio.Lock(), asyncio.Lock()

    @property
    def name(self) -> str:
        """Topic and partition, for log lines."""
        return f"{self.kind.source}[{self.partition}]"

    @property
    def next_offset(self) -> int:
        """Before it, everything is folded or is not there."""
        is_level = self.life.state.may_write_last
        return max(self.folded + 1, self.position.next_offset if is_level else 0)

    @property
    def is_busy(self) -> bool:
        """Whether a record is to wait for `turn`."""
        return self._gathering.locked() or self.backlog.is_full

    async def open(
        self,
        committed: int | None,
        member: Membership | None = None,
        is_current: Callable[[], bool] = lambda: True,
    ) -> int:
        """Fence, read back, and say at which offset to start.

        Parameters
        ----------
        committed
            What the consumer group committed for the partition, if anything.
        member
            As whom the process was assigned it; None where the group has no member.
        is_current
            Whether it still is. Where it is not, and something is to be written before
            anything is read, it is closed: whoever has it next writes that.

        Raises
        ------
        StateRefused
            Where state and log do not belong together.
        """
        log.info("event=restoring partition=%s", self.name)
        self.member = member
        self._state.join(member)
        times_s = [time.monotonic()]
        try:
            # Whoever writes after the state was read would not be in it.
            await self._state.fence(self._delivery.transaction_timeout_ms)
            times_s.append(time.monotonic())
            read = await self._state.read()
            times_s.append(time.monotonic())
            start = await self._restored(read, committed, is_current)
            times_s.append(time.monotonic())
        except BaseException:  # a cancelled start must not leave its producer open
            if self.life.state is not State.CLOSED:
                self.life.take(Event.CLOSED)
            await self._state.close()
            raise
        self.live_s = times_s[-1]
        self.opening = Opening(*(b - a for a, b in pairwise(times_s)))
        log.info(
            "event=restored partition=%s records=%d keys=%d checkpoint=%d position=%d "
            "seconds=%.2f fence=%.2f read=%.2f restore=%.2f",
            self.name, read.n_records, len(read.items),
            self.position.checkpoint_offset, self.position.offset,
            sum(self.opening), *self.opening,
        )  # fmt: skip
        return start

    def resume(self, member: Membership | None = None) -> int:
        """Go on from memory, as it was assigned again; says at which offset."""
        self.life.take(Event.ASSIGNED)
        self.member = member
        self._state.join(member)
        self.stage.tick(at_end_ms=0)
        return self.next_offset

    def fold(self, record: SourceRecord, event: Any) -> None:
        """Take a record; `event` is acknowledged when a commit covers it."""
        if record.offset > self.folded:
            self.stage.fold(record)
            self.folded = record.offset
            self._checkpoint.take()
            if self.life.state.may_write:
                self.backlog.weigh(record)
            elif record.offset >= self.position.offset:
                self._catch_up()
        if record.offset <= self.committed:
            event.ack()
        else:
            self.backlog.hold(event)

    async def turn(self) -> None:
        """Wait until a commit has what it covers; whoever waited asks again."""
        if self.backlog.is_full:
            await self.backlog.room()
        async with self._gathering:
            pass

    async def commit(self, *, at_end_ms: int = 0, reached: int | None = None) -> bool:
        """Write what is new, if anything; False if nothing was written.

        Parameters
        ----------
        at_end_ms
            For how long the broker has been saying that it has nothing more.
        reached
            Offset behind all that was read, where all that was read is folded.
        """
        async with self._writing:
            async with self._gathering:
                if not self.life.state.may_write:
                    return False
                self.stage.tick(at_end_ms=at_end_ms)
                with self._state.gathering():
                    commit = await self._gathered(reached or 0, is_last=False)
            return await self._written(commit)

    async def commit_last(self) -> bool:
        """Write what is new once more, with a checkpoint, as it was revoked."""
        async with self._writing:
            async with self._gathering:
                if not self.life.state.may_write_last:
                    return False
                with self._state.gathering():
                    commit = await self._gathered(0, is_last=True)
            return await self._written(commit)

    async def confirm(self) -> None:
        """Write the position once more, as only the partition's owner can."""
        place = self.kind.state_topics[0], POSITION_KEY
        async with self._writing:
            position = Change(*place, encode_position(self.position))
            await self._state.write([], [position], self.position.next_offset)

    async def close(self) -> None:
        """Close the producer, once nothing is being written."""
        self.life.take(Event.CLOSED)
        async with self._writing:
            await self._state.close()
        self.backlog.release()

    async def _restored(
        self, read: StateRead, committed: int | None, is_current: Callable[[], bool]
    ) -> int:
        """Take the state back; says at which offset to start."""
        items, _, source = read
        found = taken_position(items, source, self.kind, self._pinned, committed)
        position = found and self.losses.behind(found, source)
        if found is None:
            self.losses.tell_beginning(source)
        changes = (Change(topic, key, value) for (topic, key), value in items.items())
        # Beside the loop, which reads what other partitions need meanwhile.
        await asyncio.to_thread(self.stage.restore, changes)
        version, fingerprint = self.kind.version, self.stage.fingerprint()
        position = position or first_position(source, version, fingerprint)
        opened, start = self._resume(position), start_of(position)
        # Nothing was heard of its end, whatever the state says.
        self.stage.tick(at_end_ms=0)
        is_new = position is not found
        # What a stage says before its first record; one that is behind said it before.
        outputs = [] if opened is Event.OPENED_BEHIND else self.stage.outputs()
        if is_new or outputs:
            # Before anything is read, and so before the group commits anything.
            if not is_current():
                await self.close()
                return start
            is_checkpoint = is_new or self.kind.state_always
            await self._write(self._taken(outputs, 0, is_checkpoint=is_checkpoint))
        self._checkpoint.stagger(self.partition / max(1, source.n_partitions))
        if is_planted(SKIP_RESUME_POSITION, self.kind.name):
            log.warning("event=fault-planted partition=%s", self.name)
            checkpoint = self.position.checkpoint_offset
            start = max(source.first, checkpoint + 1 - REPEATED_RECORDS)
            opened, self.folded = Event.OPENED_LEVEL, start - 1
        self.life.take(opened)
        return start

    def _resume(self, position: ResumePosition) -> Event:
        """Be where the position says; whether the state is behind it."""
        self.position = msgspec.structs.replace(position, settings=self._pinned)
        self.folded = position.checkpoint_offset
        self.committed = position.offset
        if self.stage.fingerprint() != position.checkpoint_fingerprint:
            raise StateRefused(
                f"the state of {self.name} must match its resume position; it does "
                "not: fold the log from its beginning in a new --namespace"
            )
        is_behind = position.offset > position.checkpoint_offset
        return Event.OPENED_BEHIND if is_behind else Event.OPENED_LEVEL

    def _catch_up(self) -> None:
        position = self.position
        self.stage.settle()
        self.stage.outputs()
        if self.stage.fingerprint() != position.fingerprint:
            raise StateRefused(
                f"folding {self.name} again up to {position.offset} must give "
                "the same; it did not: was it written by another version? Run that one "
                "and stop it gracefully, or fold the log in a new --namespace"
            )
        self.life.take(Event.CAUGHT_UP)
        self.live_s = time.monotonic()
        log.info("event=caught-up partition=%s offset=%d", self.name, position.offset)

    async def _gathered(self, reached: int, *, is_last: bool) -> Commit | None:
        """What a commit covers, None if there is nothing to write."""
        has_folded = self.folded > self.position.offset
        if has_folded:
            await asyncio.to_thread(self.stage.settle)
        outputs = self.stage.outputs()
        is_checkpoint = self._is_checkpoint_due(is_last=is_last)
        if not (outputs or has_folded or is_checkpoint or self._is_beyond(reached)):
            # Records that came again while their commit was being written.
            acknowledge(self.backlog.emptied())
            return None
        is_checkpoint = is_checkpoint or self.kind.state_always
        return self._taken(outputs, reached, is_checkpoint=is_checkpoint)

    def _taken(
        self, outputs: list[Output], reached: int, *, is_checkpoint: bool
    ) -> Commit:
        """Everything that the commit covers, before anything else is folded."""
        fingerprint = self.stage.fingerprint()
        changes: list[Change] = []
        self.position = msgspec.structs.replace(
            self.position,
            offset=self.folded,
            fingerprint=fingerprint,
            number=self.position.number + 1,
            next_offset=max(self.folded + 1, reached, self.position.next_offset),
        )
        if is_checkpoint:
            changes = list(self.stage.changes())
            self.position = msgspec.structs.replace(
                self.position,
                checkpoint_offset=self.folded,
                checkpoint_fingerprint=fingerprint,
            )
            self._checkpoint.written()
        place = self.kind.state_topics[0], POSITION_KEY
        changes.append(Change(*place, encode_position(self.position)))
        self.counts = self.stage.counters()
        return Commit(outputs, changes, self.backlog.emptied(), is_checkpoint)

    async def _written(self, commit: Commit | None) -> bool:
        if commit is None:
            return False
        await self._write(commit)
        n_changes = len(commit.changes) if commit.is_checkpoint else None
        self._lines.take(
            self.position.offset, n_outputs=len(commit.outputs), n_changes=n_changes
        )
        return True

    async def _write(self, commit: Commit) -> None:
        started = time.monotonic()
        await self._state.write(
            commit.outputs, commit.changes, self.position.next_offset
        )
        self.committed = self.position.offset
        self._written_at_s = time.monotonic()
        self.seconds = self._written_at_s - started
        acknowledge(commit.events)

    def _is_beyond(self, reached: int) -> bool:
        """Whether nothing came for a while but markers, and the group lags by them."""
        is_quiet = time.monotonic() - self._written_at_s >= QUIET_S
        return is_quiet and reached > self.position.next_offset

    def _is_checkpoint_due(self, *, is_last: bool) -> bool:
        """Whether state is to be written, also where nothing else is."""
        is_level = self.folded <= self.position.checkpoint_offset
        if is_level or self.kind.state_always:
            return False
        return is_last or self._checkpoint.is_due


def acknowledge(events: list[Any]) -> None:
    """Tell the reader that records need not come again."""
    for event in events:
        event.ack()
