"""Clients of a server, in processes of their own: good ones, and some who attack it.

All send again as soon as they are answered. Those who attack send a few kilobytes which
unpack to millions of elements, and the like, and connect again where they are hung up
on.
"""

import asyncio
import contextlib
import gzip
import json
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from itertools import count
from pathlib import Path
from typing import NamedTuple

import uvloop

from rankstream.lab.benchmarks.harness import own_python

SETTLE_S = 0.5
"""Before what is counted: connections are made, and code is warm."""

HEAD_END = b"\r\n\r\n"

N_ELEMENTS = 1_900_000

Refused = dict[str, int]
"""How often a request was answered by each status; 0 where the connection ended."""


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


def posted(path: str, body: bytes, *more: bytes) -> bytes:
    """The bytes of a request."""
    length = b"Content-Length: %d" % len(body)
    start = b"POST %b HTTP/1.1\r\nHost: localhost" % path.encode()
    return b"\r\n".join([start, *more, length, b"", b""]) + body


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
    command = own_python(__name__, port, s, n_clients, requests, pause_s)
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return Load(*json.loads(done.stdout))


@cache
def requests_of(n_elements: int = N_ELEMENTS) -> list[bytes]:
    """One of each kind: an array of ones, plain and packed; nested, lines, features."""
    ones = b"[" + b",".join([b"1"] * n_elements) + b"]"
    empty = b"[" + b",".join([b"[]"] * n_elements) + b"]"
    rank = b'{"model":"model","query_id":"q","items":[{"id":"a","features":%b}]}'
    packed = b"Content-Encoding: gzip"
    return [
        posted("/v1/events", gzip.compress(ones), packed),
        posted("/v1/events", ones),
        posted("/v1/events", gzip.compress(empty), packed),
        posted("/v1/rank", gzip.compress(rank % ones), packed),
        posted("/v1/rank", rank % ones),
        posted(
            "/v1/events",
            gzip.compress(b"1\n" * n_elements),
            packed,
            b"Content-Type: application/x-ndjson",
        ),
    ]


async def sent(port: int, requests: list[bytes], n_senders: int, s: float) -> Refused:
    """Send for so many seconds; no answer may be a success."""
    found: Counter[str] = Counter()
    ends_s = time.monotonic() + s

    async def send(first: int) -> None:
        for number in count(first):
            if time.monotonic() > ends_s:
                return
            status = "0"
            with contextlib.suppress(OSError):
                status = await _status_of(port, requests[number % len(requests)])
            found[status] += 1

    await asyncio.gather(*(send(number) for number in range(n_senders)))
    return dict(found)


async def _status_of(port: int, request: bytes) -> str:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        start = await reader.readline()
        return start.split(b" ")[1].decode() if start.startswith(b"HTTP/") else "0"
    finally:
        writer.close()


def begun(port: int, n_senders: int, s: float) -> "subprocess.Popen[str]":
    """The same in a process of its own, from now on; it prints what came of it."""
    command = own_python(__name__, port, s, n_senders)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)  # noqa: S603
    if process.stdout is not None:
        process.stdout.readline()  # its requests are made
    return process


def main(port: int, s: float, n_clients: int, *good: str) -> None:
    """Ask what a file has, or attack where there is none, and print what came of it."""
    found: Load | Refused
    if good:
        path, pause_s = good
        requests = [bytes.fromhex(line) for line in Path(path).read_text().split()]
        found = uvloop.run(asked(port, requests, n_clients, s, float(pause_s)))
    else:
        attacks = requests_of()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        found = uvloop.run(sent(port, attacks, n_clients, s))
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
