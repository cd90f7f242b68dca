"""Kafka stopped and killed, the server killed, a thousand slow clients.

What was answered is applied exactly once. What was not may be there or not, and a retry
of it is a duplicate.
"""

import contextlib
import http.client
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from deploy.broker import Broker
from deploy.process import free_port
from producers.brokers.topic_admin import TopicAdmin
from producers.topic_reader import read_records
from rankstream.settings import Settings, load_settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline, local_settings
from streams.topology import topics_of
from tests.served import PATIENCE_S, until
from tests.services import ServiceMissing, our_broker, without

pytestmark = pytest.mark.broker

N_SENDERS = 8
N_SLOW = 1_000
STOPPED_S = 30.0
BETWEEN = 120
"""Clicks that are answered between one fault and the next, however long it takes."""

CLICKS_A_LIST = 2

COMMAND = (sys.executable, "-m", "rankstream", "serve")

CONFIGURATION = """namespace = "served"
[kafka]
bootstrap = "{bootstrap}"
[redis]
url = "redis://127.0.0.1:9/0"
[time]
disorder_ms = 300_000
[serve]
port = {port}
connections = 1_500
answer_s = 3.0
under_way_bytes = 17_000_000
"""

SLOW = (
    b"POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n"
    + b"[" * 2_000
)


class Sender(threading.Thread):
    """Sends a list and its clicks, each until it is answered, then the next list."""

    def __init__(self, number: int, port: int) -> None:
        super().__init__(daemon=True)
        self.answered: dict[str, set[str]] = {QUERIES: set(), CLICKS: set()}
        self.statuses: Counter[int] = Counter()
        self.failure: BaseException | None = None
        self.is_stopped = False
        self._number = number
        self._port = port
        self._client: http.client.HTTPConnection | None = None

    def run(self) -> None:
        """Send until stopped."""
        try:
            n_lists = 0
            while not self.is_stopped:
                n_lists += 1
                self._list(f"{self._number}-{n_lists}")
        except (AssertionError, ValueError) as error:
            self.failure = error

    def _list(self, name: str) -> None:
        common = {"impression_id": name, "query_id": f"q{len(name)}"}
        at_ms = time.time_ns() // 1_000_000
        shown = {**common, "at_ms": at_ms, "shown": ["a", "b"]}
        if not self._answered("/v1/events", shown):
            return
        self.answered[QUERIES].add(name)
        for place in range(1, CLICKS_A_LIST + 1):
            own = f"{name}/{place}"
            click = {**common, "position": place, "event_id": own}
            # The server's time: a retry has another, and is known by its id.
            if self._answered("/v1/click", click):
                self.answered[CLICKS].add(own)

    def _answered(self, path: str, event: dict[str, Any]) -> bool:
        body = json.dumps(event).encode()
        while not self.is_stopped:
            try:
                if self._client is None:
                    self._client = http.client.HTTPConnection(
                        "127.0.0.1", self._port, timeout=20
                    )
                self._client.request("POST", path, body)
                answer = self._client.getresponse()
                said = answer.read()
            except (OSError, http.client.HTTPException):
                self.statuses[0] += 1
                if self._client is not None:
                    self._client.close()
                    self._client = None
                time.sleep(0.05)
                continue
            self.statuses[answer.status] += 1
            if answer.status == 202:
                return True
            assert answer.status == 503, said
            assert answer.getheader("retry-after")
            time.sleep(0.1)
        return False


class SlowClients(threading.Thread):
    """Connections that send a byte now and then, and come again when closed."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.is_stopped = False
        self.n_opened = 0
        self._port = port

    def run(self) -> None:
        """Drip until stopped."""
        held: list[tuple[socket.socket, int]] = []
        while not self.is_stopped:
            held = [each for each in map(self._dripped, held) if each]
            while len(held) < N_SLOW and not self.is_stopped:
                try:
                    client = socket.create_connection(("127.0.0.1", self._port), 5)
                except OSError:
                    break
                self.n_opened += 1
                client.setblocking(False)
                held.append((client, 0))
            time.sleep(0.2)
        for client, _ in held:
            client.close()

    @staticmethod
    def _dripped(held: tuple[socket.socket, int]) -> tuple[socket.socket, int] | None:
        client, at = held
        step = 40 if at < len(SLOW) - 40 else 0
        try:
            if step:
                client.send(SLOW[at : at + step])
            if client.recv(4_096) == b"":
                raise ConnectionError
        except BlockingIOError:
            return client, at + step
        except OSError:
            client.close()
            return None
        return client, at + step


@pytest.fixture
def broker() -> Iterator[Broker]:
    """A broker of the test's own: it is stopped and killed."""
    try:
        with our_broker() as found:
            yield found
    except ServiceMissing as reason:
        without(reason, os.environ)


