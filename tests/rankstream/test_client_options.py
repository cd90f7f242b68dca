"""Options of Kafka's clients: those that pass, and the promise that others break."""

from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer

from producers.brokers.connection import client_options
from rankstream.configuration.client_options import BREAKING, OPTIONS
from rankstream.settings import Settings, SettingsError, load_settings
from streams.kafka import committed_reader
from streams.kafka.app import build_app
from streams.kafka.clients import Cluster
from streams.topology import STAGES

GIVEN = {"client_id": "shop-eu", "connections_max_idle_ms": 60_000}


def settings_with(**options: object) -> Settings:
    """As variables give them."""
    prefix = "RANKSTREAM_KAFKA__OPTIONS__"
    given = {f"{prefix}{name.upper()}": str(x) for name, x in options.items()}
    return load_settings(None, given)


def test_options_reach_every_client() -> None:
    """Of both libraries, and Faust's consumer."""
    settings = settings_with(**GIVEN, metadata_max_age_ms=30_000)
    for options in (
        client_options(settings.kafka),
        committed_reader.client_options(settings.kafka),
    ):
        assert {name: options[name] for name in OPTIONS} == settings.kafka.options
    cluster = Cluster("", committed_reader.client_options(settings.kafka), {})
    stages = [kind for kind in STAGES if kind.role == "fold"]
    conf = build_app(settings, "fold", stages, cluster).conf
    assert conf.broker_client_id == "shop-eu"
    assert conf.consumer_connections_max_idle_ms == 60_000
    assert conf.consumer_metadata_max_age_ms == 30_000


def test_every_client_takes_what_may_be_given() -> None:
    """By this name."""
    for kind in (KafkaAdminClient, KafkaConsumer, KafkaProducer):
        assert OPTIONS.keys() <= kind.DEFAULT_CONFIG.keys()
    assert OPTIONS.keys() <= {*AIOKafkaConsumer.__init__.__code__.co_varnames}


@pytest.mark.parametrize("name", [*BREAKING, "isolation.level", "ssl_cafile"])
def test_what_breaks_a_promise_is_refused_with_it(name: str) -> None:
    """Also as Kafka writes it, and what `[kafka]` has a setting for."""
    with pytest.raises(SettingsError) as refused:
        settings_with(**{name: "x"})
    place = f"kafka.options.{name} must not be set: "
    assert str(refused.value).startswith(place)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"colour": 1}, "kafka.options must be among client_id, "),
        ({"client_id": 1}, "kafka.options.client_id must be text; got 1"),
        ({"metadata_max_age_ms": 0.5}, "must be a positive integer; got 0.5"),
        ({"metadata_max_age_ms": 0}, "must be 1000 to 86400000 ms; got 0"),
        ({"metadata_max_age_ms": 2**63 - 1}, "must be 1000 to 86400000 ms; got 92"),
        ({"connections_max_idle_ms": 1}, "must be 1000 to 86400000 ms; got 1"),
        ({"client_id": "x" * 40_000}, "1 to 200 printable characters of ASCII; got 'x"),
        ({"client_id": "a\nb"}, "printable characters of ASCII; got 'a"),
    ],
)
def test_other_options_are_not_passed_on(options: dict[str, object], said: str) -> None:
    """Clients would fail later, each in its own words."""
    with pytest.raises(SettingsError, match=said):
        settings_with(**options)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("enable_idempotence = false", "enable_idempotence must not be set: a record"),
        ("metadata_max_age_ms = true", "must be a positive integer; got True"),
        ("metadata_max_age_ms = 0.5", "must be a positive integer; got 0.5"),
        ('client_id = "a\\nb"', "1 to 200 printable characters of ASCII"),
    ],
)
def test_options_of_another_type_are_named(
    line: str, said: str, tmp_path: Path
) -> None:
    """As a file can have them."""
    file = tmp_path / "shop.toml"
    file.write_text(f"[kafka.options]\n{line}\n")
    with pytest.raises(SettingsError, match=said):
        load_settings(file, {})
