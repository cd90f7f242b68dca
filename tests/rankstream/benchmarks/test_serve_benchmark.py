"""What the figures of the server count; none of their times is looked at."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
import uvicorn

from deploy.process import free_port
from rankstream.benchmarks import serve_bare
from rankstream.benchmarks.http_load import Load, load
from rankstream.benchmarks.serve import TOGETHER, figures_of, works
from rankstream.ranker import Ranker
from rankstream.sections import ModelSettings
from rankstream.wire.topics import CLICKS, QUERIES
from tests.served import Served, served, settings_of, until
from tests.snapshot_factory import envelope


@pytest.fixture(scope="module")
def ours() -> Iterator[Served]:
    """A server with the model of the workload."""
    settings = msgspec.structs.replace(
        settings_of(), models={"model": ModelSettings(features=136)}
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
    arrived = len(ours.events(work.topic)) - before
    assert arrived == found.n_answered * work.n_events
    assert work.topic == (CLICKS if number else QUERIES)
    assert work.n_events == (TOGETHER if number == 2 else 1)


def test_the_rival_takes_the_same_bodies(tmp_path: Path) -> None:
    """And answers all of them."""
    port = free_port()
    config = uvicorn.Config(
        serve_bare.application(), port=port, log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
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
        thread.join(timeout=20)


def test_a_figure_is_void_where_the_broker_has_something_else() -> None:
    """Or where a request was refused."""
    work = works()[1]
    pairs = [(Load(30.0, 0.02, 90, 0), Load(100.0, 0.01, 300, 0))]
    rate, slow = figures_of(work, pairs, 90)
    assert rate["ratio"] == pytest.approx(0.3)
    assert np.isclose(slow["value"], 20.0)
    assert figures_of(work, pairs, 89)[0]["ratio"] is None
    refused = [(Load(30.0, 0.02, 90, 1), Load(100.0, 0.01, 300, 0))]
    assert figures_of(work, refused, 90)[0]["faults"]
