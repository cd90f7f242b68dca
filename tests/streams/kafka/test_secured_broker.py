"""The pipeline on a broker that asks for a password over TLS."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from deploy.broker import Broker
from deploy.process import ServerFailed, free_port
from producers.event_producer import EventProducer
from producers.topic_admin import TopicAdmin
from producers.topic_reader import read_records
from rankstream.settings import Settings, load_settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import CLICKS, INTERACTIONS, QUERIES
from streams.topology import topics_of
from tests.services import RedisService, ServiceMissing, without
from tests.worker_process import running, waited_until

USER, PASSWORD = "shop", "open sesame"
SECURED = """
listeners=PLAINTEXT://127.0.0.1:{{port}},SECURED://127.0.0.1:{secured},\
CONTROLLER://127.0.0.1:{{controller_port}}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},SECURED://127.0.0.1:{secured}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURED:SASL_SSL
ssl.keystore.type=PEM
ssl.keystore.location={keystore}
sasl.enabled.mechanisms=PLAIN
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
"""


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """Who signs the broker's certificate."""
    return trustme.CA()


@pytest.fixture(scope="module")
def secured(ca: trustme.CA, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a broker's secured listener."""
    folder = tmp_path_factory.mktemp("secured")
    own = ca.issue_cert("127.0.0.1")
    key = serialization.load_pem_private_key(
        own.private_key_pem.bytes(), password=None
    ).private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    keystore = folder / "broker.pem"
    keystore.write_bytes(key + b"".join(pem.bytes() for pem in own.cert_chain_pems))
    port = free_port()
    broker = Broker(
        folder,
        more=SECURED.format(
            secured=port, keystore=keystore, user=USER, password=PASSWORD
        ),
    )
    try:
        broker.start()
    except ServerFailed as error:
        without(ServiceMissing(f"no Kafka: {error}"), os.environ)
    yield f"127.0.0.1:{port}"
    broker.kill()


@pytest.fixture
def config(
    secured: str, redis_server: RedisService, ca: trustme.CA, tmp_path: Path
) -> Path:
    """A settings file that names the user and where the password lies."""
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    (tmp_path / "password").write_text(PASSWORD + "\n")
    path = tmp_path / "shop.toml"
    path.write_text(
        f'namespace = "shop"\n[kafka]\nbootstrap = "{secured}"\n'
        f'security_protocol = "SASL_SSL"\nsasl_mechanism = "PLAIN"\n'
        f'username = "{USER}"\npassword_file = "{tmp_path / "password"}"\n'
        f'ca_file = "{tmp_path / "ca.pem"}"\npartitions = 1\n'
        f'[redis]\nurl = "{redis_server.url}"\n[models.m]\nfeatures = 1\n'
    )
    return path


def send(settings: Settings) -> None:
    """A list, a click on it, and the end."""
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
        producer.end()


def test_a_click_finds_its_list_over_tls_with_a_password(
    config: Path, tmp_path: Path
) -> None:
    """Topics, worker, producer and reader all say who they are; the log does not."""
    settings = load_settings(config)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    assert admin.problems() == []
    admin.close()
    with running(config, tmp_path / "worker.log") as worker:
        send(settings)
        waited_until(lambda: any(read_records(settings, INTERACTIONS)), 240, worker.log)
        assert worker.stop()[0] == 0
        assert PASSWORD not in worker.said()
    (record,) = read_records(settings, INTERACTIONS)
    (found,) = decode_interaction_record(record.value or b"").interactions
    assert found.impression.impression_id == "i1"
    assert [mark.position for mark in found.clicks] == [2]


def test_a_stranger_is_not_let_in(config: Path, tmp_path: Path) -> None:
    """A wrong password, and a certificate that nobody vouches for."""
    (tmp_path / "password").write_text("guess")
    assert "guess" not in refused(config)
    (tmp_path / "password").write_text(PASSWORD)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    assert PASSWORD not in refused(config)


def refused(config: Path) -> str:
    """What somebody reads who is not let in."""
    words = ["topics", "check", "--config", str(config)]
    done = subprocess.run(
        [sys.executable, "-m", "rankstream.cli", *words],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "127.0.0.1" in done.stderr
    return done.stdout + done.stderr
