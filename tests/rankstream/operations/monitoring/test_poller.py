"""What the monitor says while a real broker and a real Redis come and go."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from deploy.process import free_port
from producers.event_producer import send_records
from rankstream.operations.cli import main
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.settings import Settings, load_settings
from rankstream.wire.topics import CLICKS, EVALUATIONS, QUERIES, STATISTICS
from streams.worker_roles import ROLES
from tests import monitored
from tests.rankstream.operations.monitoring.test_who_can_reach_pages import started
from tests.services import KafkaService, RedisService
from tests.tcp_gate import Gate
from tests.worker_process import PATIENCE_S, configured, written_settings


@contextmanager
def polled(settings: Settings) -> Iterator[Gathered]:
    """A monitor that is watching."""
    gathered = Gathered(settings.schedules)
    poller = Poller(settings, gathered)
    poller.start()
    try:
        yield gathered
    finally:
        poller.close()


def until(is_so: Callable[[], bool], gathered: Gathered) -> None:
    """Wait for something; what the monitor knows where it does not come."""
    deadline = time.monotonic() + PATIENCE_S
    while not is_so():
        assert time.monotonic() < deadline, gathered.overview()
        time.sleep(0.1)


def away(gathered: Gathered) -> list[str]:
    """Names of what does not answer."""
    return [x["name"] for x in gathered.overview()["parts"] if x["away_ms"]]


def heard(gathered: Gathered) -> list[str]:
    """Names of what answers."""
    return [x["name"] for x in gathered.overview()["parts"] if not x["away_ms"]]


def done(gathered: Gathered) -> list[bool]:
    """Which steps are done."""
    return [each["is_done"] for each in gathered.overview()["steps"]]


def is_done(gathered: Gathered, wanted: list[bool]) -> bool:
    """Whether just these are."""
    return done(gathered) == wanted


def test_steps_tick_off_as_topics_fill(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Before there are topics it says how to make them, and that Kafka answers."""
    config = written_settings(tmp_path, kafka.bootstrap, redis_server.url, namespace)
    settings = load_settings(config)
    with polled(settings) as gathered:
        until(lambda: "topics create" in gathered.overview()["trouble"], gathered)
        assert done(gathered) == [False] * 5
        assert "Kafka" not in away(gathered)
        configured(tmp_path, kafka.bootstrap, redis_server.url, namespace)
        until(lambda: done(gathered) == [True] + [False] * 4, gathered)
        until(lambda: "topics create" not in gathered.overview()["trouble"], gathered)
        for n, topic in enumerate((QUERIES, CLICKS, STATISTICS), 2):
            send_records(settings, topic, [(b"k", b"{}")])
            until(partial(is_done, gathered, [i < n for i in range(5)]), gathered)
        verdict = monitored.record_at(500)
        send_records(settings, EVALUATIONS, [(b"search-box", verdict)])
        until(lambda: done(gathered) == [True] * 5, gathered)
        until(lambda: bool(gathered.overview()["experiments"]), gathered)


def test_a_broker_and_a_redis_that_go_are_told_apart(
    breakable_kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
) -> None:
    """Each by itself, and the other is asked on; what was known stays."""
    bootstrap, broker = breakable_kafka.bootstrap, breakable_kafka.broker
    assert broker is not None
    with Gate(redis_server.port) as link:
        url = f"redis://127.0.0.1:{link.port}/0"
        settings = load_settings(configured(tmp_path, bootstrap, url, namespace))
        verdict = monitored.record_at(500)
        send_records(settings, EVALUATIONS, [(b"search-box", verdict)])
        with polled(settings) as gathered:
            until(lambda: bool(gathered.overview()["experiments"]), gathered)
            until(lambda: away(gathered) == [], gathered)
            link.lead_to(None)
            link.cut()
            until(lambda: away(gathered) == ["Redis"], gathered)
            broker.kill()
            until(lambda: set(away(gathered)) == {"Redis", "Kafka"}, gathered)
            link.lead_to(redis_server.port)
            until(lambda: away(gathered) == ["Kafka"], gathered)
            (told,) = gathered.overview()["away"]
            assert told["heard_ms"] <= told["since_ms"]
            assert [x["name"] for x in gathered.overview()["experiments"]] == [
                "search-box"
            ]
            broker.start()
            until(lambda: away(gathered) == [], gathered)


@pytest.mark.parametrize("words", [["--json"], ["--once"]])
def test_one_look_where_nothing_answers_ends_with_1(
    words: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """And says of each part that it is away."""
    monkeypatch.setenv("COLUMNS", "200")
    config = tmp_path / "shop.toml"
    config.write_text(
        f'[kafka]\nbootstrap = "127.0.0.1:{free_port()}"\n'
        f'[redis]\nurl = "redis://127.0.0.1:{free_port()}/0"\n'
        f"[metrics]\nport = {free_port(len(ROLES))}\n[models.m]\nfeatures = 2\n"
    )
    assert main(["monitor", *words, "--config", str(config)]) == 1
    said = capsys.readouterr().out
    for name in ("Kafka is away since", "Redis is away since", "roles ingest, fold, "):
        assert name in said
    if words == ["--json"]:
        found = json.loads(said)
        assert found["experiment"] is None
        assert [each["is_done"] for each in found["steps"]] == [False] * 5


def test_a_page_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In one line, before anything is asked."""
    monkeypatch.setitem(sys.modules, "starlette.applications", None)
    monkeypatch.delitem(
        sys.modules, "rankstream.operations.monitoring.web", raising=False
    )
    monkeypatch.setenv("RANKSTREAM_KAFKA__BOOTSTRAP", f"127.0.0.1:{free_port()}")
    assert main(["monitor", "--web", "--port", "0"]) != 0
    assert "pip install 'rankstream[serve]'" in capsys.readouterr().err


def test_a_worker_that_was_stopped_is_away_and_its_flow_is_gone(
    redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Since its page fell silent; roles that never came have never been heard of."""
    nowhere, port = f"127.0.0.1:{free_port()}", free_port(len(ROLES))
    more = f"[metrics]\nport = {port}\n[models.m]\nfeatures = 2\n"
    config = written_settings(tmp_path, nowhere, redis_server.url, namespace, more)
    words = ("worker", "--child", "publish", "--config", str(config))
    with polled(load_settings(config)) as gathered:
        with started(*words):
            until(lambda: "role publish" in heard(gathered), gathered)
            flows = [each["role"] for each in gathered.overview()["flow"]]
            assert flows == ["publish"]
        until(lambda: "role publish" in away(gathered), gathered)
        assert gathered.overview()["flow"] == []
        told = [each["words"] for each in gathered.overview()["away"]]
        assert any(each.startswith("roles ingest, fold, ") for each in told)
        assert any(each.startswith("role publish is away since") for each in told)


def test_an_empty_redis_is_told_from_one_that_is_away(
    redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """It answers, and holds no snapshot of the models that there are."""
    nowhere = f"127.0.0.1:{free_port()}"
    model = "[models.m]\nfeatures = 2\n"
    config = written_settings(tmp_path, nowhere, redis_server.url, namespace, model)
    with polled(load_settings(config)) as gathered:
        until(lambda: "no snapshot" in gathered.overview()["trouble"], gathered)
        assert "Redis" not in away(gathered)
