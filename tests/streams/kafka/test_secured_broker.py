"""The pipeline on a broker that asks for a password or a certificate over TLS."""

import gc
import http.client
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import trustme

from deploy.process import ServerFailed, free_port
from producers.event_producer import EventProducer
from producers.topic_admin import KafkaAway, TopicAdmin
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.settings import Settings, load_settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import CLICKS, INTERACTIONS, QUERIES, dead_letters
from streams.topology import topics_of
from streams.worker_roles import ROLES
from tests.listening import beyond_loopback, listening
from tests.redis_user import redis_user
from tests.services import RedisService, ServiceMissing, without
from tests.streams.kafka.secured import SecuredBroker, secured_broker
from tests.worker_process import running, waited_until

pytestmark = pytest.mark.broker

CANARY = "canary"
"""In every password of these tests."""

REDIS_PASSWORD, GUESS = f"{CANARY}-of-redis", f"{CANARY}-of-a-guess"


@pytest.fixture(autouse=True)
def refused_connections() -> Iterator[None]:
    """Kafka's client leaves sockets open that nobody shook hands with."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """The broker and the authority that signs its certificates."""
    try:
        with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
            yield broker
    except ServerFailed as error:
        without(ServiceMissing(f"no Kafka: {error}"), os.environ)


def written(folder: Path, kafka: str, more: str = "") -> Path:
    """A settings file."""
    path = folder / "shop.toml"
    path.write_text(f"{more}\n{kafka}")
    return path


def send(settings: Settings) -> None:
    """A list, a click on it, what is no event, and the end."""
    shown = {
        "impression_id": "i1",
        "query_id": "q",
        "at_ms": 1_700_000_000_000,
        "model": "m",
        "policy": "deterministic",
        "candidates": ["a", "b"],
        "shown": ["b", "a"],
    }
    click = {"impression_id": "i1", "query_id": "q", "at_ms": 1_700_000_000_001}
    with EventProducer(settings) as producer:
        producer.send(QUERIES, json.dumps(shown).encode())
        producer.send(CLICKS, json.dumps(click | {"position": 2}).encode())
        producer.send_raw(QUERIES, b"no event")
        producer.end()


def pages(settings: Settings) -> str:
    """What the pages of all roles say."""
    said = ""
    for role in (each for each in ROLES.values() if each.is_needed(settings)):
        port = settings.metrics.port + role.metrics_port
        for path in ("/metrics", "/livez", "/readyz"):
            at = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            at.request("GET", path)
            answer = at.getresponse()
            said += f"{answer.getheaders()} {answer.read().decode()}"
            at.close()
    return said


def titles(pid: int) -> str:
    """What others on the machine see of the processes."""
    process = psutil.Process(pid)
    each = (process, *process.children(recursive=True))
    return " ".join(f"{one.name()} {one.cmdline()}" for one in each)


@pytest.mark.parametrize("identity", ["by_password", "by_certificate"])
def test_a_click_finds_its_list_over_tls(
    identity: str, secured: SecuredBroker, redis_server: RedisService, tmp_path: Path
) -> None:
    """Topics, worker, producer and reader all say who they are, and nobody else hears.

    No secret is in the log, on a page, in a title or in a dead letter. Nothing but
    loopback is listened at.
    """
    name = f"shop-{identity.replace('_', '-')}"
    (tmp_path / "redis").write_text(REDIS_PASSWORD)
    config = written(
        tmp_path,
        getattr(secured, identity)(tmp_path),
        f'namespace = "{name}"\n[redis]\nurl = "{redis_server.url}"\n'
        f'username = "{name}"\npassword_file = "{tmp_path / "redis"}"\n'
        f"[metrics]\nport = {free_port(len(ROLES))}\n[models.m]\nfeatures = 1\n",
    )
    settings = load_settings(config)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    assert admin.problems() == []
    admin.close()
    with (
        redis_user(redis_server.url, name, REDIS_PASSWORD, name),
        running(config, tmp_path / "worker.log") as worker,
    ):
        send(settings)
        waited_until(lambda: any(read_records(settings, INTERACTIONS)), worker.log)
        let_in = '"role": "publish", "ready": true'  # by Redis too
        waited_until(lambda: let_in in pages(settings), worker.log)
        pid = worker.process.pid
        assert listening(pid) == {"127.0.0.1"}
        assert beyond_loopback(pid) == set()
        told = pages(settings) + titles(pid)
        assert worker.stop()[0] == 0
        told += worker.said()
    (record,) = read_records(settings, INTERACTIONS)
    (found,) = decode_interaction_record(record.value or b"").interactions
    assert found.impression.impression_id == "i1"
    assert [mark.position for mark in found.clicks] == [2]
    (letter,) = read_records(settings, dead_letters(QUERIES))
    assert letter.value == b"no event"
    assert CANARY not in told + str(letter)


def spoilt(case: str, secured: SecuredBroker, folder: Path) -> str:
    """Settings of who must not be let in, or must not believe the broker."""
    others = trustme.CA()
    others.cert_pem.write_to_path(str(folder / "others.pem"))
    if case.startswith("wrong password"):
        mechanism = case.rpartition(" ")[2]
        kafka = secured.by_password(folder, sasl_mechanism=mechanism)
        (folder / "password").write_text(GUESS)
        return kafka
    return {
        "another authority": secured.by_password(
            folder, ca_file=str(folder / "others.pem")
        ),
        "no certificate": secured.by_nothing("mutual"),
        "certificate of others": secured.by_certificate(folder, others),
        "expired": secured.by_nothing("expired"),
        "another name": secured.by_nothing("elsewhere"),
    }[case]


@pytest.mark.parametrize(
    "case",
    [
        "wrong password, PLAIN", "wrong password, SCRAM-SHA-512", "another authority",
        "no certificate", "certificate of others", "expired", "another name",
    ],
)  # fmt: skip
def test_who_is_not_who_it_must_be_is_not_let_in(
    case: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    """On either side; the refusal says where, and no secret."""
    settings = load_settings(written(tmp_path, spoilt(case, secured, tmp_path)))
    with pytest.raises(KafkaAway) as away:
        TopicAdmin(settings, topics_of(settings.kafka), timeout_ms=3_000)
    assert settings.kafka.bootstrap in str(away.value)
    assert CANARY not in f"{away.value} {away.value!r} {away.value.__cause__!r}"


def test_a_worker_with_a_wrong_password_waits_and_does_not_say_it(
    secured: SecuredBroker, redis_server: RedisService, tmp_path: Path
) -> None:
    """As for a broker that is away: it may be let in later."""
    kafka = spoilt("wrong password, SCRAM-SHA-512", secured, tmp_path)
    config = written(tmp_path, kafka, f'[redis]\nurl = "{redis_server.url}"\n')
    with running(config, tmp_path / "worker.log", "--role", "fold") as worker:
        waited_until(lambda: "event=waiting" in worker.said(), worker.log)
        assert worker.stop()[0] == 0
        said = worker.said()
    assert (
        f"reason=Kafka must answer at {load_settings(config).kafka.bootstrap}" in said
    )
    assert CANARY not in said
    assert "Traceback" not in said


def test_a_stranger_is_told_where_and_nothing_else(
    secured: SecuredBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By a command, which ends with 2."""
    kafka = secured.by_certificate(tmp_path)
    (tmp_path / "key-password").write_text(GUESS)
    config = written(tmp_path, kafka)
    assert main(["topics", "check", "--config", str(config)]) == 2
    said = capsys.readouterr()
    assert "own.key" in said.err
    assert CANARY not in said.out + said.err
