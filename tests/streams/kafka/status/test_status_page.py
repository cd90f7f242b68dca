"""The page of a role's process: what it says, asked over HTTP as a probe asks."""

import asyncio
import http.client
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from deploy.process import free_port
from rankstream.settings import MetricsSettings
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.status import role_status, status_page
from streams.kafka.status.role_status import RoleStatus
from streams.kafka.status.status_page import Status, offer_page
from streams.worker_roles import ROLES
from tests.worker_process import PATIENCE_S

SOURCES = [("snapshots", 0), ("experiments", 0)]


class Page:
    """A page that is served, and its status."""

    def __init__(self) -> None:
        self.port = free_port()
        self.status = Status("publish")
        self.server = offer_page(self.status, MetricsSettings(port=self.port))

    def ask(self, path: str, method: str = "GET") -> tuple[int, str]:
        """Status and body of an answer."""
        return asked(self.port, path, method)

    def reasons(self, path: str) -> tuple[int, list[str]]:
        """Status and reasons of an answer."""
        code, body = self.ask(path)
        return code, json.loads(body)["reasons"]


def asked(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    """Status and body of a page's answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture
def page() -> Iterator[Page]:
    """On a free port of the loopback interface."""
    page = Page()
    assert page.server is not None
    yield page
    page.server.shutdown()
    page.server.server_close()


def in_loop(work: Callable[[], Any], status: Status, *troubles: str) -> Any:
    """Do it in a thread while an event loop leaves word."""

    async def body() -> Any:
        beating = asyncio.create_task(status.beat(lambda: troubles))
        await asyncio.sleep(0)
        done = await asyncio.to_thread(work)
        beating.cancel()
        return done

    return asyncio.run(body())


def test_a_start_that_waits_lives_and_is_not_ready(page: Page) -> None:
    """However long Kafka is away; there is no event loop yet."""
    page.status.wait_for("Kafka at k:9092 has not answered yet")
    assert page.reasons("/livez") == (200, [])
    code, reasons = page.reasons("/readyz")
    assert (code, reasons) == (503, ["Kafka at k:9092 has not answered yet"])


def test_troubles_make_it_unready_and_no_less_alive(page: Page) -> None:
    """Starting it again would bring no server back."""
    work = lambda: (page.reasons("/livez"), page.reasons("/readyz"))  # noqa: E731
    away = "Redis at r:6379 does not answer"
    assert in_loop(work, page.status, away) == ((200, []), (503, [away]))
    assert in_loop(work, page.status) == ((200, []), (200, []))
    assert json.loads(page.ask("/readyz")[1])["role"] == "publish"


def test_a_loop_that_does_not_turn_is_not_alive(
    page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it said before."""
    assert in_loop(lambda: page.ask("/livez")[0], page.status) == 200
    monkeypatch.setattr(status_page, "SILENT_S", 0.0)
    for path in ("/livez", "/readyz"):
        code, reasons = page.reasons(path)
        assert code == 503
        assert reasons[0].startswith("its event loop has not turned for")


def test_other_paths_and_methods_are_refused(page: Page) -> None:
    """Nothing can be written."""
    assert page.ask("/")[0] == 404
    assert page.ask("/../etc/passwd")[0] == 404
    assert page.ask("/readyz", "POST")[0] == 405
    assert page.ask("/metrics", "DELETE")[0] == 405
    assert page.ask("/livez", "HEAD") == (200, "")


def test_a_taken_port_stops_nothing(page: Page) -> None:
    """The role works on without a page; without a port there is none."""
    assert offer_page(Status("fold"), MetricsSettings(port=page.port)) is None
    assert offer_page(Status("fold"), MetricsSettings()) is None
    assert page.ask("/livez")[0] == 200


def test_a_role_counts_and_says_how_far_it_is(page: Page) -> None:
    """Counters, lag, whether it has caught up, and the age of what it wrote last."""
    fares = RoleStatus("publish", SOURCES)
    page.status.registry.register(fares)
    batch = CommittedBatch([], at_end=False, is_first=True, n_behind=7)
    fares.take(SOURCES[0], batch)
    fares.take(SOURCES[1], CommittedBatch([], at_end=True))
    assert list(fares.troubles()) == ["snapshots[0] is not read to its end yet"]
    said = page.ask("/metrics")[1]
    lag = 'source_lag_records{partition="0",role="publish",topic="snapshots"}'
    assert f"rankstream_{lag} 7.0" in said
    assert 'rankstream_caught_up{role="publish"} 0.0' in said
    assert "last_written" not in said

    fares.take(SOURCES[0], CommittedBatch([], at_end=True))
    fares.count({"snapshots_published": 3}, time.monotonic() - 100)
    assert list(fares.troubles()) == []
    said = page.ask("/metrics")[1]
    assert f"rankstream_{lag} 0.0" in said
    assert 'rankstream_caught_up{role="publish"} 1.0' in said
    assert 'rankstream_snapshots_published_total{role="publish"} 3.0' in said
    age = said.partition('last_written_age_seconds{role="publish"} ')[2]
    assert 100 <= float(age.split()[0]) < 200


def test_a_silent_broker_and_what_is_away_are_troubles(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Until they answer."""
    fares = RoleStatus("publish", SOURCES[:1])
    fares.take(SOURCES[0], CommittedBatch([], at_end=True))
    fares.away = "Redis at r:6379 does not answer: refused"
    assert list(fares.troubles()) == [fares.away]
    fares.away = ""
    monkeypatch.setattr(role_status, "UNHEARD_S", -1.0)
    (said,) = fares.troubles()
    assert said.startswith("snapshots[0]: the broker has said nothing for")


@pytest.mark.parametrize("role", ROLES)
def test_every_role_has_a_page_before_kafka_is_there(role: str, tmp_path: Path) -> None:
    """At its own port, and it lives."""
    port, nowhere = free_port(len(ROLES)), "127.0.0.1:1"
    config = tmp_path / "rankstream.toml"
    config.write_text(
        f'[kafka]\nbootstrap = "{nowhere}"\n[metrics]\nport = {port}\n'
        "[models.m]\nfeatures = 2\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "rankstream", "worker", "--config", str(config),
         "--child", role],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
        env=os.environ | {"PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    assert process.stdout is not None
    guard = threading.Timer(PATIENCE_S, process.kill)
    guard.start()
    try:
        next(line for line in process.stdout if "event=waiting" in line)
        own = port + ROLES[role].metrics_port
        assert asked(own, "/livez")[0] == 200
        code, body = asked(own, "/readyz")
        assert code == 503
        assert json.loads(body) == {
            "role": role,
            "ready": False,
            "reasons": [f"Kafka at {nowhere} has not answered yet"],
        }
        code, body = asked(own, "/metrics")
        assert code == 200
        assert f'rankstream_ready{{role="{role}"}} 0.0' in body
    finally:
        guard.cancel()
        process.kill()
        process.communicate()
