"""Waits for services: somebody hears soon what is waited for, and how to stop."""

import socket
import threading
import time
from collections.abc import Iterator

import msgspec
import pytest

from producers import readiness
from producers.readiness import (
    FIRST_S,
    PING,
    VERSIONS,
    Interrupted,
    Waiting,
    wait_for_kafka,
    wait_for_redis,
    why_no_kafka,
)
from rankstream.settings import KafkaSettings
from tests.served import until


class Listener:
    """Takes connections; answers once it is told what, to what it was asked."""

    def __init__(self) -> None:
        self.answer = b""
        self.asked: list[bytes] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        kept = []
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            kept.append(connection)
            self.asked.append(connection.recv(99))
            if self.answer:
                connection.sendall(self.answer)

    def close(self) -> None:
        """Take no more."""
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    """One that is silent at first."""
    found = Listener()
    yield found
    found.close()


def kafka_at(*ports: int, protocol: str = "PLAINTEXT") -> KafkaSettings:
    """Settings of a cluster here."""
    bootstrap = ",".join(f"127.0.0.1:{port}" for port in ports)
    return msgspec.structs.replace(
        KafkaSettings(), bootstrap=bootstrap, security_protocol=protocol
    )


def unused_port() -> int:
    """A port where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_one_who_listens_and_is_silent_is_no_kafka(listener: Listener) -> None:
    """Clients would wait for it without a word."""
    silent = kafka_at(listener.port)
    assert why_no_kafka(silent, 0.1).endswith("connected, but no answer")
    until(lambda: listener.asked == [VERSIONS])
    listener.answer = b"\0\0\0\6"
    assert why_no_kafka(silent) == ""
    assert why_no_kafka(kafka_at(unused_port(), listener.port)) == ""
    assert "Connection refused" in why_no_kafka(kafka_at(unused_port()))


def test_behind_tls_a_connection_is_enough(listener: Listener) -> None:
    """What is said in clear is no handshake."""
    assert why_no_kafka(kafka_at(listener.port, protocol="SASL_SSL")) == ""


def test_the_first_attempt_of_all_addresses_ends_before_the_first_word_is_due(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two seconds, shared among them."""
    assert FIRST_S <= 2.0
    monkeypatch.setattr(readiness, "LOOK_S", 0.01)
    connect, given = socket.create_connection, list[float]()

    def connected(place: tuple[str, int], timeout: float) -> socket.socket:
        given.append(timeout)
        return connect(place, timeout)

    monkeypatch.setattr(socket, "create_connection", connected)
    why_no_kafka(kafka_at(*[listener.port] * 20), 0.2)
    assert len(given) == 20
    assert sum(given) == pytest.approx(0.2)


def test_a_wait_says_what_for_and_how_to_stop_it_and_ends_at_once(
    listener: Listener,
) -> None:
    """Though the attempt that is under way would take longer."""
    said: list[str] = []
    is_stopped = threading.Event()
    threading.Timer(0.1, is_stopped.set).start()
    with pytest.raises(Interrupted, match="stopped while waiting for Kafka at"):
        wait_for_kafka(
            kafka_at(listener.port), Waiting(said.append), is_stopped=is_stopped.is_set
        )
    wait = Waiting(said.append)
    wait.waits("Kafka at here", "why")
    assert said == ["waiting for Kafka at here (0 s): why; Ctrl-C ends the wait"]
    # The first attempt counts, too.
    Waiting(said.append).waits("Kafka", "why", time.monotonic() - 2.1)
    assert said[1] == "waiting for Kafka (2 s): why; Ctrl-C ends the wait"


def test_a_silent_redis_is_waited_for_until_it_answers(listener: Listener) -> None:
    """Whatever it answers: a password is asked for later."""
    said: list[str] = []

    class Told(Waiting):
        def waits(self, what: str, why: str = "", since_s: float | None = None) -> None:
            del since_s
            said.append(f"{what}: {why}")
            listener.answer = b"-NOAUTH\r\n"

    wait_for_redis(f"redis://user@127.0.0.1:{listener.port}/0", Told())
    assert set(listener.asked) == {PING}
    (line,) = said
    assert line.startswith(f"Redis at redis://127.0.0.1:{listener.port}/0: ")
    assert line.endswith("connected, but no answer")
