"""What may happen to processes and their cluster, and how likely each of it is."""

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any

import msgspec

from tests.fakes.partition_log import Content
from tests.streams.kafka.delivery.process import Process
from tests.streams.kafka.delivery.stage import (
    GROUP,
    N_SOURCES,
    OUT,
    SEQUENCE,
    Passed,
)

if TYPE_CHECKING:
    from tests.streams.kafka.delivery.world import World

Possible = dict[str, tuple[float, Callable[[], object]]]
"""What may happen, by its name: how likely it is, and what happens then."""

MOST_PROCESSES = 3

MOST_AWAKE = 2

BEFORE_A_COMMIT = "begin", "add partitions"
"""Where nothing of a commit holds up who reads."""

WITHIN_A_COMMIT = (
    "add partitions", "produce", "add group", "commit offsets", "commit",
    "hear revoked", "hear assigned", "ask the group",
)  # fmt: skip
"""Where a pause tells most."""

WHILE_IT_OPENS = (
    "initialise", "initialise, answered", "ask for positions", "ask for ends", "fetch",
    "begin", "abort", "stop producer",
)  # fmt: skip


class Events:
    """Everything that may happen in a world beside its processes' own steps."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._rng = world.rng
        self._kafka = world.kafka
        self._oracle = world.oracle
        self._group = world.group
        self._is_restless = world.rng.random() < 0.3
        self._is_patient = world.rng.random() < 0.4
        self._n_sent = 0
        self._n_open = 0

    def possible(self) -> Possible:
        """What may happen now, and how likely it is."""
        return self._splits() if self._world.conditions.is_split else self._anything()

    def _splits(self) -> Possible:
        """Two others take over from one that is voted out as it begins to commit.

        Its id is that of a partition which one of them is slow to open, so nothing but
        its generation keeps it from what the other one has.
        """
        world = self._world
        awake = world.running() - world.paused
        events: Possible = {
            "send": (8, self._send),
            "marker": (6, self._write_marker),
            "time": (6, world.pass_time),
        }
        if len(awake) < MOST_AWAKE:
            events["start"] = 20, world.start
        about_to_commit = [
            process
            for process in world.processes
            if process.name in awake
            and len(process.assignment.committers) > 1
            and any(
                each.owner == process.name and each.what in BEFORE_A_COMMIT
                for each in world.points.waiting
            )
        ]
        if about_to_commit and not world.paused:
            process = self._rng.choice(about_to_commit)
            events["voted out"] = 20, lambda: self._vote_out(process)
        if self._has_an_heir():
            events["resume"] = 20, self._resume
        return events

    def _has_an_heir(self) -> bool:
        """Whether some of what the paused one had is another's, who may write it."""
        paused = self._world.paused
        had, has = (
            {
                place
                for process in self._world.processes
                if process.is_alive and (process.name in paused) == is_paused
                for place, each in process.assignment.committers.items()
                if is_paused or each.life.state.may_write
            }
            for is_paused in (True, False)
        )
        return bool(had & has)

    def _vote_out(self, process: Process) -> None:
        self._world.paused.add(process.name)
        if process in self._group.members:
            self._group.expel(process)

    def _anything(self) -> Possible:
        running = [each for each in self._world.processes if each.is_alive]
        events: Possible = {
            "send": (8, self._send),
            "send openly": (1, self._send_openly),
            "end what is open": (2, self.end_open),
            "marker": (6, self._write_marker),
            "time": (6, self._world.pass_time),
            "commit of others": (1, self._commit_of_others),
            "rebalance": (6 if self._is_restless else 1, self._group.rebalance),
        }
        if len(running) < MOST_PROCESSES:
            events["start"] = 6 if not running else 1.5, self._world.start
        if running:
            events["kill"] = 1.5, lambda: self._rng.choice(running).die()
            events["stop"] = 0.7, lambda: self._stop(self._rng.choice(running))
            events["expire"] = 0.5, self._expire
            events["pause"] = 1, lambda: self._pause(self._rng.choice(running))
        if self._world.paused:
            events["resume"] = 0.1 if self._is_patient else 2, self._resume
        if self._is_patient:
            # Others take over, and go on for long, from who stops in its commit.
            n_awake = len(running) - len(self._world.paused)
            if len(running) < MOST_PROCESSES + 1 and n_awake < MOST_PROCESSES - 1:
                events["start"] = 6, self._world.start
            if running:
                events["kill"] = 0.2, events["kill"][1]
        unready = self._group.unready
        if unready and self._world.conditions.hears_late:
            events["rebalance times out"] = (
                0.5,
                lambda: self._group.expel(self._rng.choice(unready)),
            )
        silent = [
            each for each in self._group.members
            if each.name in self._world.paused or not each.is_alive
        ]  # fmt: skip
        if silent:
            events["session ends"] = (
                5,
                lambda: self._group.expel(self._rng.choice(silent)),
            )
        if running:
            events["truncate under a process"] = 0.6, self._truncate
            events["recreate under a process"] = 0.12, self._recreate
        else:
            events["truncate"] = 2, self._truncate
            events["recreate"] = 0.3, self._recreate
            events["hang"] = 1, self._hang
        return events | self._rarely(running)

    def _rarely(self, running: list[Process]) -> Possible:
        """What happens under some conditions only."""
        conditions, events = self._world.conditions, Possible()
        known = self._known_ids()
        if conditions.is_unanswered and known:
            unanswered = self._kafka.transactions.unanswered
            events["leave unanswered"] = 4, lambda: unanswered.update(known)
        if conditions.is_forgetful and known:
            events["hang a position"] = 1, lambda: self._hang_position(known)
        if (conditions.is_forgetful or conditions.is_deadly) and not running:
            events["hang"] = 8, self._hang
        if conditions.is_deadly:
            within = self._within(WITHIN_A_COMMIT + WHILE_IT_OPENS)
            busy = [each for each in running if each.name in within]
            if busy:
                events["kill within"] = 10, lambda: self._rng.choice(busy).die()
            if len(running) < MOST_PROCESSES:
                events["start"] = 8, self._world.start
            members = [each for each in self._group.members if each.is_alive]
            if members:
                events["voted out"] = (
                    2,
                    lambda: self._group.expel(self._rng.choice(members)),
                )
        return events

    def _within(self, points: Collection[str]) -> list[str]:
        """Processes that wait at one of these points."""
        waiting = self._world.points.waiting
        within = {each.owner for each in waiting if each.what in points}
        return sorted(within & self._world.running())

    def _stop(self, process: Process) -> None:
        self._world.outcome.happened["asked to stop"] += 1
        process.stop()

    def _pause(self, process: Process) -> None:
        if self._is_patient:
            within = self._within(WITHIN_A_COMMIT)
            self._world.paused.add(self._rng.choice(within or [process.name]))
        else:
            self._world.paused.add(process.name)

    def _resume(self) -> None:
        self._world.paused.remove(self._rng.choice(sorted(self._world.paused)))

    def _send(self) -> None:
        contents = self._contents()
        self._kafka.produce(self._any_source(), contents)
        self._world.wake()

    def _send_openly(self) -> None:
        """Records in a transaction of somebody else, which ends later."""
        name = f"sender-{self._n_open}"
        self._n_open += 1
        by = self._kafka.transactions.initialise(name)
        place = self._any_source()
        self._kafka.transactions.add_places(name, by, {place})
        self._kafka.produce(place, self._contents(), (name, by))

    def end_open(self, *, all_of_them: bool = False) -> None:
        """Commit or abort transactions of others than our processes."""
        names = [
            name
            for name in self._kafka.transactions.ongoing
            if name.startswith("sender-")
        ]
        if names and not all_of_them:
            names = [self._rng.choice(names)]
        for name in names:
            by = self._kafka.transactions.writer_of(name)
            is_commit = self._rng.random() < 0.6
            self._kafka.transactions.end(name, by, is_commit=is_commit)

    def _write_marker(self) -> None:
        ending = self._kafka.transactions.ending
        if ending:
            self._kafka.transactions.write_marker(self._rng.choice(ending))
            self._world.wake()

    def _commit_of_others(self) -> None:
        """An operator sets the group's offsets, or a worker of a former release."""
        for partition in range(N_SOURCES):
            position = self._oracle.position(partition)
            if position is not None:
                offset = self._rng.choice((position.offset + 1, position.next_offset))
                self._oracle.move_group(GROUP, partition, max(0, offset))

    def _expire(self) -> None:
        """A transaction that was open for too long is aborted by the broker."""
        ongoing = [
            each
            for each in self._kafka.transactions.ongoing
            if not each.startswith("sender-")
        ]
        if ongoing:
            self._world.outcome.happened["expired"] += 1
            self._kafka.transactions.expire(self._rng.choice(ongoing))

    def _truncate(self) -> None:
        """Retention, whoever reads."""
        world, running = self._world, self._world.running()
        partition = self._rng.randrange(N_SOURCES)
        place = self._oracle.source(partition)
        # A position that is committed already is to be seen.
        world.write_all_markers()
        if running and self._rng.random() < 0.5:  # so fast that nobody has read it
            self._kafka.produce(place, self._contents())
        self._oracle.look()
        log = self._kafka.log(place)
        position = self._oracle.position(partition)
        near = 0 if position is None else position.checkpoint_offset
        of_late = log.end if running else near
        offset = self._rng.choice((self._rng.randint(0, log.end), of_late, near + 1))
        self._kafka.delete_before(place, min(log.end, max(0, offset)))
        if position is None:  # nobody has begun: it begins with what there is
            self._oracle.forget(partition)
        found = [self._oracle.is_lost(p) for p in range(N_SOURCES)]
        if running:
            # Who has read what is gone by now may still fold it.
            found = [lost and None for lost in found]
            if position is None:  # somebody may be about to begin where it began
                found[partition] = None
        world.hear_of_losses(found)
        world.wake()

    def _recreate(self) -> None:
        """The sources are deleted and created again, whoever reads."""
        world, running = self._world, self._world.running()
        self._oracle.look()
        names = self._kafka.transactions.ongoing
        for name in names:
            if not running or name.startswith("sender-"):
                self._kafka.transactions.expire(name)
        world.write_all_markers()
        for topic in dict.fromkeys(place.topic for place in world.places):
            n_partitions = self._kafka.n_partitions(topic) or 0
            self._kafka.delete(topic)
            self._kafka.create(topic, n_partitions)
        self._oracle.look()
        found = [self._oracle.is_lost(p) for p in range(N_SOURCES)]
        world.hear_of_losses([None, *found] if running else found)
        world.wake()

    def _hang(self) -> None:
        """Records stay open of a transaction that its coordinator has forgotten.

        Of any id, and of any partition that was written with it.
        """
        names = self._known_ids()
        if not names:
            return
        self._world.write_all_markers()
        name = self._rng.choice(names)
        partition = self._rng.randrange(N_SOURCES)
        self._kafka.transactions.expire(name)
        self._world.write_all_markers()
        wrong = [Content(SEQUENCE, b"\x63", (), 0)]
        self._kafka.hang(self._oracle.state(partition), wrong, name)
        wrong = [Content(None, msgspec.msgpack.encode(Passed(partition, 99, 0)), (), 0)]
        self._kafka.hang(self._oracle.place(OUT, 0), wrong, name)

    def _hang_position(self, names: list[str]) -> None:
        """A position stays open although its transaction has ended."""
        name, place = self._rng.choice(names), self._any_source()
        self._kafka.transactions.hang_position(name, GROUP, place)

    def _known_ids(self) -> list[str]:
        """Ids of ours that anything was written with."""
        known = self._kafka.transactions.names
        ids = [each.transactional_id for each in self._world.layout]
        return [name for name in ids if name in known]

    def _any_source(self) -> Any:
        return self._oracle.source(self._rng.randrange(N_SOURCES))

    def _contents(self) -> list[Content]:
        contents = []
        for _ in range(self._rng.randint(1, 4)):
            self._n_sent += 1
            key = b"k%d" % self._rng.randrange(4)
            contents.append(Content(key, b"%d" % self._n_sent, (), 0))
        return contents
