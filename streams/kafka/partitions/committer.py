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
from typing import Any

from rankstream.settings import Settings
from streams.kafka.group.membership import Membership
from streams.kafka.partitions.backlog import Backlog, Commit, acknowledge
from streams.kafka.partitions.checkpoint_due import DUE, CheckpointDue
from streams.kafka.partitions.commit_lines import CommitLines
from streams.kafka.partitions.partition_life import Event, PartitionLife, State
from streams.kafka.partitions.planted_faults import (
    REPEATED_RECORDS,
    SKIP_RESUME_POSITION,
    is_planted,
)
from streams.kafka.partitions.restored_stage import (
    check_checkpoint,
    check_folded_again,
    restored,
    tell_restored,
)
from streams.kafka.state.lost_records import LossRule
from streams.kafka.state.resume_position import (
    NOWHERE,
    POSITION_KEY,
    Loss,
    ResumePosition,
    encode_position,
    start_of,
)
from streams.kafka.state.state_log import PartitionLog, StateRead
from streams.kafka.status.stage_times import StageTimes
from streams.kafka.status.start_phases import Opening
from streams.source_records import SourceRecords
from streams.stage import Change, Output
from streams.topology import StageKind, pinned_settings

QUIET_S = 1.0
"""So long after the last commit, one is made for transaction markers that were read."""

log = logging.getLogger("rankstream.commit")


