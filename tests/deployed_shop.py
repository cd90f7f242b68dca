"""A shop whose versions are deployed one by one: a worker, and who ranks for it."""

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from producers.event_producer import EventProducer
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.snapshots import SnapshotStore
from tests.clicked_lists import Shown, show
from tests.rankstream.lab.commands.test_simulate_on_kafka import n_counted
from tests.services import KafkaService, RedisService
from tests.snapshot_factory import envelope
from tests.worker_process import (
    PATIENCE_S,
    WorkerProcess,
    configured,
    running,
    settings_of,
)

SETTINGS = """
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
state_s = 1.0
"""
"""Windows that close soon, whatever the clock says."""

COUNTING = ("ingest", "fold", "learn", "publish")


@dataclass(frozen=True)
class DeployedShop:
    """Where it is set up, who ranks for it, who shows lists, and who counts them."""

    config: Path
    store: SnapshotStore
    ranker: Ranker
    producer: EventProducer
    worker: WorkerProcess

    @property
    def folder(self) -> Path:
        """Where its files lie."""
        return self.config.parent

    def run(self, *words: str) -> int:
        """A verb of `rankstream snapshots`."""
        return self.command("snapshots", *words)

    def command(self, *words: str) -> int:
        """A command."""
        return main([*words, "--config", str(self.config)])

    def past(
        self, capsys: pytest.CaptureFixture[str], model: str = "search"
    ) -> list[dict[str, Any]]:
        """The history of a model, whose numbers have no gap."""
        capsys.readouterr()
        assert self.run("history", model, "--json") == 0
        rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        assert [row["number"] for row in rows] == [*range(1, len(rows) + 1)]
        return rows

    def count(self, n_lists: int, n_queries: int) -> None:
        """Show so many lists of what is served, the last ones, and count them."""
        begin = Shown(0, int(time.time() * 1_000) - 120_000)
        show(self.producer, self.ranker, begin, n_lists, n_queries=n_queries)
        self.producer.end()
        assert n_counted(self.config, at_least=n_lists) == n_lists

    def publish(self, model: str, **fields: Any) -> None:
        """Have a version of another model in Redis."""
        self.store.publish(envelope(model=model, **fields))


@contextlib.contextmanager
def deployed_shop(
    folder: Path,
    kafka: KafkaService,
    redis_server: RedisService,
    own: str,
    *,
    roles: tuple[str, ...] = COUNTING,
    feature_names: list[str] | None = None,
) -> Iterator[DeployedShop]:
    """One whose first version of `search` is served; `own` are settings of models."""
    name = f"shop-{time.time_ns()}"
    text = SETTINGS + own
    config = configured(folder, kafka.bootstrap, redis_server.url, name, text)
    store = SnapshotStore(redis_server.url, namespace=name)
    ranker = Ranker("search", store=store, feature_names=feature_names)
    words = [word for role in roles for word in ("--role", role)]
    with running(config, folder / "worker.log", *words) as worker:
        assert ranker.wait(PATIENCE_S), worker.said()[-3_000:]
        with EventProducer(settings_of(config)) as producer:
            yield DeployedShop(config, store, ranker, producer, worker)
    store.close()
