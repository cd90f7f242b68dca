"""The faults of a run, struck while work is under way."""

import re
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from deploy.redis_server import Redis
from streams.worker_roles import kinds_of
from tests.fire.brokers import Brokers
from tests.fire.cluster import Missed, Worker
from tests.fire.commit_phases import PHASES, Order
from tests.fire.observer import Observer
from tests.fire.plans import Fault
from tests.fire.readers import Readers
from tests.fire.sender import Sender

PATIENCE_S = 300.0

SETTLED_S = 8.0
STARTED = r"event=restored partition="

AHEAD = 200
"""So many events are sent beyond what was: some of them close windows."""

STILL_S = 2.0
"""What did not come for so long may need more events than were let through."""

TRIES = 10


@dataclass
class Struck:
    """A fault that was struck, and what the run was doing then."""

    kind: str
    where: str
    at_s: float
    sent: int
    committed: int
    progress: int
    is_under_way: bool
    detail: str = ""


class Strikes:
    """Does what the plan says, each fault at its share of the run.

    A fault is struck once its share of the events was sent and the pipeline has
    committed work since the last one; meanwhile a sender that has a gate goes no
    further than the next fault's share.

    Parameters
    ----------
    led
        A topic, and how many partitions it has: who leads one of them is killed.
    ask
        Asks for an intervention of the trained model.
    stop_s
        A stop may take so long.
    """

    def __init__(  # noqa: PLR0913  everything that can break
        self,
        plan: list[Fault],
        n_events: int,
        workers: dict[str, Worker],
        broker: Brokers,
        redis: Redis,
        sender: Sender,
        observer: Observer,
        readers: Readers,
        seed: int,
        say: Callable[[str], None],
        led: tuple[str, int],
        ask: Callable[[], None],
        stop_s: float,
    ) -> None:
        self.done: list[Struck] = []
        self._plan = plan
        self._workers = workers
        self._broker = broker
        self._redis = redis
        self._sender = sender
        self._observer = observer
        self._readers = readers
        self._n_events = n_events
        self._rng = np.random.default_rng(seed + 1)
        self._say = say
        self._led = led
        self._ask = ask
        self._stop_s = stop_s
        self._began_s = time.monotonic()
        shares = (np.arange(len(plan)) + 1) / (len(plan) + 1)
        self._shares = [int(n_events * share) for share in shares]

    def run(self) -> None:
        """Strike all; the gate is open afterwards."""
        progress = 0
        for number, fault in enumerate(self._plan):
            last = max(self._n_events - 200, self._shares[number])
            following = self._shares[number + 1 :] or [last]
            self._sender.gate = max(following[0], self._sender.n_sent + AHEAD)
            self._await_sent(self._shares[number])
            self._await_progress(progress)
            time.sleep(float(self._rng.random()))
            self._strike(fault, progress)
            progress = self._observer.progress()
        self._sender.gate = 2 * self._n_events

    def _await(self, is_true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not is_true():
            for failure in (self._sender.failure, self._observer.failure):
                if failure is not None:
                    raise Missed(f"{what}: {failure!r}") from failure
            if time.monotonic() > deadline:
                raise Missed(f"{what} did not come in {PATIENCE_S:.0f} s")
            time.sleep(0.02)

    def _send_more(self) -> None:
        self._sender.gate = max(self._sender.gate, self._sender.n_sent + AHEAD)

    def _await_sent(self, n_events: int) -> None:
        self._await(lambda: self._sender.n_sent >= n_events, f"event {n_events:,}")

    def _await_progress(self, before: int) -> None:
        self._await(lambda: self._observer.progress() > before + 20, "progress")

    def _strike(self, fault: Fault, before: int) -> None:
        sent, committed = self._sender.n_sent, self._observer.n_events
        progress = self._observer.progress() - before
        is_under_way = self._sender.is_under_way
        struck = Struck(
            fault.kind,
            str(fault),
            round(time.monotonic() - self._began_s, 1),
            sent,
            committed,
            progress,
            is_under_way and progress > 0,
        )
        action = getattr(self, f"_do_{fault.kind}")
        struck.detail = str(action(fault))
        self.done.append(struck)
        self._say(f"{fault}, at event {sent:,}: {struck.detail}")

    def _do_kill(self, fault: Fault) -> str:
        worker = self._workers["first"]
        if fault.target == "all":
            worker.kill()
            worker.start()
            return "parent and all children"
        if fault.moment == "restoring":
            return self._kill_while_restoring(worker, fault.target)
        if fault.moment == "publishing":
            return self._kill_while_publishing(worker)
        if fault.moment == "training":
            return self._kill_while_training(worker)
        if fault.moment in PHASES:
            return self._kill_amid_commit(worker, fault.target, fault.moment)
        child = worker.awaited_child(fault.target)
        child.kill()
        child.wait(PATIENCE_S)
        return f"pid {child.pid}"

    def _do_stop(self, _: Fault) -> str:
        """SIGTERM in the middle of work; then it is started again."""
        worker = self._workers["first"]
        status, seconds = worker.stop()
        worker.start()
        if status or seconds > self._stop_s:
            raise Missed(
                f"a worker must stop with 0 in {self._stop_s:g} s; got {status} after "
                f"{seconds} s"
            )
        return f"exit status 0 in {seconds} s"

    def _kill_amid_commit(self, worker: Worker, role: str, phase: str) -> str:
        """Its next commit that comes there; which one that is, the pipeline says."""
        order, since = Order(worker.log.parent), worker.log_end()
        order.give(role, phase)

        def is_done() -> bool:
            # A role downstream commits once more was sent.
            self._send_more()
            return not order.is_open()

        try:
            self._await(is_done, f"{phase} of a commit of {role}")
        finally:
            order.withdraw()
        if not worker.wait_for(
            rf"event=child-ended role={role} status=-9\b", since, PATIENCE_S
        ):
            raise Missed(f"{role} must be killed amid a commit; it lives")
        return PHASES[phase]

    def _kill_while_restoring(self, worker: Worker, role: str) -> str:
        """Kill, and kill the next one while it reads its state back."""
        topic = "|".join(sorted({kind.source for kind in kinds_of(role)}))
        begun = re.compile(rf"event=restoring partition=((?:{topic})\[\d+\])")
        for _ in range(TRIES):
            child = worker.awaited_child(role)
            child.kill()
            child.wait(PATIENCE_S)
            since = worker.log_end()
            if not worker.wait_for(begun.pattern, since, PATIENCE_S):
                continue
            following = worker.awaited_child(role)
            following.kill()
            following.wait(PATIENCE_S)
            said = worker.said(since)
            place = list(begun.finditer(said))[-1][1]
            if f"event=restored partition={place}" not in said:
                return f"{place} was being restored by pid {following.pid}"
        raise Missed(
            f"{role} must be killed while it restores; it was not in {TRIES} tries"
        )

    def _kill_while_publishing(self, worker: Worker) -> str:
        """Redis stands still: the publisher waits for the answer to its script."""
        child = worker.awaited_child("publish")
        n_versions, since_s = len(self._readers.versions), time.monotonic()

        def has_come() -> bool:
            # The gate may have been reached, and all before it learned, meanwhile.
            nonlocal since_s
            if time.monotonic() - since_s > STILL_S:
                since_s = time.monotonic()
                self._send_more()
            return len(self._readers.versions) > n_versions

        self._await(has_come, "another version in Redis")
        self._redis.pause()
        try:
            waits = _waits_for(child, self._redis.port, timeout_s=60.0)
            child.kill()
            child.wait(PATIENCE_S)
        finally:
            self._redis.resume()
        if not waits:
            raise Missed(
                "the publisher must be killed while it writes; it did not write"
            )
        return f"pid {child.pid} waited for the answer to what it wrote"

    def _kill_while_training(self, worker: Worker) -> str:
        """Ask for an intervention, and kill whoever makes it before it is published."""
        for _ in range(TRIES):
            child, since = worker.awaited_child("train"), worker.log_end()
            self._ask()
            if not worker.wait_for(r"event=training model=", since, PATIENCE_S):
                continue
            child.kill()
            child.wait(PATIENCE_S)
            if "event=intervention" not in worker.said(since):
                return f"pid {child.pid} was training"
        raise Missed(
            f"the trainer must be killed while it trains; it was not in {TRIES} tries"
        )

    def _do_broker(self, fault: Fault) -> str:
        seconds = float(fault.target)
        self._broker.stop()
        began_s = time.monotonic()
        if fault.moment == "kill":
            for worker in self._workers.values():
                if worker.is_running:
                    worker.kill()
                    worker.start()
        time.sleep(max(0.0, began_s + seconds - time.monotonic()))
        self._broker.start()
        started = ", a worker killed and started meanwhile" if fault.moment else ""
        return f"away for {fault.target} s{started}"

    def _do_leader(self, fault: Fault) -> str:
        topic, n_partitions = self._led
        partition = int(self._rng.integers(n_partitions))
        return self._broker.kill_leader(topic, partition, float(fault.target))

    def _do_coordinator(self, fault: Fault) -> str:
        return self._broker.kill_coordinator(float(fault.target))

    def _do_redis(self, fault: Fault) -> str:
        self._readers.is_emptied = True
        self._redis.kill()
        time.sleep(float(fault.target))
        self._readers.is_emptied = True
        self._redis.start()
        return f"away for {fault.target} s, empty afterwards"

    def _do_second(self, fault: Fault) -> str:
        worker = self._workers[fault.kind]
        if fault.target == "join":
            since = worker.log_end()
            worker.start()
            if not worker.wait_for(STARTED + r"events", since, PATIENCE_S):
                raise Missed(f"{worker.name} must be given a partition; it was not")
            return "was given " + ", ".join(_restored(worker, since))
        if fault.target == "leave":
            (other,) = (each for each in self._workers.values() if each is not worker)
            since = other.log_end()
            status, seconds = worker.stop()
            if status:
                raise Missed(f"{worker.name} must leave with 0; got {status}")
            if not other.wait_for(STARTED + r"events", since, PATIENCE_S):
                raise Missed(f"{other.name} must take over what {worker.name} had")
            taken = ", ".join(_restored(other, since))
            return f"exit status 0 in {seconds} s; taken over: {taken}"
        worker.kill()
        return "killed, all of it"

    _do_first = _do_second

    def _do_pause(self, fault: Fault) -> str:
        """SIGSTOP until its partitions are another's, then SIGCONT: it must end."""
        first, second = self._workers["first"], self._workers["second"]
        _await_settled(first, second)
        child = second.awaited_child(fault.target)
        # Under load, so that it has folded what no commit covers yet.
        self._sender.gate = max(self._sender.gate, self._sender.n_sent + 2 * AHEAD)
        self._await_progress(self._observer.progress())
        since, since_first = second.log_end(), first.log_end()
        child.suspend()
        try:
            if not first.wait_for(STARTED + r"events", since_first, PATIENCE_S):
                raise Missed("the paused worker's partitions must be taken over")
            taken = _restored(first, since_first)
            before = self._observer.progress()
            self._await_progress(before)
        finally:
            child.resume()
        ended = rf"event=child-ended role={fault.target} status=(?!0\b)"
        second.wait_for(f"{ended}|{STARTED}events", since, PATIENCE_S)
        if not re.search(ended, second.said(since)):
            raise Missed("a paused worker whose work was taken over must end; it lives")
        said = re.search(r"event=failed[^\n]*", second.said(since))
        return f"taken over: {', '.join(taken)}; fenced: {said[0] if said else '?'}"


def _await_settled(*workers: Worker) -> None:
    """Wait until nobody has been given anything for a while.

    Else what one of them restores would pass for what it took over from the other.
    """
    known, since_s = -1, time.monotonic()
    deadline = since_s + PATIENCE_S
    while time.monotonic() - since_s < SETTLED_S:
        said = "".join(worker.said(0) for worker in workers)
        n_lines = said.count("event=restoring") + said.count("event=restored")
        if n_lines != known:
            known, since_s = n_lines, time.monotonic()
        if time.monotonic() > deadline:
            raise Missed("workers must come to rest before one is paused")
        time.sleep(0.2)


def _restored(worker: Worker, since: int) -> list[str]:
    said = worker.said(since)
    return sorted(set(re.findall(r"event=restored partition=(events\[\d+\])", said)))


def _waits_for(process: psutil.Process, port: int, timeout_s: float) -> bool:
    """Whether bytes that it sent to a port lie there unread: it waits for an answer."""
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if _unread_bytes(port, _local_ports(process, port)):
            return True
        time.sleep(0.01)
    return False


def _local_ports(process: psutil.Process, port: int) -> set[int]:
    return {
        each.laddr.port
        for each in process.net_connections("tcp")
        if each.raddr and each.raddr.port == port
    }


def _unread_bytes(port: int, peers: set[int]) -> int:
    """Bytes of the peers that the server at a port has not read."""
    total = 0
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        _, local, remote, _, queues, *_ = line.split()
        ports = [int(each.split(":")[1], 16) for each in (local, remote)]
        if ports[0] == port and ports[1] in peers:
            total += int(queues.split(":")[1], 16)
    return total


def as_json(strikes: Strikes) -> list[dict[str, Any]]:
    """What was struck, for the report."""
    return [asdict(struck) for struck in strikes.done]
