"""Clients that send a few kilobytes which unpack to millions of elements, and the like.

A process of their own. Each sends again as soon as it is refused, and connects again
where it was hung up on.
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

import uvloop

from rankstream.installation import path_options

N_ELEMENTS = 1_900_000

Refused = dict[str, int]
"""How often a request was answered by each status; 0 where the connection ended."""


def posted(path: str, body: bytes, *more: bytes) -> bytes:
    """The bytes of a request."""
    length = b"Content-Length: %d" % len(body)
    start = b"POST %b HTTP/1.1\r\nHost: localhost" % path.encode()
    return b"\r\n".join([start, *more, length, b"", b""]) + body


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
    words = [port, n_senders, s]
    command = [sys.executable, *path_options(), "-m", __name__, *map(str, words)]
    process = subprocess.Popen(  # noqa: S603  our own command
        command, stdout=subprocess.PIPE, text=True
    )
    if process.stdout is not None:
        process.stdout.readline()  # its requests are made
    return process


def main(words: list[str]) -> None:
    """Send, and print how often what was answered."""
    port, n_senders, s = words
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    run = sent(int(port), requests_of(), int(n_senders), float(s))
    sys.stdout.write(json.dumps(uvloop.run(run)))


if __name__ == "__main__":
    main(sys.argv[1:])
