"""The pipeline on a broker that asks for a password or a certificate over TLS."""

import contextlib
import http.client
import re
import time
from pathlib import Path

import psutil
import pytest
import trustme

from deploy.process import free_port
from producers.brokers.cluster import KafkaAway
from producers.brokers.topic_admin import TopicAdmin
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.settings import Settings, load_settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import (
    INTERACTIONS,
    QUERIES,
    dead_letters,
)
from streams.topology import topics_of
from streams.worker_roles import ROLES
from tests.listening import beyond_loopback, listening
from tests.redis_user import redis_user
from tests.services import RedisService
from tests.streams.kafka.secured import (
    SESSION_S,
    USER,
    SecuredBroker,
    renew_token,
    send,
    written,
)
from tests.worker_process import running, waited_until

pytestmark = [pytest.mark.broker, pytest.mark.usefixtures("refused_connections")]

CANARY = "canary"
"""In every password of these tests."""

NOW_MS = 1_700_000_000_000

REDIS_PASSWORD, GUESS = f"{CANARY}-of-redis", f"{CANARY}-of-a-guess"


def pages(settings: Settings) -> str:
    """What the pages of all roles say."""
    said = ""
    for role in (each for each in ROLES.values() if each.is_needed(settings)):
        port = settings.metrics.port + role.metrics_port
        for path in ("/metrics", "/livez", "/readyz"):
            at = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
            at.request("GET", path)
            answer = at.getresponse()
            said += f"{answer.getheaders()} {answer.read().decode()}"
            at.close()
    return said


def is_let_in(settings: Settings) -> bool:
    """Whether all roles have a page, and the publisher was let in by Redis too."""
    with contextlib.suppress(OSError):
        return '"role": "publish", "ready": true' in pages(settings)
    return False


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
        waited_until(lambda: is_let_in(settings), worker.log)
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


def test_a_token_is_read_anew_and_one_that_ended_lets_nobody_in(
    secured: SecuredBroker, tmp_path: Path, namespace: str
) -> None:
    """A client that lives on shows the new one; a new client the old one in vain."""
    by_token = secured.by_token(tmp_path)
    settings = load_settings(written(tmp_path, by_token, f'namespace = "{namespace}"'))
    token = tmp_path / "token"
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    admin.close()
    renew_token(token, USER, lasts_s=SESSION_S)
    ended_s = time.time() + SESSION_S
    with EventProducer(settings) as producer:
        producer.send(QUERIES, b"before")
        producer.flush()
        renew_token(token, USER)
        time.sleep(max(0.0, ended_s + 1.0 - time.time()))
        producer.send(QUERIES, b"after")
    assert producer.acknowledged == 2
    renew_token(token, USER, lasts_s=-60.0)
    with pytest.raises(KafkaAway):
        TopicAdmin(settings, topics_of(settings.kafka), timeout_ms=3_000)


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("another authority", "believe its certificate.*correct kafka.ca_file"),
        ("another name", "believe its certificate.*the name in its certificate"),
        ("no certificate", "set kafka.certificate_file and kafka.key_file"),
        ("mechanism", "does not take OAUTHBEARER: correct kafka.sasl_mech|mechanism,"),
        ("token", "correct the token in kafka.oauth_token_file|or credentials"),
        ("plain", "correct kafka.security_protocol"),
        ("TLS", "TLS fails, .*: correct kafka.security_protocol"),
        ("no SASL", "correct kafka.security_protocol"),
        ("wrong password, PLAIN", "correct kafka.*(password|credentials)"),
    ],
)
def test_what_is_wrong_is_named(
    case: str, rule: str, secured: SecuredBroker, tmp_path: Path
) -> None:
    """With the settings to look at: that a broker must be started would mislead.

    Where the broker ends a connection before it says why, all of them are named.
    """
    (tmp_path / "guess").write_text(GUESS)
    plain = {"bootstrap": secured.broker.bootstrap}
    bare = {"security_protocol": "SASL_PLAINTEXT", "ca_file": ""}
    made = {
        "mechanism": lambda: secured.by_password(
            tmp_path,
            sasl_mechanism="OAUTHBEARER",
            oauth_token_file=str(tmp_path / "guess"),
        ),
        "token": lambda: secured.by_token(
            tmp_path, oauth_token_file=str(tmp_path / "guess")
        ),
        "plain": lambda: secured.by_nothing(
            "secured", security_protocol="PLAINTEXT", ca_file=""
        ),
        "TLS": lambda: secured.by_nothing("mutual", **plain),
        "no SASL": lambda: secured.by_password(tmp_path, **plain, **bare),
    }
    kafka = made[case]() if case in made else spoilt(case, secured, tmp_path)
    settings = load_settings(written(tmp_path, kafka))
    # A busy broker may say it later than a client that is in a hurry gives up.
    for timeout_ms in (3_000, 30_000):
        with pytest.raises(KafkaAway) as away:
            TopicAdmin(settings, topics_of(settings.kafka), timeout_ms=timeout_ms)
        if re.search(rule, str(away.value)):
            break
    assert re.search(rule, str(away.value))
    assert CANARY not in str(away.value)
