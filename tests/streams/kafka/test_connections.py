"""Connections to Kafka and to Redis are cut, slow, or dead without a word."""

import asyncio
import contextlib
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from deploy.broker import Broker
from rankstream.ranker import Ranker
from rankstream.snapshots import store_of
from tests.gated_broker import gated_broker
from tests.live_lists import LiveLists, applied, assert_all_applied, joined, soon
from tests.services import RedisService
from tests.streams.roles.test_publisher import produce, publishing, until
from tests.tcp_gate import Gate, watched
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

pytestmark = pytest.mark.broker

ROLES = ("--role", "ingest", "--role", "fold")
SILENT_S = 12.0
"""Longer than a session, and than a transaction may take."""

SHORT = "[delivery]\ntransaction_timeout_ms = 10000\n"
"""Of the section that `soon` begins with."""


def is_cut_again_and_again(gate: Gate) -> None:
    """In the midst of whatever is under way."""
    n_cut = 0
    for _ in range(20):
        n_cut += gate.cut()
        time.sleep(0.3)
    assert n_cut


def is_half_closed_again_and_again(gate: Gate) -> None:
    """Clients are told that nothing more comes; the server still listens."""
    n_closed = 0
    for _ in range(10):
        n_closed += gate.half_close()
        time.sleep(0.5)
    assert n_closed


def is_slow(gate: Gate) -> None:
    """Half a second each way."""
    gate.flow(0.5)
    time.sleep(SILENT_S)
    gate.flow()


def is_silent_for_a_while(gate: Gate) -> None:
    """Then everything comes that was held back, when nobody expects it any more."""
    gate.stall()
    time.sleep(SILENT_S)
    gate.flow()


def is_lost_without_a_word(gate: Gate) -> None:
    """Each connection for good; new ones work."""
    assert gate.lose()


FAULTS = (
    is_cut_again_and_again,
    is_half_closed_again_and_again,
    is_slow,
    is_silent_for_a_while,
    is_lost_without_a_word,
)


@contextlib.contextmanager
def told(strike: Callable[[Gate], None]) -> Iterator[None]:
    """What fails names the fault."""
    try:
        yield
    except AssertionError as error:
        raise AssertionError(f"{strike.__name__}: {error}") from error


@pytest.fixture(scope="module")
def gate() -> Iterator[Gate]:
    """Between the worker and its broker."""
    with Gate(None) as made:
        yield made


@pytest.fixture(scope="module")
def broker(gate: Gate, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Senders and the test reach it directly."""
    made = gated_broker(tmp_path_factory.mktemp("kafka"), gate)
    try:
        made.start()
        yield made
    finally:
        made.kill()


def gated(config: Path, gate: Gate, to_redis: str) -> Path:
    """The same settings for who reaches the broker through the gate."""
    found = re.sub(
        r'bootstrap = "\S+"', f'bootstrap = "127.0.0.1:{gate.port}"', config.read_text()
    )
    through = config.with_name("gated.toml")
    through.write_text(re.sub(r'url = "\S+"', f'url = "{to_redis}"', found))
    return through


def test_nothing_is_lost_whatever_becomes_of_a_workers_connections(
    gate: Gate, broker: Broker, redis_server: RedisService, tmp_path: Path
) -> None:
    """Nor double; it goes on by itself, whichever process ends meanwhile."""
    log, more = tmp_path / "worker.log", soon().replace("[delivery]\n", SHORT)
    config = configured(tmp_path, broker.bootstrap, redis_server.url, "cut", more)
    settings, through = settings_of(config), gated(config, gate, redis_server.url)
    with running(through, log, *ROLES) as worker, LiveLists(settings) as lists:
        waited_until(lambda: joined(settings) > 200, log)
        for strike in FAULTS:
            with told(strike):
                strike(gate)
                known = lists.n_acknowledged
                waited_until(lambda: joined(settings) >= known + 200, log)  # noqa: B023
        lists.finish()
        everything = 2 * lists.n_lists
        waited_until(lambda: applied(settings) >= everything, log)
        assert worker.stop()[0] == 0
    assert_all_applied(settings, lists)


def test_versions_reach_services_whatever_becomes_of_connections(
    gate: Gate, broker: Broker, redis_server: RedisService, tmp_path: Path
) -> None:
    """The publisher's and the ranker's; it serves all along, and never goes back."""
    config = configured(tmp_path, broker.bootstrap, redis_server.url, "served")
    newest, served = 3, [0]

    def look() -> None:
        served.append(ranker.rank(np.ones((2, 3))).version)
        assert served[-1] >= served[-2]

    async def scenario() -> None:
        nonlocal newest
        async with publishing(through, store):
            await produce(settings_of(config), range(1, newest + 1))
            ranker.follow()
            await until(lambda: ranker.version == newest)
            for strike in FAULTS:
                with watched(look) as raised, told(strike):
                    both = (
                        asyncio.to_thread(strike, each) for each in (gate, to_redis)
                    )
                    await asyncio.gather(*both)
                    newest += 1
                    await produce(settings_of(config), range(newest, newest + 1))
                    await until(lambda: ranker.version == newest, PATIENCE_S)  # noqa: B023
                assert not raised, (strike.__name__, raised)
                look()

    with Gate(redis_server.port) as to_redis:
        url = f"redis://127.0.0.1:{to_redis.port}/0"
        through = settings_of(gated(config, gate, url))
        store, other = store_of(through, retries=0), store_of(through)
        ranker = Ranker("m", store=other)
        try:
            asyncio.run(scenario())
        finally:
            ranker.close()
            other.close()
            store.close()
    assert sorted(set(served) - {0}) == list(range(3, newest + 1))
