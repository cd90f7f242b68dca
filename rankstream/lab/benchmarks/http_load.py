"""Clients that ask again as soon as they are answered; a process of their own."""

import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import uvloop

from rankstream.installation import path_options

SETTLE_S = 0.5
"""Before what is counted: connections are made, and code is warm."""

HEAD_END = b"\r\n\r\n"


class Load(NamedTuple):
    """What came of it: answers a second, seconds of the slowest hundredth, refusals.

    `n_answered` counts all answers with success, those before what is counted too, and
    `cpu_s` is what the clients took for them.
    """

    rate: float
    p99_s: float
    n_answered: int
    n_refused: int
    cpu_s: float


class Client(asyncio.Protocol):
    """One connection that asks for these bodies in turn until it is told to stop.

    It rests `pause_s` between an answer and the next request.
    """

    def __init__(
        self, requests: list[bytes], first: int, ends_s: float, pause_s: float = 0.0
    ) -> None:
        self.answered: list[tuple[float, float]] = []
        self.n_refused = 0
        self.done = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._next = first
        self._ends_s = ends_s
        self._pause_s = pause_s
        self._asked_s = 0.0
        self._waiting = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer; ask again once it is whole."""
        self._waiting += data
        head, mark, rest = self._waiting.partition(HEAD_END)
        if not mark:
            return
        at = head.lower().find(b"content-length:")
        length = int(head[at + 15 :].split(b"\r\n", 1)[0])
        if len(rest) < length:
            return
        now_s = time.perf_counter()
        if head.startswith(b"HTTP/1.1 2"):
            self.answered.append((now_s, now_s - self._asked_s))
        else:
            self.n_refused += 1
        self._waiting = b""
        if now_s < self._ends_s:
            if self._pause_s:
                asyncio.get_running_loop().call_later(self._pause_s, self._ask)
            else:
                self._ask()
        elif not self.done.done():
            self.done.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Count a connection that was closed as a refusal."""
        del exc
        if not self.done.done():
            self.n_refused += 1
            self.done.set_result(None)

    def _ask(self) -> None:
        self._asked_s = time.perf_counter()
        self._transport.write(self._requests[self._next])  # type: ignore[attr-defined]
        self._next = (self._next + 1) % len(self._requests)


def request_of(path: str, body: bytes) -> bytes:
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


async def asked(
    port: int, requests: list[bytes], n_clients: int, s: float, pause_s: float = 0.0
) -> Load:
    """Let clients ask for so many seconds."""
    loop = asyncio.get_running_loop()
    before_s = time.process_time()
    begun_s = time.perf_counter() + SETTLE_S
    clients = []
    for number in range(n_clients):
        first = number * len(requests) // n_clients
        _, client = await loop.create_connection(
            lambda first=first: Client(requests, first, begun_s + s, pause_s),  # type: ignore[misc]
            "127.0.0.1",
            port,
        )
        clients.append(client)
    await asyncio.gather(*(client.done for client in clients))
    cpu_s = time.process_time() - before_s
    every = [each for client in clients for each in client.answered]
    counted = sorted(took_s for at_s, took_s in every if begun_s <= at_s <= begun_s + s)
    slow_s = counted[int(0.99 * (len(counted) - 1))] if counted else float("inf")
    refused = sum(client.n_refused for client in clients)
    return Load(len(counted) / s, slow_s, len(every), refused, cpu_s)


def load(
    port: int, requests: Path, n_clients: int, s: float, pause_s: float = 0.0
) -> Load:
    """The same in a process of its own, with requests from a file."""
    command = [sys.executable, *path_options(), "-m", __name__]
    command += [str(port), str(requests), str(n_clients), str(s), str(pause_s)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return Load(*json.loads(done.stdout))


def main(words: list[str]) -> None:
    """Ask, and print what came of it."""
    port, path, n_clients, s, pause_s = words
    requests = [bytes.fromhex(line) for line in Path(path).read_text().split()]
    run = asked(int(port), requests, int(n_clients), float(s), float(pause_s))
    sys.stdout.write(json.dumps(uvloop.run(run)))


if __name__ == "__main__":
    main(sys.argv[1:])
