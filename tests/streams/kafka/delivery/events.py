"""What may happen to processes and their cluster, and how likely each of it is."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from rankstream.wire.topics import full_name
from tests.fakes.partition_log import Content
from tests.streams.kafka.delivery.process import Process
from tests.streams.kafka.delivery.stage import (
    GROUP,
    N_SOURCES,
    NAMESPACE,
    OUT,
    SEQUENCE,
    SOURCE,
    STATE,
    Passed,
    transactional_id,
)

if TYPE_CHECKING:
    from tests.streams.kafka.delivery.world import World

MOST_PROCESSES = 3

WITHIN_A_COMMIT = (
    "add partitions", "produce", "add group", "commit offsets", "commit",
    "hear revoked", "hear assigned", "ask the group",
)  # fmt: skip
"""Where a pause tells most."""


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

    def possible(self) -> dict[str, tuple[float, Callable[[], object]]]:
        """What may happen now, and how likely it is."""
        running = [each for each in self._world.processes if each.is_alive]
        events: dict[str, tuple[float, Callable[[], object]]] = {
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
        if unready and self._world.hears_late:
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
        return events

    def _stop(self, process: Process) -> None:
        self._world.outcome.happened["asked to stop"] += 1
        process.stop()

    def _pause(self, process: Process) -> None:
        if self._is_patient:
            within = {
                each.owner
                for each in self._world.points.waiting
                if each.what in WITHIN_A_COMMIT
            } & self._world.running()
            name = self._rng.choice(sorted(within) or [process.name])
            self._world.paused.add(name)
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
        for place in self._world.places:
            position = self._oracle.position(place.partition)
            if position is not None:
                offset = self._rng.choice((position.offset + 1, position.next_offset))
                self._oracle.move_group(GROUP, place.partition, max(0, offset))

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
        place = self._any_source()
        # A position that is committed already is to be seen.
        world.write_all_markers()
        if running and self._rng.random() < 0.5:  # so fast that nobody has read it
            self._kafka.produce(place, self._contents())
        self._oracle.look()
        log = self._kafka.log(place)
        position = self._oracle.position(place.partition)
        near = 0 if position is None else position.checkpoint_offset
        of_late = log.end if running else near
        offset = self._rng.choice((self._rng.randint(0, log.end), of_late, near + 1))
        self._kafka.delete_before(place, min(log.end, max(0, offset)))
        if position is None:  # nobody has begun: it begins with what there is
            self._oracle.forget(place.partition)
        found = [self._oracle.is_lost(p) for p in range(N_SOURCES)]
        if running:
            # Who has read what is gone by now may still fold it.
            found = [lost and None for lost in found]
            if position is None:  # somebody may be about to begin where it began
                found[place.partition] = None
        world.hear_of_losses(found)
        world.wake()

    def _recreate(self) -> None:
        """The source is deleted and created again, whoever reads."""
        world, running = self._world, self._world.running()
        self._oracle.look()
        names = self._kafka.transactions.ongoing
        for name in names:
            if not running or name.startswith("sender-"):
                self._kafka.transactions.expire(name)
        world.write_all_markers()
        topic = full_name(NAMESPACE, SOURCE)
        self._kafka.delete(topic)
        self._kafka.create(topic, N_SOURCES)
        self._oracle.look()
        found = [self._oracle.is_lost(p) for p in range(N_SOURCES)]
        world.hear_of_losses([None, *found] if running else found)
        world.wake()

    def _hang(self) -> None:
        """Records stay open of a transaction that its coordinator has forgotten.

        Of any id, and of any partition that was written with it.
        """
        known = self._kafka.transactions.names
        ids = [transactional_id(p) for p in range(N_SOURCES)]
        names = [name for name in ids if name in known]
        if not names:
            return
        self._world.write_all_markers()
        name = self._rng.choice(names)
        partition = self._rng.randrange(N_SOURCES)
        self._kafka.transactions.expire(name)
        self._world.write_all_markers()
        wrong = [Content(SEQUENCE, b"\x63", (), 0)]
        self._kafka.hang(self._oracle.place(STATE, partition), wrong, name)
        wrong = [Content(None, msgspec.msgpack.encode(Passed(partition, 99, 0)), (), 0)]
        self._kafka.hang(self._oracle.place(OUT, 0), wrong, name)

    def _any_source(self) -> Any:
        return self._oracle.place(SOURCE, self._rng.randrange(N_SOURCES))

    def _contents(self) -> list[Content]:
        contents = []
        for _ in range(self._rng.randint(1, 4)):
            self._n_sent += 1
            key = b"k%d" % self._rng.randrange(4)
            contents.append(Content(key, b"%d" % self._n_sent, (), 0))
        return contents
