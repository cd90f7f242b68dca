"""A drawn schedule: processes over a Kafka in memory, and everything that may happen.

One generator draws all of it, so that a seed gives the same schedule again. A step
mostly lets one coroutine go on to its next await. Now and then something happens
instead: records are sent, a process is killed, paused or stopped, its session or its
transaction ends, partitions are assigned anew, markers are written, time passes. Some
coroutines wait for long at an await where they usually pass at once.

At the end all faults cease, what is left to be folded is folded, and the oracle
judges.
"""

import asyncio
import contextlib
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from aiokafka import TopicPartition as ClientPartition
from aiokafka.errors import IllegalOperation, KafkaError, ProducerFenced

from rankstream.settings import DeliverySettings, Settings
from rankstream.wire.topics import full_name
from streams.kafka.group.member_offsets import VotedOut
from streams.kafka.partitions import assignment, backlog, checkpoint_due, committer
from streams.kafka.partitions.process import TopicPartition
from streams.kafka.state.resume_position import StateRefused
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content, PartitionLog
from tests.fakes.points import Points, Waiting, owner
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.delivery.conditions import conditions_of
from tests.streams.kafka.delivery.events import Events
from tests.streams.kafka.delivery.group import Group
from tests.streams.kafka.delivery.oracle import Oracle
from tests.streams.kafka.delivery.process import Process, SourcePlace
from tests.streams.kafka.delivery.stage import (
    ALONE,
    GROUP,
    N_OUTS,
    N_SOURCES,
    NAMESPACE,
    OUT,
    PAIRED,
    stage_kinds,
)

FENCED = ProducerFenced, IllegalOperation
"""What a client raises whose transactional id has another life: at the first request,
and at what follows."""

MOST_STARTS = 5
QUIET_S = 7.0
"""Longer than a process takes to notice that its source is another one."""

MOST_HEALING = 20_000

SPLIT_SHARE = 0.5
"""Of the fences of who takes a part over, where partitions are split."""

SOON_BYTES, FULL_BYTES, STATE_S = 3 * 512, 5 * 512, 4.0
"""Where commits are hurried: a record weighs some 520 bytes."""


@dataclass
class Outcome:
    """What became of a schedule."""

    seed: int
    faults: list[str] = field(default_factory=list)
    happened: Counter[str] = field(default_factory=Counter)
    trace: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """How to run it again, what happened, and what is wrong."""
        again = f"python -m tests.streams.kafka.delivery {self.seed}"
        return "\n".join([again, *self.trace, *self.faults])


