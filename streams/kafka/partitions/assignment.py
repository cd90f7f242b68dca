"""The partitions that a process has: which records are folded, and what is committed.

All rules of taking over, keeping and giving up are here and in `partition_life`. Who
assigns partitions and who reads them is told from outside, and so is what the end of
the process means: nothing here knows Faust.
"""

import asyncio
import logging
import time
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Mapping,
)
from typing import Any, NoReturn, TypeVar

from rankstream.settings import Settings
from streams.kafka.group.membership import Membership
from streams.kafka.partitions.backlog import SOON_BYTES
from streams.kafka.partitions.checkpoint_due import CheckpointTurns
from streams.kafka.partitions.commit_pace import SHORTEST_PAUSE_S, CommitPace
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event, State
from streams.kafka.partitions.process import Process, TopicPartition
from streams.kafka.partitions.watermark_alignment import SourceFrontier, held_back
from streams.source_records import SourceRecords

STALE_S = 60.0
"""A partition with work that committed nothing for so long stands still."""

log = logging.getLogger("rankstream.worker")

T = TypeVar("T")


class Assignment:
    """The partitions that a process has, and what may be done with each.

    Parameters
    ----------
    fail
        Ends the process. Nothing goes on after an error: whatever was under way is
        aborted by the next owner.
    check
        Raises where a topic is not the one that it was. That may be why partitions
        were assigned anew, or why nothing is where it was.
    on_ready
        Is told, once, when all partitions that are assigned are folded and written.
    """

    def __init__(
        self,
        process: Process,
        settings: Settings,
        fail: Callable[[BaseException], NoReturn],
        check: Callable[[], Awaitable[None]],
        on_ready: Callable[[Collection[Committer]], None] = lambda _: None,
    ) -> None:
        self.committers: dict[TopicPartition, Committer] = {}
        self._settings = settings
        self._process = process
        self._fail = fail
        self._check = check
        self._on_ready = on_ready
        self._member: Membership | None = None
        self._was_ready = False
        self._n_revocations = 0
        self._is_ending = False
        self._held: set[TopicPartition] = set()
        self._assigned: frozenset[TopicPartition] | None = None
        self._level_s: dict[TopicPartition, float] = {}
        self._opening = asyncio.Lock()
        self._pace = CommitPace(settings.delivery.commit_s, self._longest_s, self._look)
        self._turns = CheckpointTurns(settings.delivery)

    async def guarded(self, work: Awaitable[T]) -> T:
        """Do it, or end the process: nothing goes on after a failed commit."""
        try:
            return await work
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it is, this is the end
            self._fail(error)

    async def _to_its_end(self, work: Coroutine[Any, Any, T]) -> T:
        """The same, and go on also where who asked for it is cancelled.

        A commit that is left half way has taken outputs that nobody writes, and keeps
        a transaction open that the next one falls over.
        """
        return await asyncio.shield(asyncio.ensure_future(self.guarded(work)))

    async def open(
        self, committed: Mapping[TopicPartition, int | None]
    ) -> dict[TopicPartition, int]:
        """Take over what was assigned, close all else, and say where each starts.

        A partition that this process still has goes on from memory, unless another one
        may have had it meanwhile.

        Parameters
        ----------
        committed
            What the consumer group committed for each partition, if anything.
        """
        return await self.guarded(self._open(committed, self._n_revocations))

    async def suspend(self) -> None:
        """Stop, and commit what was folded, before anybody else may take it over.

        All partitions are revoked at every rebalance.
        """
        left = await self.guarded(self._revoke())
        await self._to_its_end(self._commit_last(left))

    def join(self, member: Membership) -> None:
        """Hear as whom the process is assigned what it is from here on."""
        self._member = member

    async def keep(self, places: Collection[TopicPartition]) -> None:
        """Close partitions that were not assigned again."""
        self._assigned = frozenset(places)
        await self.close(set(self.committers) - set(places))

    async def close(self, places: Collection[TopicPartition]) -> None:
        """Close partitions that were taken away."""
        await self.guarded(self._close(set(places)))

    def open_no_more(self) -> None:
        """Take nothing over from here on, as the process is about to stop."""
        self._is_ending = True

    def take(
        self,
        place: TopicPartition,
        records: SourceRecords,
        event: Any,
        *,
        is_current: bool,
    ) -> bool:
        """Fold records or drop them; False where they must wait for `turn_of` first.

        Parameters
        ----------
        event
            Is acknowledged when a commit covers the last of them.
        is_current
            Whether they were read since partitions were last assigned.
        """
        committer = self.committers.get(place)
        if committer is None or not committer.life.state.may_fold or not is_current:
            # Whoever has the partition by then reads the records again.
            event.ack()
            return True
        if committer.is_busy:
            return False
        try:
            committer.fold(records, event)
        except BaseException as error:  # noqa: BLE001  whatever it is
            self._fail(error)
        self._pace.take(is_due=committer.backlog.is_due)
        return True

    async def turn_of(self, place: TopicPartition) -> None:
        """Wait until a record of a partition may be offered once more."""
        committer = self.committers.get(place)
        if committer is not None:
            await committer.turn()

    async def commit(
        self, place: TopicPartition, *, may_checkpoint: bool = True
    ) -> None:
        """One commit of one partition."""
        committer = self.committers.get(place)
        if committer is None:  # closed since this round began
            return
        reached, at_end_ms = self._end_of(place, committer)
        wrote = await committer.commit(
            at_end_ms=at_end_ms, reached=reached, may_checkpoint=may_checkpoint
        )
        if wrote or not self._has_work(place, committer):
            self._level_s[place] = time.monotonic()

    async def commit_all(self) -> None:
        """One commit of every partition."""
        await self._to_its_end(self._commit_all())

    async def run_commits(self) -> None:
        """Commit every partition, again and again."""
        await self.guarded(self._pace.run(self.commit_all))

    async def read_outside(self, place: TopicPartition, first: int, end: int) -> None:
        """Hear that what comes next of a partition is not in its topic: the end.

        What was read is folded and committed before, with a checkpoint: only behind
        that can a loss be accepted.

        Parameters
        ----------
        first, end
            Offset of the oldest record there, and the one behind the newest.
        """
        await self.guarded(self._read_outside(place, first, end))

    def troubles(self) -> list[str]:
        """What keeps partitions from being folded; none also where there is none.

        A worker more than there are partitions is ready to take one over.
        """
        if self._is_ending:
            return ["it is stopping"]
        if self._assigned is None:
            return ["partitions are being assigned"]
        found = (self._trouble_of(place) for place in sorted(self._assigned))
        return [trouble for trouble in found if trouble]

    def lag_of(self, place: TopicPartition) -> int:
        """Records of a partition that the broker has and the stage has not folded."""
        committer = self.committers.get(place)
        progress = self._process.progress(place)
        end = progress.highwater
        if committer is None or end is None or progress.position is None:
            return 0
        reached = progress.reached(committer.folded)
        return max(0, end - (committer.folded + 1 if reached is None else reached))

    def not_held_back(self, places: set[TopicPartition]) -> set[TopicPartition]:
        """Without sources that are far ahead of others."""
        sources = {
            place: SourceFrontier(frontier_ms, is_behind=self.lag_of(place) > 0)
            for place, one in self.committers.items()
            if (frontier_ms := one.counts.get("frontier_ms")) is not None
        }
        held = held_back(sources, self._settings.time.lead_ms)
        if held != self._held:
            names = ",".join(sorted(f"{at.topic}[{at.partition}]" for at in held))
            log.info("event=held-back partitions=%s", names or "none")
            self._held = held
        return places - held

    async def _commit_all(self) -> None:
        now = self._turns.next(
            {place: one.checkpoint_due for place, one in self.committers.items()},
            has_news=any(one.has_folded for one in self.committers.values()),
        )
        await asyncio.gather(
            *[
                self.commit(place, may_checkpoint=place in now)
                for place in self.committers
            ]
        )
        self._tell_if_ready()

    def _longest_s(self) -> float:
        """Seconds between commits, at most; held sources go on after one."""
        is_waited_for = self._held or not self._was_ready
        delivery = self._settings.delivery
        return delivery.commit_s if is_waited_for else self._settings.between_commits_s

    def _look(self) -> bool:
        """Ask sources for their ends between commits; whether one is due by bytes.

        What nothing was heard of for seconds would be taken for an outage.
        """
        for place, committer in self.committers.items():
            committer.look(self._end_of(place, committer)[1])
        waiting = sum(one.backlog.n_bytes for one in self.committers.values())
        return waiting >= SOON_BYTES

    def _end_of(
        self, place: TopicPartition, committer: Committer
    ) -> tuple[int | None, int]:
        """Offset behind all that was read and folded, and for how long that is all."""
        progress = self._process.progress(place)
        reached = progress.reached(committer.folded)
        is_known = reached is not None and not self._process.rebalancing
        return reached, progress.at_end_ms if is_known else 0

    async def _open(
        self, committed: Mapping[TopicPartition, int | None], n_revocations: int
    ) -> dict[TopicPartition, int]:
        await self._check()
        async with self._opening:
            await self._close(set(self.committers) - set(committed))
            starts = await asyncio.gather(
                *(self._opened(*each, n_revocations) for each in committed.items())
            )
        found = zip(committed, starts, strict=True)
        return {place: start for place, start in found if start is not None}

    async def _opened(
        self, place: TopicPartition, committed: int | None, n_revocations: int
    ) -> int | None:
        """Where a partition starts; None where nothing of it is ours to read."""
        member = self._member
        if self._is_ending or member is None or place not in member.places:
            return None

        def is_current() -> bool:
            return n_revocations == self._n_revocations

        known = self.committers.get(place)
        if known is not None and not is_current():
            return known.next_offset
        if known is not None and member.follows(known.member):
            return known.resume(member)
        await self._close({place})
        # Else it would fence whoever has it by now.
        committer = self._process.committer_of(place) if is_current() else None
        if committer is None:
            return None
        start = await committer.open(committed, member, is_current)
        if committer.life.state is State.CLOSED:
            return None
        if not is_current():
            # Revoked since it was assigned: suspended until it is assigned again.
            committer.life.take(Event.REVOKED)
        self._level_s[place] = time.monotonic()
        self.committers[place] = committer
        return start

    async def _read_outside(self, place: TopicPartition, first: int, end: int) -> None:
        committer, n_revocations = self.committers.get(place), self._n_revocations
        await self._check()
        while committer is not None and committer.life.state.may_fold:
            if self._process.progress(place).last <= committer.folded:
                break
            await asyncio.sleep(SHORTEST_PAUSE_S)
        if committer is None or n_revocations != self._n_revocations:
            return  # whoever is assigned it next finds the same
        if first <= committer.next_offset <= end:
            return  # it was of a place that is not read from any more
        await self._to_its_end(self._commit_last(await self._revoke()))
        if n_revocations + 1 != self._n_revocations:
            return  # the same
        # Who was paused for long may read from where another went on since.
        await committer.confirm()
        committer.losses.check_there(committer.position, first, end)
        raise RuntimeError(
            f"{committer.name} must hold offset {committer.next_offset}; it holds "
            f"{first} to {end - 1}: starting again from the last commit"
        )

    async def _close(self, places: set[TopicPartition]) -> None:
        for place in places & set(self.committers):
            committer = self.committers.pop(place, None)
            if committer is not None:  # else its ids would stay with this process
                await self._to_its_end(committer.close())

    def _tell_if_ready(self) -> None:
        committers = [self.committers.get(place) for place in self._assigned or ()]
        found = [each for each in committers if each and each.life.state.may_write]
        if not self._was_ready and found and len(found) == len(committers):
            self._was_ready = True
            self._on_ready(found)

    def _has_work(self, place: TopicPartition, committer: Committer) -> bool:
        is_behind = self.lag_of(place) > 0 and place not in self._held
        return is_behind or committer.folded > committer.committed

    def _trouble_of(self, place: TopicPartition) -> str:
        """Why a partition that was assigned is not folded; "" where it is."""
        name = f"{place.topic}[{place.partition}]"
        committer = self.committers.get(place)
        if committer is None:
            return f"{name} is being restored"
        if not committer.life.state.may_write:
            return f"{name} is {committer.life.state.words}"
        stale_s = time.monotonic() - self._level_s.get(place, 0.0)
        if stale_s > STALE_S and self._has_work(place, committer):
            return f"{name} has work, and committed nothing for {stale_s:.0f} s"
        return ""

    async def _commit_last(self, left: Collection[Committer]) -> None:
        await asyncio.gather(*(one.commit_last() for one in left))
        # What was begun as this member would be refused to the next one.
        await self._process.written()

    async def _revoke(self) -> list[Committer]:
        """Fold and write nothing more, at once; those that have a commit left.

        Another suspension may still be about to make it.
        """
        self._n_revocations += 1
        self._assigned = None
        everything = list(self.committers.values())
        for one in everything:
            one.life.take(Event.REVOKED)
        return [one for one in everything if one.life.state.may_write_last]
