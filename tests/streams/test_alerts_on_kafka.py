"""Alerts of a real Prometheus that reads a real worker, in incidents of its own making.

Windows and waits are those of the rules, made short: a quarter of an hour is 12 s.
"""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
from kafka import KafkaAdminClient, KafkaProducer

from deploy.process import free_port
from deploy.redis_server import Redis
from docs.alerting.files import ROWS, rules
from docs.alerting.table import Row
from producers.brokers.connection import client_options
from producers.event_producer import EventProducer
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore
from rankstream.wire.topics import QUERIES
from streams.worker_roles import ROLES
from tests.clicked_lists import N_FEATURES, TASTE, Shown, show
from tests.prometheus import Prometheus
from tests.services import KafkaService
from tests.snapshot_factory import envelope
from tests.worker_process import (
    PATIENCE_S,
    WorkerProcess,
    configured,
    running,
    settings_of,
)

HELD_S = 30
"""So long a click of the other system waits for its list: a third of the disorder.

Meanwhile lag and late lists must fire, and the dead letters that clicks become not."""

SETTINGS = f"""
[metrics]
port = {{port}}
[time]
click_window_ms = 1_000
disorder_ms = {HELD_S * 3_000}
idle_ms = 600_000
[delivery]
state_s = 1.0
[models.search]
features = {N_FEATURES}
versions = "promoted"
[models.search.canary]
shares = [0.25, 0.5]
planned = 4_000
least = 100
margin = 0.1
guardrails = ["without click"]
[models.online]
features = {N_FEATURES}
[models.trained]
features = {N_FEATURES}
versions = "trained"
[train]
value_every_s = 0
[serve]
port = {{serve}}
[sources.ubi]
topic = "{{source}}"
format = "ubi"
"""

STEP_MS = 200

MOST_LISTS = 12_000
"""More would come from the future; what they lead to is waited for."""

INCIDENTS = {
    "RankstreamLag",
    "RankstreamLateEvents",
    "RankstreamDeadLetters",
    "RankstreamRedisAway",
    "RankstreamNotReady",
    "RankstreamTrainerRefused",
    "RankstreamGuardrail",
}


WITHOUT = {
    "Rewrites of decisions that were refused",
    "Lists of experiments",
    "Preferences, with their intervals",
    "Health of experiments: 2 is an alarm",
    "1 where Prometheus reads no page",
    "Roles that no page tells of any more",
}
"""Panels of what this shop has none of: rules, experiments, and what is gone."""

PERHAPS = "Share of answers above 499"
"""It has a line if the server was asked before it was ready, and said so."""


def short(seconds: float) -> float:
    """A window, a wait or a limit, for a test."""
    return min(12.0, seconds / 60.0)


class Watched(NamedTuple):
    """A shop whose worker is watched."""

    config: Path
    settings: Settings
    source: str
    worker: WorkerProcess
    redis: Redis
    store: SnapshotStore
    producer: EventProducer
    prometheus: Prometheus

    def until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        ends_s = time.monotonic() + PATIENCE_S
        while not is_so():
            assert time.monotonic() < ends_s, self.worker.said()[-3_000:]
            time.sleep(0.2)

    def fires(self, *names: str) -> None:
        """Wait until each of these alerts has fired."""
        self.until(lambda: self.prometheus.fired() >= {*names})

    def is_over(self, *names: str) -> None:
        """Wait until alerts no longer fire."""
        self.until(lambda: self.prometheus.alerts().isdisjoint(names))

    def never(self, *names: str) -> None:
        """None of these has fired."""
        assert self.prometheus.fired().isdisjoint(names), self.prometheus.fired()


def queried(row: Row) -> str:
    """As a dashboard asks for the worker's job."""
    return row.query('job=~"rankstream.*", ', short)