class World:
    """One schedule, from its seed to its verdict."""

    def __init__(self, seed: int) -> None:
        rng = Random(seed)  # noqa: S311
        self.rng = rng
        self.outcome = Outcome(seed)
        self.points = Points()
        self.loop = VirtualLoop(self.points.point)
        self.loop.set_exception_handler(lambda *_: None)
        self.kafka = FakeKafka(is_eager=False)
        self.conditions = conditions_of(seed)
        self.layout = PAIRED if self.conditions.is_paired else ALONE
        topics = Counter([each.source for each in self.layout])
        topics += Counter([each.state for each in self.layout])
        for topic, n_partitions in (*topics.items(), (OUT, N_OUTS)):
            self.kafka.create(full_name(NAMESPACE, topic), n_partitions)
        self.oracle = Oracle(self.kafka, self.layout)
        self.kafka.written = self._written
        self.places = [
            SourcePlace(*self.oracle.source(number)) for number in range(N_SOURCES)
        ]
        self.group = Group(self.places, rng, self._of_generation)
        self.settings = Settings(
            delivery=DeliverySettings(
                commit_s=1.0,
                state_s=STATE_S if self.conditions.is_hurried else 1e9,
                state_records=rng.choice((1, 3, 8, 1_000)),
            )
        )
        self.kinds = stage_kinds(
            self.layout, self._restored, state_always=rng.random() < 0.3
        )
        self.processes: list[Process] = []
        self.paused: set[str] = set()
        transactions = self.kafka.transactions
        transactions.is_group_first = self.conditions.is_group_first
        self._stalled: dict[Waiting, int] = {}
        self._stall_share = rng.choice((0.0, 0.03, 0.1, 0.3))
        self._event_share = rng.choice((0.03, 0.08, 0.2))
        self._n_steps = rng.randint(100, 500) + 300 * self.conditions.is_split
        self._step = 0
        self._events = Events(self)
        self.must_refuse: bool | None = False

    def run(self) -> Outcome:
        """Run it to its end."""
        clock = SimpleNamespace(monotonic=self.loop.time)
        replaced: list[tuple[Any, str, object]] = [
            (module, "time", clock)
            for module in (assignment, committer, checkpoint_due)
        ]
        if self.conditions.is_hurried:
            replaced += [
                (module, "SOON_BYTES", SOON_BYTES) for module in (assignment, backlog)
            ]
            replaced.append((backlog, "FULL_BYTES", FULL_BYTES))
        with contextlib.ExitStack() as stack:
            for each in replaced:
                stack.enter_context(patch.object(*each))
            return self._run()

    def _run(self) -> Outcome:
        try:
            self.start()
            while self._step < self._n_steps:
                self._go_on()
                self._look_at_the_revoked()
                self._step += 1
            self._heal()
            self._judge()
        finally:
            self._clear_away()
        return self.outcome

    def _of_generation(self, generation: int, members: set[str]) -> None:
        self.kafka.transactions.members[GROUP] = generation, members

    def log_of(self, place: TopicPartition) -> PartitionLog:
        """The log of a partition of the source."""
        return self.kafka.log(ClientPartition(*place))

    def ended(self, process: Process, error: BaseException) -> None:
        """Hear that a process has ended itself."""
        self._note(f"{process.name} ended: {error!r}")
        if isinstance(error, StateRefused):
            self.outcome.happened["refused"] += 1
            if self.must_refuse is False:
                self.outcome.faults.append(f"refused without need: {error}")
        elif type(error) is KafkaError and self.outcome.happened["leave unanswered"]:
            self.outcome.happened["unanswered"] += 1
        elif isinstance(error, FENCED) and not self._is_its_own(process, error):
            self.outcome.happened["fenced"] += 1
        else:
            self.outcome.faults.append(f"{process.name} failed: {error!r}")

    def _is_its_own(self, process: Process, error: Exception) -> bool:
        """Whether nobody else has taken its id, or its place in the group."""
        (*_, taker) = error.args
        is_member = self.group.knows(process, taker)
        return is_member if isinstance(error, VotedOut) else taker == process.name

    def hear_of_losses(self, found: list[bool | None]) -> None:
        """Of each partition, whether it must be refused, None where it may."""
        if True in found:
            self.must_refuse = True
        elif None in found and self.must_refuse is False:
            self.must_refuse = None

    # Steps.

    def _go_on(self) -> None:
        if self.rng.random() < self._event_share:
            events = self._events.possible()
            (name,) = self.rng.choices(list(events), [w for w, _ in events.values()])
            self._note(name)
            self.outcome.happened[name] += 1
            events[name][1]()
            self.loop.run_ready()
            return
        waiting = self._eligible()
        if waiting:
            self._let_on(self.rng.choice(waiting))
        else:
            self.pass_time()

    def _eligible(self) -> list[Waiting]:
        """Coroutines that may go on, those that are not stalled first."""
        able = self.running() - self.paused
        waiting = [each for each in self.points.waiting if each.owner in able]
        for each in waiting:
            if each not in self._stalled:
                is_stalled = self.rng.random() < self._stall_share_at(each.what)
                longest = 300 if self.conditions.is_split else 150
                until = self._step + self.rng.randint(10, longest) if is_stalled else 0
                self._stalled[each] = until
        ready = [each for each in waiting if self._stalled[each] <= self._step]
        return ready or waiting

    def _stall_share_at(self, what: str) -> float:
        """Where partitions are split, some are long without their next owner."""
        is_fence = self.conditions.is_split and what == "initialise"
        return SPLIT_SHARE if is_fence else self._stall_share

    def _let_on(self, waiting: Waiting) -> None:
        self._note(f"{waiting.owner}: {waiting.what}")
        self.points.let_on(waiting)
        self.loop.run_ready()

    def pass_time(self) -> bool:
        """Go on to the next timer; the broker writes its markers meanwhile."""
        is_passed = self.loop.pass_time()
        for each in self.kafka.transactions.ending:
            self.kafka.transactions.write_marker(each)
        self.wake()
        return is_passed

    def start(self) -> None:
        """Start one more process."""
        name = f"w{len(self.processes)}"
        process = Process(name, self, self._instance_of(name))
        self.processes.append(process)
        process.start()
        self.loop.run_ready()

    def _instance_of(self, name: str) -> str:
        """Of who is dead or paused, if anybody is: a successor has its name."""
        awake = self.running() - self.paused
        silent = [each for each in self.group.members if each.name not in awake]
        if not self.conditions.has_instances:
            return ""
        return silent[0].instance if silent else f"of {name}"

    # The end.

    def _heal(self) -> None:
        """No faults any more, until there is nothing left to do."""
        self._note("healing")
        self._stalled.clear()
        for process in self.processes:
            if process.is_alive and process.name in self.paused:
                process.die()
        self.paused.clear()
        instances = {each.instance: each for each in self.group.members}
        for process in self.processes:
            if process.instance and instances.get(process.instance) is not process:
                process.die()  # two of a name replace each other for ever
        self.kafka.transactions.unanswered.clear()
        self._events.end_open(all_of_them=True)
        self.write_all_markers()
        for _ in range(MOST_STARTS):
            self._expel_the_dead()
            if not self.running() and not self.outcome.happened["refused"]:
                self.start()
            self._quiesce()
            members = self.group.members
            if not members or not all(each.is_alive for each in members):
                continue
            self._stop_all()
            if not members:  # none was shut out before, and found that it was
                break

    def _stop_all(self) -> None:
        for process in [each for each in self.processes if each.is_alive]:
            process.stop()
            self._quiesce()
            self._expel_the_dead()  # one that was shut out unawares; others go on
            self._quiesce()

    def _expel_the_dead(self) -> None:
        for member in list(self.group.members):
            if not member.is_alive:
                self.group.expel(member)

    def _quiesce(self) -> None:
        """Let everybody on in turn, until only time passes and topics are looked at."""
        quiet_since_s = self.loop.time()
        for _ in range(MOST_HEALING):
            self.write_all_markers()
            running = self.running()
            first = next((e for e in self.points.waiting if e.owner in running), None)
            if first is not None:
                if not first.what.startswith("thread"):
                    quiet_since_s = self.loop.time()
                self._let_on(first)
                continue
            if self.loop.time() - quiet_since_s >= QUIET_S or not self.pass_time():
                return
        self.outcome.faults.append("never comes to rest")

    def _judge(self) -> None:
        faults, oracle = self.outcome.faults, self.oracle
        has_refused = self.outcome.happened["refused"] > 0
        if self.must_refuse is True and not has_refused:
            faults.append("went on although records are lost")
        if not faults:
            faults += oracle.faults_of_outputs(are_complete=not has_refused)
            faults += oracle.faults_of_stored_state()
            for partition in range(N_SOURCES):
                faults += oracle.faults_of_group(GROUP, partition)
        if not has_refused:
            for partition in range(N_SOURCES):
                position, sent = oracle.position(partition), oracle.sent(partition)
                last = sent[-1].offset if sent else -1
                if position is None or position.checkpoint_offset < last:
                    faults.append(f"{partition} stopped before its end: {position}")

    def _restored(self, partition: int, n_folded: int, counts: Counter[bytes]) -> None:
        self.outcome.happened["restored"] += 1
        faults = self.oracle.faults_of_state(partition, n_folded, counts)
        transactions = self.kafka.transactions
        if not (transactions.is_group_first and transactions.ending):
            faults += self.oracle.faults_of_group(GROUP, partition)
        for fault in faults:
            self._note(fault)
        self.outcome.faults += faults

    def _written(self, place: ClientPartition, contents: list[Content]) -> None:
        """Look who writes outputs."""
        name = owner()
        is_of_out = place.topic == full_name(NAMESPACE, OUT)
        # What is written to be aborted holds nothing.
        is_output = is_of_out and any(each.value for each in contents)
        for process in self.processes:
            if is_output and process.name == name and process.is_revoked:
                self.outcome.faults.append(f"{name} wrote after it was revoked")

    def _look_at_the_revoked(self) -> None:
        for process in self.processes:
            committers = process.assignment.committers.values()
            if process.is_revoked and process.is_alive:
                self.outcome.faults += [
                    f"{process.name} has {each.name} although it was revoked"
                    for each in committers
                    if each.life.state.may_write
                ]

    def _clear_away(self) -> None:
        self.points.end()
        for process in self.processes:
            process.is_alive = False
        # Whoever is cancelled may wait for others once more.
        while tasks := asyncio.all_tasks(self.loop):
            for task in tasks:
                task.cancel()
            self.loop.run_ready()
        self.loop.close()

    def write_all_markers(self) -> None:
        """End all that has been decided."""
        while ending := self.kafka.transactions.ending:
            self.kafka.transactions.write_marker(ending[0])
            self.wake()

    def running(self) -> set[str]:
        """Processes that are alive, paused or not."""
        return {each.name for each in self.processes if each.is_alive}

    def wake(self) -> None:
        """Have everybody look for records."""
        for process in self.processes:
            process.wake()

    def _note(self, what: str) -> None:
        self.outcome.trace.append(f"{self._step} {what}")