class Committer:
    """A stage on one partition of its source.

    Not for use after an error: the caller ends the process, and the next owner's
    producer aborts the open transaction.

    Parameters
    ----------
    accepted
        Records that may be missing, as an operator said.
    times
        Of the stage, is told how long commits take.

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
    restored, counts
        What the stage had counted when it was opened, and at the last commit.
    appended_ms
        When the broker took the last record that was folded; 0 before the first.
    opening
        How long it took to be opened.
    live_s
        When the stage was last where the position is, on the monotonic clock.
    """

    def __init__(
        self,
        kind: StageKind,
        partition: int,
        state: PartitionLog,
        settings: Settings,
        accepted: Loss | None = None,
        times: StageTimes | None = None,
    ) -> None:
        self.kind = kind
        self.partition = partition
        self.stage = kind.build(settings, partition)
        self.member: Membership | None = None
        self.life = PartitionLife(self.name)
        self.position = NOWHERE
        self.folded = self.committed = -1
        self.backlog = Backlog()
        self.restored: dict[str, int] = {}
        self.counts: dict[str, int] = {}
        self.appended_ms = 0
        self.opening = Opening()
        self.live_s = 0.0
        self._state = state
        self._times = times or StageTimes()
        self.losses = LossRule(kind, partition, settings, accepted)
        self._pinned = pinned_settings(kind, settings)
        self._delivery = settings.delivery
        self._checkpoint = CheckpointDue(settings.delivery)
        self._written_at_s = time.monotonic()
        self._lines = CommitLines(self.name)
        self._gathering, self._writing = asyncio.Lock(), asyncio.Lock()
        self._has_last = False

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

    @property
    def has_folded(self) -> bool:
        """Whether there is something that no commit covers yet."""
        return self.folded > self.position.offset

    @property
    def checkpoint_due(self) -> float:
        """Intervals since state was written, if some is to be."""
        if self.kind.state_always or self.folded <= self.position.checkpoint_offset:
            return 0.0
        apart_s = time.monotonic() - self._written_at_s if self.has_folded else 0.0
        return self._checkpoint.passed_by(apart_s)

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
        tell_restored(self.name, read, self.position, self.opening)
        return start

    def resume(self, member: Membership | None = None) -> int:
        """Go on from memory, as it was assigned again; says at which offset."""
        self.life.take(Event.ASSIGNED)
        self._has_last = False
        self.member = member
        self._state.join(member)
        self.stage.tick(at_end_ms=0)
        return self.next_offset

    def fold(self, records: SourceRecords, event: Any = None) -> None:
        """Take records; `event`, if any, is acknowledged once a commit has the last."""
        new, n_behind = records.behind(self.folded), 0
        while n_behind < len(new) and not self.life.state.may_write:
            self._take(new[n_behind : n_behind + 1])
            n_behind += 1
            if self.folded >= self.position.offset:
                self._catch_up()
        if n_behind < len(new):
            self._take(new[n_behind:])
            self.backlog.weigh(new[n_behind:])
        if event is not None and records[-1].offset > self.committed:
            self.backlog.hold(event)
        elif event is not None:
            event.ack()

    def _take(self, records: SourceRecords) -> None:
        records.fold_into(self.stage)
        self.folded, self.appended_ms = records[-1][2:4]
        self._checkpoint.take(len(records))

    async def turn(self) -> None:
        """Wait until a commit has what it covers; whoever waited asks again."""
        if self.backlog.is_full:
            await self.backlog.room()
        async with self._gathering:
            pass

    def look(self, at_end_ms: int) -> None:
        """Hear, between commits, for how long the broker has had nothing more."""
        if self.life.state.may_write and not self._gathering.locked():
            self.stage.tick(at_end_ms=at_end_ms)

    async def commit(
        self,
        *,
        at_end_ms: int = 0,
        reached: int | None = None,
        may_checkpoint: bool = True,
    ) -> bool:
        """Write what is new, if anything; False if nothing was written.

        Parameters
        ----------
        at_end_ms
            For how long the broker has been saying that it has nothing more.
        reached
            Offset behind all that was read, where all that was read is folded.
        may_checkpoint
            Whether its state may be written too, if that is due.
        """
        async with self._writing:
            async with self._gathering:
                if not self.life.state.may_write:
                    return False
                self.stage.tick(at_end_ms=at_end_ms)
                with self._state.gathering():
                    commit = await self._gathered(
                        reached or 0, may_checkpoint=may_checkpoint
                    )
            return await self._written(commit)

    async def commit_last(self) -> bool:
        """Write what is new, with a checkpoint, once after it was revoked."""
        async with self._writing:
            async with self._gathering:
                if self._has_last or not self.life.state.may_write_last:
                    return False
                with self._state.gathering():
                    commit = await self._gathered(0, is_last=True)
                self._has_last = not self.life.state.may_write
            return await self._written(commit)

    async def confirm(self) -> None:
        """Write the position once more, as only the partition's owner can."""
        async with self._writing:
            await self._state.write([], [self._told()], self.position.next_offset)

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
        position, is_new = await restored(
            self.stage, self.kind, read, self._pinned, self.losses, committed
        )
        self.restored = self.stage.counters()
        opened, start = self._resume(position), start_of(position)
        # Nothing was heard of its end, whatever the state says.
        self.stage.tick(at_end_ms=0)
        # What a stage says before its first record; one that is behind said it before.
        outputs = [] if opened is Event.OPENED_BEHIND else self.stage.outputs()
        if is_new or outputs:
            # Before anything is read, and so before the group commits anything.
            if not is_current():
                await self.close()
                return start
            is_checkpoint = is_new or self.kind.state_always
            await self._write(self._taken(outputs, 0, is_checkpoint=is_checkpoint))
        self._checkpoint.stagger(self.partition / max(1, read.source.n_partitions))
        if is_planted(SKIP_RESUME_POSITION, self.kind.name):
            log.warning("event=fault-planted partition=%s", self.name)
            checkpoint = self.position.checkpoint_offset
            start = max(read.source.first, checkpoint + 1 - REPEATED_RECORDS)
            opened, self.folded = Event.OPENED_LEVEL, start - 1
        self.life.take(opened)
        return start

    def _resume(self, position: ResumePosition) -> Event:
        """Be where the position says; whether the state is behind it."""
        self.position = position
        self.folded = position.checkpoint_offset
        self.committed = position.offset
        check_checkpoint(self.stage, position, self.name)
        is_behind = position.offset > position.checkpoint_offset
        return Event.OPENED_BEHIND if is_behind else Event.OPENED_LEVEL

    def _catch_up(self) -> None:
        position = self.position
        self.stage.settle()
        self.stage.outputs()
        check_folded_again(self.stage, position, self.name)
        self.life.take(Event.CAUGHT_UP)
        self.restored = self.stage.counters()
        self.live_s = time.monotonic()
        log.info("event=caught-up partition=%s offset=%d", self.name, position.offset)

    async def _gathered(
        self, reached: int, *, may_checkpoint: bool = True, is_last: bool = False
    ) -> Commit | None:
        """What a commit covers, None if there is nothing to write."""
        has_folded = self.has_folded
        if has_folded:
            await asyncio.to_thread(self.stage.settle)
        outputs = self.stage.outputs()
        due = self.checkpoint_due
        is_checkpoint = due > 0.0 if is_last else may_checkpoint and due >= DUE
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
        self.position = self.position.after(self.folded, fingerprint, reached)
        if is_checkpoint:
            changes = list(self.stage.changes())
            self.position = self.position.as_checkpoint()
            self._checkpoint.written()
        changes.append(self._told())
        before, self.counts = self.counts or self.restored, self.stage.counters()
        self._times.counted(before, self.counts)
        return Commit(outputs, changes, self.backlog.emptied(), is_checkpoint)

    def _told(self) -> Change:
        place = self.kind.state_topics[0], POSITION_KEY
        return Change(*place, encode_position(self.position))

    async def _written(self, commit: Commit | None) -> bool:
        if commit is not None:
            await self._write(commit)
            self._lines.take(self.position.offset, commit)
        return commit is not None

    async def _write(self, commit: Commit) -> None:
        started = time.monotonic()
        await self._state.write(
            commit.outputs, commit.changes, self.position.next_offset
        )
        self.committed = self.position.offset
        self._written_at_s = time.monotonic()
        self._times.commits.observe(self._written_at_s - started)
        acknowledge(commit.events)

    def _is_beyond(self, reached: int) -> bool:
        """Whether nothing came for a while but markers, and the group lags by them."""
        is_quiet = time.monotonic() - self._written_at_s >= QUIET_S
        return is_quiet and reached > self.position.next_offset