def is_ready(port: int) -> bool:
    """Whether a page says that its process does its work."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz") as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


@contextmanager
def serving(config: Path, log: Path) -> Iterator[None]:
    """A server as users start it, which is gone afterwards."""
    command = [sys.executable, "-m", "rankstream", "serve", "--config", str(config)]
    with log.open("wb") as file, subprocess.Popen(command, stderr=file) as server:
        try:
            yield
        finally:
            server.kill()


@pytest.fixture
def watched(kafka: KafkaService, namespace: str, tmp_path: Path) -> Iterator[Watched]:
    """A worker of all roles that does its work, and who watches it."""
    (tmp_path / "redis").mkdir()
    redis = Redis(tmp_path / "redis")
    redis.start()
    port, serve = free_port(len(ROLES)), free_port()
    source = f"{namespace}-ubi"
    more = SETTINGS.format(port=port, serve=serve, source=source)
    config = configured(tmp_path, kafka.bootstrap, redis.url, namespace, more)
    settings = settings_of(config)
    admin = KafkaAdminClient(**client_options(settings.kafka))
    admin.create_topics({source: {"num_partitions": 1, "replication_factor": 1}})
    admin.close()
    store = SnapshotStore(redis.url, namespace=namespace)
    needed = [role for role in ROLES.values() if role.is_needed(settings)]
    ports = [serve, *(port + role.metrics_port for role in needed)]
    prometheus = Prometheus(tmp_path / "prometheus", ports, rules(short))
    with (
        running(config, tmp_path / "worker.log") as worker,
        serving(config, tmp_path / "serve.log"),
        EventProducer(settings) as producer,
    ):
        watched = Watched(
            config, settings, source, worker, redis, store, producer, prometheus
        )
        try:
            watched.until(lambda: all(map(is_ready, ports)))
            prometheus.start()
            yield watched
        finally:
            prometheus.kill()
            store.close()
            redis.kill()


def test_each_alert_fires_in_its_incident_and_is_over_after_it(
    watched: Watched,
) -> None:
    """And not before; every panel can be drawn."""
    ranker = Ranker("search", store=watched.store)
    assert ranker.wait(PATIENCE_S), watched.worker.said()[-3_000:]
    begun_ms = int(time.time() * 1_000)
    shown = Shown(0, begun_ms - 3_000_000)
    online = Ranker("online", store=watched.store)
    assert online.wait(PATIENCE_S)
    show(watched.producer, online, Shown(10**6, shown.at_ms), 600, step_ms=STEP_MS)
    shown = show(watched.producer, ranker, shown, 600, step_ms=STEP_MS)
    watched.producer.flush()
    applied = "sum(rankstream_applied_impressions_total) > 0"
    watched.until(lambda: bool(watched.prometheus.values(applied)))
    watched.never(*INCIDENTS)

    send_awaiting_clicks(watched, 20)
    send_late_lists(watched, 300, begun_ms - 7_200_000)
    watched.fires("RankstreamLateEvents")
    watched.fires("RankstreamLag")
    watched.never(*INCIDENTS - {"RankstreamLateEvents", "RankstreamLag"})
    # While the clicks are held: they become dead letters later.
    assert main(["intervene", "trained", "--config", str(watched.config)]) == 0
    watched.fires("RankstreamTrainerRefused", "RankstreamDeadLetters")

    watched.never("RankstreamGuardrail")
    take_back_a_canary(watched, ranker, shown)
    watched.fires("RankstreamGuardrail")
    drawn = [row.title for row in ROWS if watched.prometheus.values(queried(row))]
    assert {row.title for row in ROWS} - {*drawn, PERHAPS} == WITHOUT

    watched.never("RankstreamRedisAway", "RankstreamNotReady")
    watched.redis.kill()
    watched.fires("RankstreamRedisAway", "RankstreamNotReady")
    watched.redis.start()
    watched.is_over(*INCIDENTS)
    assert watched.worker.stop()[0] == 0


def send_awaiting_clicks(watched: Watched, n: int) -> None:
    """Documents of the other system: clicks whose list never comes."""
    producer = KafkaProducer(**client_options(watched.settings.kafka))
    for number in range(n):
        document = {
            "action_name": "click",
            "query_id": f"nowhere-{number}",
            "timestamp": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "event_attributes": {"object": {"object_id": "a"}},
        }
        producer.send(watched.source, json.dumps(document).encode())
    producer.flush()
    producer.close()


def send_late_lists(watched: Watched, n: int, at_ms: int) -> None:
    """Lists whose windows were closed long ago."""
    for number in range(n):
        late = {"impression_id": f"late-{number}", "query_id": "q", "shown": ["a"]}
        watched.producer.send(QUERIES, json.dumps(late | {"at_ms": at_ms}).encode())
    watched.producer.flush()


def take_back_a_canary(watched: Watched, ranker: Ranker, shown: Shown) -> None:
    """A version of flipped taste goes out, until it is found to be worse."""
    weights = (-4.0 * TASTE).astype("<f4").tobytes()
    flipped = envelope(
        model="flipped", weights=weights, normalisation="none", version=10_000
    )
    watched.store.publish(flipped)
    words = ["promote", "search", "--canary", "--from", "flipped@0.10000"]
    assert main(["snapshots", *words, "--config", str(watched.config)]) == 0
    watched.until(lambda: ranker.refresh() or bool(ranker.canary))

    def is_taken_back() -> bool:
        nonlocal shown
        if shown.n_lists < MOST_LISTS:
            shown = show(watched.producer, ranker, shown, 600, step_ms=STEP_MS)
            watched.producer.flush()
        time.sleep(1.0)
        ranker.refresh()
        return not ranker.canary

    watched.until(is_taken_back)
