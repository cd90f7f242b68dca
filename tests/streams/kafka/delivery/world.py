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
from collections import Counter
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from unittest.mock import patch

from aiokafka import TopicPartition as ClientPartition
from aiokafka.errors import IllegalOperation, ProducerFenced

from rankstream.settings import DeliverySettings, Settings
from rankstream.wire.topics import full_name
from streams.kafka import assignment, checkpoint_due, committer
from streams.kafka.assignment import TopicPartition
from streams.kafka.state.resume_position import StateRefused
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content, PartitionLog
from tests.fakes.points import Points, Waiting, owner
from tests.fakes.virtual_loop import VirtualLoop
from tests.streams.kafka.delivery.events import Events
from tests.streams.kafka.delivery.group import Group
from tests.streams.kafka.delivery.oracle import Oracle
from tests.streams.kafka.delivery.process import Process, SourcePlace
from tests.streams.kafka.delivery.stage import (
    GROUP,
    N_OUTS,
    N_SOURCES,
    NAMESPACE,
    OUT,
    SOURCE,
    STATE,
    stage_kind,
)

FENCED = ProducerFenced, IllegalOperation
"""What a client raises whose transactional id has another life: at the first request,
and at what follows."""

MOST_STARTS = 5
QUIET_S = 7.0
"""Longer than a process takes to notice that its source is another one."""

MOST_HEALING = 20_000


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
        for topic, n_partitions in (
            (SOURCE, N_SOURCES), (STATE, N_SOURCES), (OUT, N_OUTS),
        ):  # fmt: skip
            self.kafka.create(full_name(NAMESPACE, topic), n_partitions)
        self.oracle = Oracle(self.kafka)
        self.kafka.written = self._written
        self.places = [
            SourcePlace(full_name(NAMESPACE, SOURCE), p) for p in range(N_SOURCES)
        ]
        self.group = Group(self.places, rng, self._of_generation)
        self.settings = Settings(
            delivery=DeliverySettings(
                commit_s=1.0, state_s=1e9, state_records=rng.choice((1, 3, 8, 1_000))
            )
        )
        self.kind = stage_kind(self._restored, state_always=rng.random() < 0.3)
        self.processes: list[Process] = []
        self.paused: set[str] = set()
        # Every other seed, and of other draws: what told something goes on to tell it.
        more = Random(~seed)  # noqa: S311
        is_harsh = seed % 2 == 1
        self.hears_late = is_harsh and more.random() < 0.5
        self.has_instances = is_harsh and more.random() < 0.5
        self.kafka.transactions.is_group_first = is_harsh and more.random() < 0.5
        self._stalled: dict[Waiting, int] = {}
        self._stall_share = rng.choice((0.0, 0.03, 0.1, 0.3))
        self._event_share = rng.choice((0.03, 0.08, 0.2))
        self._n_steps = rng.randint(100, 500)
        self._step = 0
        self._events = Events(self)
        self.must_refuse: bool | None = False

    def run(self) -> Outcome:
        """Run it to its end."""
        clock = SimpleNamespace(monotonic=self.loop.time)
        with (
            patch.object(assignment, "time", clock),
            patch.object(committer, "time", clock),
            patch.object(checkpoint_due, "time", clock),
        ):
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
        elif isinstance(error, FENCED):
            self.outcome.happened["fenced"] += 1
        else:
            self.outcome.faults.append(f"{process.name} failed: {error!r}")

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
                is_stalled = self.rng.random() < self._stall_share
                until = self._step + self.rng.randint(10, 150) if is_stalled else 0
                self._stalled[each] = until
        ready = [each for each in waiting if self._stalled[each] <= self._step]
        return ready or waiting

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
        if not self.has_instances:
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
        self._events.end_open(all_of_them=True)
        self.write_all_markers()
        for _ in range(MOST_STARTS):
            self._expel_the_dead()
            if not self.running() and not self.outcome.happened["refused"]:
                self.start()
            self._quiesce()
            members = self.group.members
            if members and all(each.is_alive for each in members):
                break
        for process in [each for each in self.processes if each.is_alive]:
            process.stop()
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
