"""Guards of delivery, each inverted: schedules must notice what each is there for."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from aiokafka.errors import KafkaError, OffsetOutOfRangeError, ProducerFenced

from rankstream.wire.topics import full_name
from streams.kafka.flow import Flow
from streams.kafka.partitions import committer as committer_module
from streams.kafka.partitions.assignment import Assignment
from streams.kafka.partitions.backlog import Backlog
from streams.kafka.partitions.committer import Committer
from streams.kafka.partitions.partition_life import Event
from streams.kafka.source_watch import SourceWatch
from streams.kafka.state import joint_log as joint_log_module
from streams.kafka.state import resume_position
from streams.kafka.state import state_log as state_log_module
from streams.kafka.state.joint_log import JointLog
from streams.kafka.state.lost_records import LossRule
from streams.kafka.state.open_records import have_stuck
from streams.kafka.state.resume_position import start_of
from streams.kafka.state.state_log import StateLog
from streams.kafka.state.transactions import Transactions
from streams.topology import writer_of
from tests.fakes.clients import FakeClients
from tests.fakes.producer import FakeProducer
from tests.streams.kafka.delivery.process import Process
from tests.streams.kafka.delivery.stage import NAMESPACE, SOURCE, STATE

Mutant = Callable[[pytest.MonkeyPatch], None]


def reads_before_it_fences(patch: pytest.MonkeyPatch) -> None:
    """Whoever writes in between is not in the state that was read."""
    fence, read = StateLog.fence, StateLog.read

    async def read_first(self: Any, timeout_ms: int) -> None:
        place = self._cluster.place(STATE, self._partition)
        consumer = self._cluster.clients.consumer(
            isolation_level="read_committed", auto_offset_reset="earliest"
        )
        await consumer.start()
        consumer.assign([place])
        ends = await consumer.end_offsets([place])
        self.items, _ = await state_log_module._read_to_end(
            consumer, {place: STATE}, ends
        )
        await consumer.stop()
        await fence(self, timeout_ms)

    async def as_it_was(self: Any) -> Any:
        found = await read(self)
        return found._replace(items=self.items)

    patch.setattr(StateLog, "fence", read_first)
    patch.setattr(StateLog, "read", as_it_was)


def reads_what_may_still_be_committed(patch: pytest.MonkeyPatch) -> None:
    """A transaction whose end began before its writer was voted out ends later."""

    async def at_once(*_: Any) -> None:
        """Wait for nothing."""

    patch.setattr(JointLog, "decided", at_once)


def writes_state_apart_from_outputs(patch: pytest.MonkeyPatch) -> None:
    """In two transactions, so that one may be without the other."""
    write = StateLog.write

    async def apart(
        self: StateLog, outputs: list[Any], changes: Any, next_offset: int
    ) -> None:
        await write(self, outputs, [])
        await write(self, [], changes, next_offset)

    patch.setattr(StateLog, "write", apart)


def reads_what_is_open(patch: pytest.MonkeyPatch) -> None:
    """State that was never committed, or that was aborted."""
    consumer = FakeClients.consumer

    def careless(self: FakeClients, **options: Any) -> Any:
        return consumer(self, **options | {"isolation_level": "read_uncommitted"})

    patch.setattr(FakeClients, "consumer", careless)


def leaves_what_hangs(patch: pytest.MonkeyPatch) -> None:
    """Its next commit includes what nobody committed."""

    async def look_away(*_: Any) -> None:
        """Do nothing."""

    patch.setattr(StateLog, "_end_what_hangs", look_away)


def goes_on_one_too_late(patch: pytest.MonkeyPatch) -> None:
    """A record is left out at each start."""
    patch.setattr(committer_module, "start_of", lambda at: start_of(at) + 1)


def goes_on_where_the_group_is(patch: pytest.MonkeyPatch) -> None:
    """Where others last acknowledged, instead of where the state is."""
    start = Assignment.open

    async def group_first(self: Assignment, committed: Mapping[Any, Any]) -> Any:
        starts = await start(self, committed)
        return {place: committed[place] or at for place, at in starts.items()}

    patch.setattr(Assignment, "open", group_first)


def takes_a_checkpoint_for_the_position(patch: pytest.MonkeyPatch) -> None:
    """What was written since is written again."""
    resume = Committer._resume

    def level(self: Committer, position: Any) -> Event:
        resume(self, position)
        return Event.OPENED_LEVEL

    patch.setattr(Committer, "_resume", level)


def replays_aloud(patch: pytest.MonkeyPatch) -> None:
    """Outputs of a replay are not dropped."""
    patch.setattr(Committer, "_catch_up", lambda self: self.life.take(Event.CAUGHT_UP))


def takes_any_position(patch: pytest.MonkeyPatch) -> None:
    """Also where the records behind it are gone."""
    patch.setattr(resume_position, "check_position", lambda *_: None)


def suspends_nothing(patch: pytest.MonkeyPatch) -> None:
    """It writes although it was revoked."""

    async def go_on(_: Any) -> list[Any]:
        """Find nothing to be suspended."""
        return []

    patch.setattr(Assignment, "_revoke", go_on)


def forgets_a_revocation_while_it_opens(patch: pytest.MonkeyPatch) -> None:
    """What is opened too late is live."""
    never = property(lambda _: 0, lambda _, __: None)
    patch.setattr(Assignment, "_n_revocations", never, raising=False)


def hands_over_whatever_comes(patch: pytest.MonkeyPatch) -> None:
    """Records from elsewhere than the stage's position."""
    patch.setattr(Flow, "current", property(lambda _: 0))


