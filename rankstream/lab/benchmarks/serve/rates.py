"""Requests a second of `rankstream serve`, beside endpoints that only decode.

Both are the same server with the same options, and take the same bodies from the same
clients, in turns. Ours ranks, checks, and answers once a broker on the same machine has
the event; what the broker has is counted afterwards. Rates share the cores with clients
and broker, so the CPU of a request is told beside them. Beside the rival that only
decodes stands one which also answers once the broker has the body. Then a few good
clients ask ours alone, and beside others who attack it.
"""

import contextlib
import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from deploy.process import free_port
from producers.topic_reader import read_records
from rankstream.lab.benchmarks.harness import (
    Bounds,
    Figure,
    in_turns,
    own_python,
    paired_figure,
    peak_mib,
)
from rankstream.lab.benchmarks.pipeline.bed import BenchmarkFailed, running_bed
from rankstream.lab.benchmarks.pipeline.meter import cpu_s
from rankstream.lab.benchmarks.serve.clients import Load, begun, load, posted
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, encode_snapshot, features_hash, store_of
from rankstream.wire.topics import CLICKS, QUERIES, full_name

N_DOCUMENTS, N_FEATURES = 100, 136
N_BODIES = 64
N_CLIENTS = 64
TOGETHER = 100
"""Clicks of a request, where there are several."""

JSON = b"Content-Type: application/json"
START_S = 60.0
RIVAL = "rankstream.lab.benchmarks.serve.rival"

N_SENDERS, N_GOOD = 20, 8
"""Who attack, and good clients beside them."""

PAUSE_S = 0.05
"""Between requests of a good client, so that they do not fill the server themselves."""

SETTLE_S = 1.0


class Work(NamedTuple):
    """What is asked for, and how many events each request is."""

    name: str
    requests: list[bytes]
    n_events: int
    topic: str
    goal: float | None
    floor: float | None


class Turn(NamedTuple):
    """What came of asking one server, and the CPU seconds that it took for it."""

    load: Load
    server_s: float


class Beside(NamedTuple):
    """What the good clients saw, the server's peak, and what the others were told."""

    load: Load
    peak_mib: float
    refused: dict[str, int]


def measure(*, quick: bool = False) -> list[Figure]:
    """Rates, the slowest hundredth and the CPU of rankings and of events."""
    s, n_repeats = (1.0, 1) if quick else (6.0, 6)
    figures: list[Figure] = []
    with running_bed() as bed:
        settings = bed.settings(N_FEATURES)
        _publish(settings)
        others = bed.settings(N_FEATURES)
        kept = full_name(others.namespace, CLICKS)
        one, other, third = free_port(), free_port(), free_port()
        served = ("serve", "--config", bed.configuration(settings), "--port", one)
        with (
            _server("/readyz", one, "rankstream", *served) as ours,
            _server("/v1/events", other, RIVAL, other) as bare,
            _server(
                "/v1/events", third, RIVAL, third, bed.broker.bootstrap, kept
            ) as keeping,
        ):
            path = bed.folder / "requests"
            many = works()[2]
            beside = f"{many.name}, beside one that sends too"
            kept_too = many._replace(name=beside, goal=None, floor=None)
            for work, rival in *((each, bare) for each in works()), (kept_too, keeping):
                path.write_text("\n".join(each.hex() for each in work.requests))
                before = _n_events(settings, work.topic)
                theirs = _n_events(others, CLICKS)
                pairs = in_turns(
                    lambda: _turn(ours, path, s),
                    lambda rival=rival: _turn(rival, path, s),  # type: ignore[misc]
                    n_repeats,
                )
                found = _n_events(settings, work.topic) - before
                sent = _n_events(others, CLICKS) - theirs
                figures += figures_of(
                    work, pairs, found, sent if rival is keeping else None
                )
            for work in works()[:2]:
                path.write_text("\n".join(each.hex() for each in work.requests))
                figures += beside_figures(work.name, ours, path, s, n_repeats)
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
        rankings.append(posted("/v1/rank", msgspec.json.encode(body), JSON))

    def click(number: int) -> dict[str, Any]:
        return {
            "impression_id": f"{number:032x}",
            "query_id": f"query {number}",
            "at_ms": now_ms,
            "position": 1 + number % 10,
            "event_id": f"{number:036x}",
        }

    def events(number: int, n_clicks: int) -> bytes:
        clicks = [click(number * n_clicks + i) for i in range(n_clicks)]
        body = msgspec.json.encode(clicks if n_clicks > 1 else clicks[0])
        return posted("/v1/events", body, JSON)

    ones, many = ([events(n, k) for n in range(N_BODIES)] for k in (1, TOGETHER))
    described = f"rank, {N_DOCUMENTS} documents of {N_FEATURES} features"
    return [
        Work(described, rankings, 1, QUERIES, 0.5, 0.25),
        Work("events, one click a request", ones, 1, CLICKS, 0.3, 0.15),
        Work(f"events, {TOGETHER} clicks a request", many, TOGETHER, CLICKS, 0.6, 0.45),
    ]


