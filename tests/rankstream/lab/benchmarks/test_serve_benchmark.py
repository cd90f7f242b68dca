"""What the figures of the server count; none of their times is looked at."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import uvicorn

from deploy.process import free_port
from rankstream.lab.benchmarks.harness import peak_mib
from rankstream.lab.benchmarks.serve import rival
from rankstream.lab.benchmarks.serve.clients import Load, load
from rankstream.lab.benchmarks.serve.rates import (
    TOGETHER,
    Beside,
    Running,
    Turn,
    beside_figures,
    beside_figures_of,
    figures_of,
    works,
)
from rankstream.operations.serving.application import parts_of
from rankstream.operations.serving.server import configuration
from rankstream.ranker import Ranker
from rankstream.settings import ModelSettings
from rankstream.wire.topics import CLICKS, QUERIES
from tests.served import PATIENCE_S, Served, served, settings_of, until
from tests.snapshot_factory import envelope


@pytest.fixture(scope="module")
def ours() -> Iterator[Served]:
    """A server with the model of the workload."""
    settings = msgspec.structs.replace(
        settings_of(answer_s=PATIENCE_S), models={"model": ModelSettings(features=136)}
    )
    source = envelope(1, model="model", n_features=136)
    with served(
        settings, rankers={"model": Ranker("model", source=lambda: source)}
    ) as s:
        yield s


@pytest.mark.parametrize("number", range(3))
def test_every_answer_is_counted_and_every_event_arrives(
    ours: Served, number: int, tmp_path: Path
) -> None:
    """Rankings, single clicks, and a hundred at once."""
    work = works()[number]
    path = tmp_path / "requests"
    path.write_text("\n".join(each.hex() for each in work.requests))
    before = len(ours.events(work.topic))
    found = load(ours.port, path, 4, 0.3)
    assert found.n_refused == 0
    assert found.n_answered > 0
    assert found.cpu_s > 0.0
    arrived = len(ours.events(work.topic)) - before
    assert arrived == found.n_answered * work.n_events
    assert work.topic == (CLICKS if number else QUERIES)
    assert work.n_events == (TOGETHER if number == 2 else 1)


def test_the_rival_takes_the_same_bodies(tmp_path: Path) -> None:
    """And answers all of them."""
    port = free_port()
    server = uvicorn.Server(rival.configuration(port))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until(lambda: server.started)
    try:
        for work in works():
            path = tmp_path / "requests"
            path.write_text("\n".join(each.hex() for each in work.requests[:8]))
            found = load(port, path, 2, 0.2)
            assert (found.n_refused, found.n_answered > 0) == (0, True)
    finally:
        server.should_exit = True
        thread.join(timeout=300)


def test_the_rival_has_our_options_and_nothing_more() -> None:
    """Or it would pay for what ours leaves out."""
    ours, bare = configuration(parts_of(settings_of())), rival.configuration(1)
    for name in ("loop", "ws", "access_log", "proxy_headers", "server_header",
                 "timeout_keep_alive", "backlog", "date_header"):  # fmt: skip
        assert getattr(ours, name) == getattr(bare, name), name
    bare.load()
    assert bare.loaded_app is rival.application


def test_good_clients_are_measured_beside_attackers(
    ours: Served, tmp_path: Path
) -> None:
    """Every good request is answered, and every attack refused."""
    path = tmp_path / "requests"
    path.write_text("\n".join(each.hex() for each in works()[1].requests))
    slow, peak = beside_figures("click", Running(ours.port, os.getpid()), path, 0.2, 1)
    assert slow["faults"] == peak["faults"] == []
    assert slow["value"] > 0.0
    assert peak["value"] == pytest.approx(peak_mib(os.getpid()), rel=0.5)
    assert (slow["goal"], peak["goal"]) == (100.0, 150.0)


def test_a_figure_beside_attackers_is_void_where_one_succeeds() -> None:
    """Or where a good client was refused, or nobody attacked."""
    good, alone = (
        Load(30.0, 0.02, 90, 0, 0.9),
        Beside(Load(30.0, 0.01, 90, 0, 0), 99, {}),
    )
    slow, peak = beside_figures_of("x", [(Beside(good, 120.0, {"413": 9}), alone)])
    assert (slow["value"], slow["rival"]) == pytest.approx((20.0, 10.0))
    assert (slow["ratio"], slow["faults"]) == (pytest.approx(2.0), [])
    assert (peak["value"], peak["rival"]) == (120.0, 99)
    for turn in (
        Beside(good, 120.0, {"413": 9, "202": 1}),
        Beside(good._replace(n_refused=1), 120.0, {"413": 9}),
        Beside(good, 120.0, {}),
    ):
        assert beside_figures_of("x", [(turn, alone)])[0]["ratio"] is None


def test_a_figure_is_void_where_the_broker_has_something_else() -> None:
    """Or where a request was refused."""
    work = works()[1]
    pairs = [
        (
            Turn(Load(30.0, 0.02, 90, 0, 0.9), 0.36),
            Turn(Load(100.0, 0.01, 300, 0, 3), 0.3),
        )
    ]
    rate, slow, server, clients = figures_of(work, pairs, 90, None)
    assert rate["ratio"] == pytest.approx(0.3)
    assert np.isclose(slow["value"], 20.0)
    assert (server["value"], server["rival"]) == pytest.approx((4_000.0, 1_000.0))
    assert server["ratio"] == pytest.approx(4.0)
    assert (clients["value"], clients["rival"]) == pytest.approx((10_000.0, 10_000.0))
    assert [each["ratio"] for each in figures_of(work, pairs, 89, None)] == [None] * 4
    assert figures_of(work, pairs, 90, 300)[0]["ratio"] is not None
    assert figures_of(work, pairs, 90, 299)[0]["faults"]
    refused = [(pairs[0][0], Turn(Load(100.0, 0.01, 300, 1, 3.0), 0.3))]
    assert figures_of(work, refused, 90, None)[0]["faults"]