def opens_for_any_seek(patch: pytest.MonkeyPatch) -> None:
    """Also for one of Faust's while nothing is assigned."""
    patch.setattr(
        Flow, "is_assigned", property(lambda _: True, lambda _, __: None), raising=False
    )


def looks_at_no_topic(patch: pytest.MonkeyPatch) -> None:
    """Records of a source that was created anew pass for those that came before."""

    async def see_nothing(_: Any) -> dict[str, Any]:
        """Find nothing changed."""
        return {}

    patch.setattr(SourceWatch, "changes", see_nothing)


def forgets_a_revocation_while_it_looks(patch: pytest.MonkeyPatch) -> None:
    """Topics are looked at before it is noted which assignment is meant."""
    start = Assignment.open

    async def look_first(self: Any, committed: Mapping[Any, Any]) -> Any:
        await self.guarded(self._check())
        return await start(self, committed)

    patch.setattr(Assignment, "open", look_first)


def goes_on_behind_what_is_gone(patch: pytest.MonkeyPatch) -> None:
    """As if every loss had been accepted."""
    patch.setattr(LossRule, "_remedy", lambda *_: "")


def jumps_over_what_is_gone(patch: pytest.MonkeyPatch) -> None:
    """As a client does that may reset its offset."""
    fetched = Process._fetched

    def reset(self: Any, place: Any) -> Any:
        try:
            return fetched(self, place)
        except OffsetOutOfRangeError:
            self._positions[place] = self._around.log_of(place).first
            return fetched(self, place)

    patch.setattr(Process, "_fetched", reset)


def commits_what_the_group_has_apart(patch: pytest.MonkeyPatch) -> None:
    """The group's offset stays where the transaction was aborted."""

    async def at_once(
        self: Any, offsets: Mapping[Any, int], group: str, _: Any = None
    ) -> None:
        await self._point("commit offsets")
        self._kafka.groups.setdefault(group, {}).update(offsets)

    patch.setattr(FakeProducer, "send_offsets_to_transaction", at_once)


def leaves_the_group_where_it_was(patch: pytest.MonkeyPatch) -> None:
    """Kafka's lag of it grows for ever."""
    write = StateLog.write

    async def without(self: StateLog, outputs: Any, changes: Any, *_: Any) -> None:
        await write(self, outputs, changes)

    patch.setattr(StateLog, "write", without)


def commits_along_with_what_hangs(patch: pytest.MonkeyPatch) -> None:
    """Of its id, in the partition of another process."""

    async def look_away(*_: Any) -> None:
        """End nothing."""

    patch.setattr(JointLog, "_clean", look_away)