@contextlib.contextmanager
def many_files() -> Iterator[None]:
    """As many open files as a thousand clients need."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(8_192, before[1]), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def started(configuration: Path, log: Path) -> "subprocess.Popen[bytes]":
    """The server as users start it."""
    with log.open("ab") as file:
        return subprocess.Popen(
            [*COMMAND, "--config", configuration], stdout=file, stderr=file
        )


def go_on(senders: list[Sender]) -> None:
    """Wait until so many more clicks are answered, or a sender has failed."""

    def n_answered() -> int:
        return sum(len(sender.answered[CLICKS]) for sender in senders)

    enough = n_answered() + BETWEEN
    until(lambda: n_answered() >= enough or any(x.failure for x in senders))


def is_ready(port: int) -> bool:
    """Whether the server says so."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    with contextlib.closing(client), contextlib.suppress(OSError):
        client.request("GET", "/readyz")
        return client.getresponse().status == 200
    return False


def events_of(settings: Settings, topic: str) -> Iterator[tuple[int, bytes]]:
    """Records of a topic in the order of the broker's times."""
    found = [
        (record.timestamp_ms, record.value or b"")
        for record in read_records(settings, topic)
    ]
    yield from sorted(found)


def test_what_was_answered_is_applied_exactly_once(
    broker: Broker, tmp_path: Path
) -> None:
    """Whatever happens to Kafka, to the server and to other clients meanwhile."""
    port, path, log = free_port(), tmp_path / "served.toml", tmp_path / "log"
    path.write_text(CONFIGURATION.format(bootstrap=broker.bootstrap, port=port))
    settings = load_settings(path, {})
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    admin.close()
    with many_files():
        server = started(path, log)
        until(lambda: is_ready(port))
        senders = [Sender(number, port) for number in range(N_SENDERS)]
        slow = SlowClients(port)
        for thread in (slow, *senders):
            thread.start()
        go_on(senders)
        before = psutil.Process(server.pid).memory_info().rss

        broker.pause()
        time.sleep(STOPPED_S)
        broker.resume()
        go_on(senders)
        broker.kill()
        time.sleep(1.0)
        broker.start()
        until(lambda: is_ready(port))
        go_on(senders)
        grown = psutil.Process(server.pid).memory_info().rss - before

        server.kill()
        server.wait()
        server = started(path, log)
        until(lambda: is_ready(port))
        go_on(senders)
        until(lambda: slow.n_opened > 2 * N_SLOW)
        for sender in senders:
            sender.is_stopped = True
        for sender in senders:
            sender.join(PATIENCE_S)
            assert sender.failure is None
        slow.is_stopped = True
        slow.join(PATIENCE_S)
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE_S) == 0, log.read_text()

    answered = {
        topic: set().union(*(sender.answered[topic] for sender in senders))
        for topic in (QUERIES, CLICKS)
    }
    statuses = sum((sender.statuses for sender in senders), Counter())
    assert len(answered[CLICKS]) >= 4 * BETWEEN
    assert statuses[503] > 0  # while Kafka was stopped
    assert statuses[0] > 0  # while the server was away
    assert grown < 64 << 20, f"grew by {grown:,} bytes"
    assert applied_of(settings, answered, statuses) == []


def applied_of(
    settings: Settings, answered: dict[str, set[str]], statuses: Counter[int]
) -> list[str]:
    """What is wrong with what ingestion and the join make of the log."""
    now_ms = 0
    pipeline = LocalPipeline(local_settings(settings), now=lambda: now_ms)
    ids: dict[str, Counter[str]] = {QUERIES: Counter(), CLICKS: Counter()}
    records = sorted(
        (at_ms, topic, value)
        for topic in (QUERIES, CLICKS)
        for at_ms, value in events_of(settings, topic)
    )
    for at_ms, topic, value in records:
        now_ms = at_ms
        pipeline.send(topic, value)
        decoded = json.loads(value)
        for event in decoded if isinstance(decoded, list) else [decoded]:
            name = "impression_id" if topic == QUERIES else "event_id"
            ids[topic][event[name]] += 1
    pipeline.end()
    counts = pipeline.counters()
    faults = [
        f"{len(lost)} answered events of {topic} are not in the log"
        for topic in ids
        if (lost := answered[topic] - set(ids[topic]))
    ]
    n_lists, n_clicks = len(ids[QUERIES]), len(ids[CLICKS])
    n_records = sum(sum(each.values()) for each in ids.values())
    expected = {
        "interactions": n_lists,
        "applied_clicks": n_clicks,
        "duplicate": n_records - n_lists - n_clicks,
        "late": 0,
        "orphan": 0,
        "ingestion_dead_letter": 0,
    }
    faults += [
        f"{name} must be {number}; got {counts.get(name)}"
        for name, number in expected.items()
        if counts.get(name) != number
    ]
    print(f"\nanswers {dict(statuses)}, counts {counts}")  # noqa: T201
    return faults