def figures_of(
    work: Work, pairs: list[tuple[Turn, Turn]], n_found: int, n_theirs: int | None
) -> list[Figure]:
    """Of each work four; void where the broker has not what was answered.

    Parameters
    ----------
    n_found, n_theirs
        Events that the broker has of ours and of the rival, None if it sends none.
    """
    refused = sum(turn.load.n_refused for pair in pairs for turn in pair)
    faults = []
    for side, n_events in ((0, n_found), (1, n_theirs)):
        answered = sum(pair[side].load.n_answered for pair in pairs) * work.n_events
        if n_events not in (None, answered):
            faults.append(f"{answered:,} events were answered, and {n_events:,} kept")
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
            (work.goal, work.floor),
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


def beside_figures(
    name: str, server: "Running", requests: Path, s: float, n_repeats: int
) -> list[Figure]:
    """The slowest hundredth of good requests and the peak, beside the same alone."""
    pairs = in_turns(
        lambda: _turn_beside(server, requests, s, N_SENDERS),
        lambda: _turn_beside(server, requests, s, 0),
        n_repeats,
    )
    return beside_figures_of(name, pairs)


def beside_figures_of(name: str, pairs: list[tuple[Beside, Beside]]) -> list[Figure]:
    """Two; void where a good request was refused, or an attack was not."""
    faults = []
    for turn in (turn for pair in pairs for turn in pair):
        if turn.load.n_refused or not turn.load.n_answered:
            faults.append(f"{turn.load.n_refused:,} good requests were refused")
        if taken := {k: n for k, n in turn.refused.items() if k[:1] not in "045"}:
            faults.append(f"answers to the others were {taken}")
    if not all(sum(beside.refused.values()) for beside, _ in pairs):
        faults.append("nothing was sent beside")

    def figure(
        what: str, unit: str, of: Callable[[Beside], float], bounds: Bounds
    ) -> Figure:
        return paired_figure(
            f"{name}, beside {N_SENDERS} attackers: {what}",
            unit,
            [(of(beside), of(alone)) for beside, alone in pairs],
            bounds,
            less_is_better=True,
            faults=faults,
        )

    return [
        figure(
            f"slowest 1 % of {N_GOOD} clients",
            "ms",
            lambda turn: 1e3 * turn.load.p99_s,
            (100.0, 400.0),
        ),
        figure("peak of the server", "MiB", lambda turn: turn.peak_mib, (150.0, 200.0)),
    ]


def _turn_beside(server: "Running", requests: Path, s: float, n_senders: int) -> Beside:
    Path(f"/proc/{server.pid}/clear_refs").write_text("5")  # the peak begins anew
    refused: dict[str, int] = {}
    if not n_senders:
        found = load(server.port, requests, N_GOOD, s, PAUSE_S)
    else:
        with begun(server.port, n_senders, s + 2 * SETTLE_S) as senders:
            found = load(server.port, requests, N_GOOD, s, PAUSE_S)
            refused = json.loads(senders.communicate()[0])
    return Beside(found, peak_mib(server.pid), refused)


def _turn(server: "Running", requests: Path, s: float) -> Turn:
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


class Running(NamedTuple):
    """A server that is ready."""

    port: int
    pid: int


@contextlib.contextmanager
def _server(path: str, port: int, module: str, *words: object) -> Iterator[Running]:
    """A server as a process, from when it answers at a path."""
    process = subprocess.Popen(  # noqa: S603  our own command
        own_python(module, *words),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(process, port, path)
        yield Running(port, process.pid)
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