def commits_as_no_member(patch: pytest.MonkeyPatch) -> None:
    """Who was voted out commits, until somebody takes the id that it writes with."""
    write = JointLog._write

    async def of_nobody(self: JointLog, parts: Any, _: Any) -> None:
        await write(self, parts, None)

    patch.setattr(JointLog, "_write", of_nobody)


def gives_away_what_it_writes_with(patch: pytest.MonkeyPatch) -> None:
    """A partition is opened again while others are written with its id."""

    async def at_once(self: JointLog, name: str) -> None:
        if name == self._writes_as:
            writer, self._writer, self._writes_as = self._writer, None, ""
            if writer is not None:
                await writer.close()

    patch.setattr(JointLog, "_let_go", at_once)


def lives_twice(patch: pytest.MonkeyPatch) -> None:
    """Who opens a partition is shut out by what an earlier start left under way."""

    class Fresh(dict[str, asyncio.Lock]):
        def __getitem__(self, _: str) -> asyncio.Lock:
            return asyncio.Lock()

    lives = property(lambda _: Fresh(), lambda *_: None)
    patch.setattr(JointLog, "_lives", lives, raising=False)


def makes_no_room(patch: pytest.MonkeyPatch) -> None:
    """Who waits for a commit that is due by its bytes waits for ever."""
    patch.setattr(Backlog, "release", lambda _: None)


def commits_again_what_was_not_answered(patch: pytest.MonkeyPatch) -> None:
    """It may be committed already."""
    write = JointLog._write

    async def again(self: JointLog, parts: Any, member: Any) -> None:
        try:
            await write(self, parts, member)
        except ProducerFenced:
            raise
        except KafkaError:
            self._failure = self._writer = None
            self._writes_as = ""
            await write(self, parts, member)

    patch.setattr(JointLog, "_write", again)


def leaves_positions_that_hang(patch: pytest.MonkeyPatch) -> None:
    """Nobody else ends them."""

    async def look_away(*_: Any) -> None:
        """End nothing."""

    patch.setattr(JointLog, "_end_positions", look_away)


def looks_at_the_states_of_one_stage(patch: pytest.MonkeyPatch) -> None:
    """What hangs may be of another one of the role."""

    async def of_one(cluster: Any, places: Any) -> bool:
        topic = full_name(NAMESPACE, STATE)
        return await have_stuck(cluster, [at for at in places if at.topic == topic])

    patch.setattr(joint_log_module, "have_stuck", of_one)


def names_ids_by_partition_alone(patch: pytest.MonkeyPatch) -> None:
    """Two stages of a role have partitions of the same number."""
    patch.setattr(
        state_log_module,
        "writer_of",
        lambda name, _, partition: writer_of(name, SOURCE, partition),
    )


def ends_first_where_others_look(patch: pytest.MonkeyPatch) -> None:
    """Killed in between, it leaves outputs open that nobody finds."""
    abort = Transactions.abort

    async def states_first(self: Transactions, *parts: Any) -> None:
        await abort(self, *reversed(parts))

    patch.setattr(Transactions, "abort", states_first)


MUTANTS: tuple[Mutant, ...] = (
    commits_along_with_what_hangs, reads_before_it_fences,
    reads_what_may_still_be_committed, writes_state_apart_from_outputs,
    reads_what_is_open, leaves_what_hangs, goes_on_one_too_late,
    goes_on_where_the_group_is, takes_a_checkpoint_for_the_position, replays_aloud,
    takes_any_position, suspends_nothing, forgets_a_revocation_while_it_opens,
    hands_over_whatever_comes, opens_for_any_seek, looks_at_no_topic,
    forgets_a_revocation_while_it_looks, goes_on_behind_what_is_gone,
    jumps_over_what_is_gone, commits_what_the_group_has_apart,
    leaves_the_group_where_it_was, commits_as_no_member,
    gives_away_what_it_writes_with, lives_twice, makes_no_room,
    commits_again_what_was_not_answered, leaves_positions_that_hang,
    looks_at_the_states_of_one_stage, names_ids_by_partition_alone,
    ends_first_where_others_look,
)  # fmt: skip
