"""A server in a thread of its own, on a Kafka in memory, and clients over sockets."""

import asyncio
import contextlib
import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from aiokafka import TopicPartition

from rankstream.operations.serving.application import Parts, parts_of
from rankstream.operations.serving.http.limits import InFlight
from rankstream.operations.serving.sender import Sender
from rankstream.operations.serving.server import Server
from rankstream.ranker import Ranker
from rankstream.settings import (
    KafkaSettings,
    ModelSettings,
    RedisSettings,
    ServeSettings,
    Settings,
)
from rankstream.wire.topics import CLICKS, QUERIES
from tests.fakes.kafka import FakeKafka
from tests.fakes.producer import FakeProducer
from tests.snapshot_factory import envelope

N_PARTITIONS = 3

PATIENCE_S = 600.0
"""What must come is waited for: a busy machine is slow, and only slow."""


class Gate:
    """Holds requests to Kafka back while it is shut."""

    def __init__(self) -> None:
        self.is_shut = False

    async def __call__(self, what: str) -> None:
        """Wait at a point."""
        while self.is_shut and what == "produce":
            await asyncio.sleep(0.005)


class _Client:
    """What a server asks of its producer's client."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate

    def force_metadata_update(self) -> "asyncio.Future[bool]":
        """Whether Kafka answers."""
        found = asyncio.get_running_loop().create_future()
        if not self._gate.is_shut:
            found.set_result(True)
        return found

    async def close(self) -> None:
        """Nothing to close."""


@dataclass
class Served:
    """A server that runs, and what it sends to."""

    server: Server
    parts: Parts
    kafka: FakeKafka
    gate: Gate
    producers: list[FakeProducer] = field(default_factory=list)
    options: list[dict[str, Any]] = field(default_factory=list)

    @property
    def port(self) -> int:
        """Where it listens."""
        return self.server.port

    def values(self, topic: str) -> list[bytes]:
        """What partitions of a topic hold, in turn."""
        logs = [
            self.kafka.log(TopicPartition(topic, number))
            for number in range(N_PARTITIONS)
        ]
        return [
            record.content.value or b""
            for log in logs
            for record in log.fetch(0, is_committed=False, limit=None).records
            if record.content
        ]

    def events(self, topic: str) -> list[Any]:
        """The events in them."""
        found: list[Any] = []
        for value in self.values(topic):
            decoded = json.loads(value)
            found += decoded if isinstance(decoded, list) else [decoded]
        return found

    def ask(
        self, path: str, body: Any = None, *, method: str = "", **headers: str
    ) -> "Answered":
        """One request on a connection of its own; underscores are dashes."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        sent = body
        if body is not None and not isinstance(body, bytes):
            sent = json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        with contextlib.closing(client):
            client.request(
                method or ("GET" if body is None else "POST"), path, sent, named
            )
            answer = client.getresponse()
            return Answered(answer.status, dict(answer.getheaders()), answer.read())

    def connect(self) -> socket.socket:
        """A connection of bytes."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def raw(self, sent: bytes) -> bytes:
        """All that comes back for these bytes until the server closes."""
        with self.connect() as client:
            client.sendall(sent)
            return all_of(client)


@dataclass(frozen=True)
class Answered:
    """An answer."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body."""
        return json.loads(self.body)


def all_of(client: socket.socket) -> bytes:
    """What comes until the other side closes, as it does where nothing is asked."""
    found = b""
    with contextlib.suppress(ConnectionError):
        while piece := client.recv(65_536):
            found += piece
    return found


def settings_of(**serve: Any) -> Settings:
    """Settings of a server on any free port, with a model `m` of three features."""
    return Settings(
        kafka=KafkaSettings(input_partitions=N_PARTITIONS),
        redis=RedisSettings(url="redis://127.0.0.1:1/0"),
        serve=ServeSettings(port=0, **serve),
        models={"m": ModelSettings(features=3, normalisation="none")},
    )


@contextlib.contextmanager
def served(
    settings: Settings | None = None, *, rankers: dict[str, Ranker] | None = None
) -> Iterator[Served]:
    """A server for as long as the context lasts."""
    settings = settings or settings_of()
    kafka, gate = FakeKafka(), Gate()
    for topic in (QUERIES, CLICKS):
        kafka.create(topic, N_PARTITIONS)
    producers: list[FakeProducer] = []
    said: list[dict[str, Any]] = []

    def make(**options: Any) -> FakeProducer:
        said.append(options)
        made = FakeProducer(kafka, gate, **options)
        made.client = _Client(gate)  # type: ignore[attr-defined]
        producers.append(made)
        return made

    room = InFlight(settings.serve.under_way_bytes)
    parts = parts_of(settings, Sender(settings, room, make), room)
    if rankers is None and "m" in settings.models:
        rankers = {"m": Ranker("m", source=lambda: envelope(2), n_features=3)}
    parts.rankers.clear()
    parts.rankers.update(rankers or {})
    server = Server(parts)
    thread = threading.Thread(target=server.run, name="served", daemon=True)
    thread.start()
    until(lambda: server.started and not parts.sender.trouble)
    try:
        yield Served(server, parts, kafka, gate, producers, said)
    finally:
        gate.is_shut = False
        server.should_exit = True
        thread.join(timeout=PATIENCE_S)
        assert not thread.is_alive()


def until(is_so: Any) -> None:
    """Wait until something is so."""
    ends_s = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < ends_s, "it did not happen in time"
        time.sleep(0.005)
