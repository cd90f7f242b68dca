"""Requests a second of `rankstream serve`, beside endpoints that only decode.

Both are the same server with the same options, and take the same bodies from the same
clients, in turns. Ours ranks, checks, and answers once a broker on the same machine has
the event; what the broker has is counted afterwards. Rates share the cores with clients
and broker, so the CPU of a request is told beside them. Then a few good clients ask
ours alone, and beside others who attack it.
"""

import contextlib
import http.client
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deploy.process import free_port
from producers.topic_reader import read_records
from rankstream.installation import path_options
from rankstream.lab.benchmarks.http_load import Load, load, request_of
from rankstream.lab.benchmarks.pipeline_bed import BenchmarkFailed, running_bed
from rankstream.lab.benchmarks.pipeline_cpu import cpu_s
from rankstream.lab.benchmarks.pipeline_repeats import Figure, in_turns, paired_figure
from rankstream.lab.benchmarks.serve_beside import beside_figures
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, encode_snapshot, features_hash, store_of
from rankstream.wire.topics import CLICKS, QUERIES

N_DOCUMENTS, N_FEATURES = 100, 136
N_BODIES = 64
N_CLIENTS = 64
TOGETHER = 100
"""Clicks of a request, where there are several."""

START_S = 60.0


class Work(NamedTuple):
    """What is asked for, and how many events each request is."""

    name: str
    requests: list[bytes]
    n_events: int
    topic: str
    goal: float
    floor: float


class Turn(NamedTuple):
    """What came of asking one server, and the CPU seconds that it took for it."""

    load: Load
    server_s: float


def measure(*, quick: bool = False) -> list[Figure]:
    """Rates, the slowest hundredth and the CPU of rankings and of events."""
    s, n_repeats = (1.0, 1) if quick else (6.0, 6)
    figures: list[Figure] = []
    with running_bed() as bed:
        settings = bed.settings(N_FEATURES)
        _publish(settings)
        with (
            _ours(bed.configuration(settings)) as ours,
            _bare() as bare,
        ):
            for work in works():
                path = bed.folder / "requests"
                path.write_text("\n".join(each.hex() for each in work.requests))
                before = _n_events(settings, work.topic)
                pairs = in_turns(
                    lambda path=path: _turn(ours, path, s),  # type: ignore[misc]
                    lambda path=path: _turn(bare, path, s),  # type: ignore[misc]
                    n_repeats,
                )
                found = _n_events(settings, work.topic) - before
                figures += figures_of(work, pairs, found)
            for work in works()[:2]:
                path = bed.folder / "requests"
                path.write_text("\n".join(each.hex() for each in work.requests))
                figures += beside_figures(
                    work.name, ours.port, ours.pid, path, s, n_repeats
                )
    return figures


def works() -> list[Work]:
    """The bodies: 100 documents of 136 features; one click; a hundred."""
    rng = np.random.default_rng(1)
    now_ms = time.time_ns() // 1_000_000
    rankings = []
    for number in range(N_BODIES):
        rows = rng.random((N_DOCUMENTS, N_FEATURES)).round(6).tolist()
        body = {
            "model": "model",
            "query_id": f"query {number}",
            "session": f"s{number}",
            "items": [
                {"id": f"sku-{item}", "features": row} for item, row in enumerate(rows)
            ],
        }
        rankings.append(request_of("/v1/rank", msgspec.json.encode(body)))

    def click(number: int) -> dict[str, Any]:
        return {
            "impression_id": f"{number:032x}",
            "query_id": f"query {number}",
            "at_ms": now_ms,
            "position": 1 + number % 10,
            "event_id": f"{number:036x}",
        }

    ones = [
        request_of("/v1/events", msgspec.json.encode(click(n))) for n in range(N_BODIES)
    ]
    many = [
        request_of(
            "/v1/events",
            msgspec.json.encode([click(n * TOGETHER + i) for i in range(TOGETHER)]),
        )
        for n in range(N_BODIES)
    ]
    described = f"rank, {N_DOCUMENTS} documents of {N_FEATURES} features"
    return [
        Work(described, rankings, 1, QUERIES, 0.5, 0.25),
        Work("events, one click a request", ones, 1, CLICKS, 0.3, 0.15),
        Work(f"events, {TOGETHER} clicks a request", many, TOGETHER, CLICKS, 0.3, 0.1),
    ]


