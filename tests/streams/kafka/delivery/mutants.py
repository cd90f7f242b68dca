"""Guards of delivery, each inverted: schedules must notice what each is there for."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from streams.kafka import committer as committer_module
from streams.kafka import state_log as state_log_module
from streams.kafka.assignment import Assignment
from streams.kafka.committer import Committer
from streams.kafka.flow import Flow
from streams.kafka.partition_life import Event
from streams.kafka.resume_position import start_of
from streams.kafka.state_log import StateLog
from tests.fakes.clients import FakeClients
from tests.fakes.points import owner
from tests.streams.kafka.delivery.stage import STATE

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
        self.items, _ = await state_log_module._read_to_end(consumer, {place: STATE})
        await consumer.stop()
        await fence(self, timeout_ms)

    async def as_it_was(self: Any) -> Any:
        found = await read(self)
        return found._replace(items=self.items)

    patch.setattr(StateLog, "fence", read_first)
    patch.setattr(StateLog, "read", as_it_was)


def has_an_id_of_its_own(patch: pytest.MonkeyPatch) -> None:
    """Two processes with a partition do not shut each other out."""
    producer = FakeClients.producer

    def own(self: FakeClients, **options: Any) -> Any:
        name = f"{options['transactional_id']}-{owner()}"
        return producer(self, **options | {"transactional_id": name})

    patch.setattr(FakeClients, "producer", own)


def writes_state_apart_from_outputs(patch: pytest.MonkeyPatch) -> None:
    """In two transactions, so that one may be without the other."""
    write = StateLog.write

    async def apart(self: StateLog, outputs: list[Any], changes: Any) -> None:
        await write(self, outputs, [])
        await write(self, [], changes)

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
    patch.setattr(committer_module, "check_position", lambda *_: None)


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


MUTANTS: tuple[Mutant, ...] = (
    reads_before_it_fences, has_an_id_of_its_own, writes_state_apart_from_outputs,
    reads_what_is_open, leaves_what_hangs, goes_on_one_too_late,
    goes_on_where_the_group_is, takes_a_checkpoint_for_the_position, replays_aloud,
    takes_any_position, suspends_nothing, forgets_a_revocation_while_it_opens,
    hands_over_whatever_comes, opens_for_any_seek,
)  # fmt: skip
