"""The gate does what tests of connections believe that it does."""

import contextlib
import socket
import threading
from collections.abc import Iterator

import pytest

from tests.tcp_gate import Gate

PATIENCE_S = 60.0
SILENCE_S = 0.3


class Echo:
    """A server that sends back what it was sent; `ended` once a client has gone."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.ended = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                while some := client.recv(100):
                    client.sendall(some)
            except OSError:
                pass
        self.ended.set()

    def close(self) -> None:
        """Take no more clients."""
        self._listening.close()


@pytest.fixture
def echo() -> Iterator[Echo]:
    """Something to lead to."""
    server = Echo()
    yield server
    server.close()


@pytest.fixture
def gate(echo: Echo) -> Iterator[Gate]:
    """The way there."""
    with Gate(echo.port) as made:
        yield made


@pytest.fixture
def client(gate: Gate) -> Iterator[socket.socket]:
    """A connection that works."""
    with connected(gate) as made:
        assert answer(made, b"before") == b"before"
        yield made


def connected(gate: Gate) -> socket.socket:
    """Another connection."""
    return socket.create_connection(("127.0.0.1", gate.port), PATIENCE_S)


def answer(client: socket.socket, said: bytes) -> bytes:
    """What comes back; nothing where the connection ended."""
    client.settimeout(PATIENCE_S)
    client.sendall(said)
    return client.recv(100)


def is_silent(client: socket.socket) -> bool:
    """Whether neither an answer nor an end comes."""
    client.settimeout(SILENCE_S)
    try:
        client.recv(100)
    except TimeoutError:
        return True
    return False


def test_what_is_cut_ends_on_both_sides(
    gate: Gate, echo: Echo, client: socket.socket
) -> None:
    """And the next connection works."""
    assert gate.cut() == 1
    client.settimeout(PATIENCE_S)
    with contextlib.suppress(ConnectionResetError):
        assert client.recv(100) == b""
    assert echo.ended.wait(PATIENCE_S)
    with connected(gate) as another:
        assert answer(another, b"x") == b"x"


def test_what_is_held_back_comes_later(gate: Gate, client: socket.socket) -> None:
    """On connections of before, and on new ones."""
    gate.stall()
    with connected(gate) as another:
        client.sendall(b"old")
        another.sendall(b"new")
        assert is_silent(client)
        assert is_silent(another)
        gate.flow()
        assert answer(client, b"") == b"old"
        assert answer(another, b"") == b"new"


def test_what_is_held_by_its_bytes_is_passed_on_when_it_is_held_no_more(
    gate: Gate, client: socket.socket
) -> None:
    """Others pass; and what was cut meanwhile never is."""
    gate.hold(lambda piece: b"end" in piece)
    assert answer(client, b"begin") == b"begin"
    client.sendall(b"end")
    assert is_silent(client)
    with connected(gate) as another:
        assert answer(another, b"begin") == b"begin"
        another.sendall(b"end")
        gate.hold(None)
        assert answer(client, b"") == answer(another, b"") == b"end"


def test_what_is_lost_stays_silent_and_nobody_is_told(
    gate: Gate, echo: Echo, client: socket.socket
) -> None:
    """Not even the server when the client goes; new connections work."""
    assert gate.lose() == 1
    client.sendall(b"lost")
    assert is_silent(client)
    with connected(gate) as another:
        assert answer(another, b"x") == b"x"
    assert echo.ended.wait(PATIENCE_S)  # of the other one
    echo.ended.clear()
    client.close()
    assert not echo.ended.wait(SILENCE_S)
    assert gate.n_open == 1


def test_a_connection_that_is_half_closed_ends_for_its_client_only(
    gate: Gate, echo: Echo, client: socket.socket
) -> None:
    """Until the client goes, too."""
    assert gate.half_close() == 1
    assert answer(client, b"unheard") == b""
    assert not echo.ended.wait(SILENCE_S)
    client.close()
    assert echo.ended.wait(PATIENCE_S)


def test_a_slow_gate_passes_everything_on(gate: Gate, client: socket.socket) -> None:
    """Later, each way."""
    gate.flow(4 * SILENCE_S)
    client.sendall(b"slowly")
    assert is_silent(client)
    assert answer(client, b"") == b"slowly"