def figures_of(
    work: Work, pairs: list[tuple[Turn, Turn]], n_found: int
) -> list[Figure]:
    """Of each work four; void where the broker has not what was answered."""
    answered = sum(ours.load.n_answered for ours, _ in pairs) * work.n_events
    refused = sum(turn.load.n_refused for pair in pairs for turn in pair)
    faults = []
    if n_found != answered:
        faults.append(f"{answered:,} events were answered, the broker has {n_found:,}")
    if refused:
        faults.append(f"{refused:,} requests were refused")

    def values(of: Callable[[Turn], float]) -> list[tuple[float, float]]:
        return [(of(ours), of(bare)) for ours, bare in pairs]

    def cost(what: str, unit: str, of: Callable[[Turn], float]) -> Figure:
        name = f"{work.name}: {what}"
        found = values(of)
        return paired_figure(name, unit, found, less_is_better=True, faults=faults)

    return [
        paired_figure(
            work.name,
            "requests/s",
            values(lambda turn: turn.load.rate),
            bounds=(work.goal, work.floor),
            faults=faults,
        ),
        cost(
            f"slowest 1 %, {N_CLIENTS} clients",
            "ms",
            lambda turn: 1e3 * turn.load.p99_s,
        ),
        cost(
            "CPU of the server, a request",
            "us",
            lambda turn: 1e6 * turn.server_s / max(1, turn.load.n_answered),
        ),
        cost(
            "CPU of the clients, a request",
            "us",
            lambda turn: 1e6 * turn.load.cpu_s / max(1, turn.load.n_answered),
        ),
    ]


def _turn(server: "_Running", requests: Path, s: float) -> Turn:
    before_s = cpu_s(server.pid)
    found = load(server.port, requests, N_CLIENTS, s)
    return Turn(found, cpu_s(server.pid) - before_s)


def _publish(settings: Settings) -> None:
    weights = np.random.default_rng(2).standard_normal(N_FEATURES).astype("<f4")
    snapshot = Snapshot(
        model="model",
        epoch=0,
        version=1,
        parent=0,
        created_ms=time.time_ns() // 1_000_000,
        kind="linear",
        hidden=[],
        normalisation="min-max",
        n_features=N_FEATURES,
        features_hash=features_hash(N_FEATURES),
        sources=[],
        updates=1,
        weights=weights.tobytes(),
    )
    store = store_of(settings)
    store.publish(encode_snapshot(snapshot))
    store.close()


def _n_events(settings: Settings, topic: str) -> int:
    """Events that the broker has, those that share a record too."""
    found = 0
    for record in read_records(settings, topic):
        value = record.value or b""
        is_array = value[:1] == b"["
        found += (
            len(msgspec.json.decode(value, type=list[msgspec.Raw])) if is_array else 1
        )
    return found


class _Running(NamedTuple):
    """A server that is ready."""

    port: int
    pid: int


@contextlib.contextmanager
def _ours(configuration: Path) -> Iterator[_Running]:
    port = free_port()
    command = [
        "-m",
        "rankstream",
        "serve",
        "--config",
        str(configuration),
    ]
    with _server([*command, "--port", str(port)], port, "/readyz") as running:
        yield running


@contextlib.contextmanager
def _bare() -> Iterator[_Running]:
    port = free_port()
    command = ["-m", "rankstream.lab.benchmarks.serve_bare", str(port)]
    with _server(command, port, "/v1/events") as running:
        yield running


@contextlib.contextmanager
def _server(words: list[str], port: int, path: str) -> Iterator[_Running]:
    """A server as a process, from when it is ready."""
    command = [sys.executable, *path_options(), *words]
    process = subprocess.Popen(  # noqa: S603  our own command
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ
    )
    try:
        _wait(process, port, path)
        yield _Running(port, process.pid)
    finally:
        process.terminate()
        process.wait(60)


def _wait(process: "subprocess.Popen[bytes]", port: int, path: str) -> None:
    ends_s = time.monotonic() + START_S
    while time.monotonic() < ends_s and process.poll() is None:
        with contextlib.suppress(OSError, http.client.HTTPException):
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
            with contextlib.closing(client):
                client.request("GET", path)
                if client.getresponse().status in (200, 405):
                    return
        time.sleep(0.1)
    raise BenchmarkFailed(f"a server must be ready within {START_S:g} s; it is not")
