"""Nothing that holds a secret shows it, whoever prints it."""

import os
from pathlib import Path

import pytest

from producers.brokers.connection import client_options as of_kafka_python
from rankstream.settings import KafkaSettings, Settings, SettingsError, load_settings
from rankstream.snapshots import StoreUnavailable, store_of
from streams.kafka.app import _credentials_of
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options

CANARY = "canary"
SECRETS = {
    "RANKSTREAM_KAFKA_PASSWORD": f"{CANARY}-kafka",
    "RANKSTREAM_KAFKA_KEY_PASSWORD": f"{CANARY}-key",
    "RANKSTREAM_REDIS_PASSWORD": f"{CANARY}-redis",
}
SECURED = Settings(
    kafka=KafkaSettings(
        security_protocol="SASL_SSL", sasl_mechanism="PLAIN", username="u"
    )
)


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)


def test_what_reaches_a_server_does_not_print_its_password() -> None:
    """In a traceback of somebody else's, or in a log line."""
    client = client_options(SECURED.kafka)
    assert client["sasl_plain_password"] == SECRETS["RANKSTREAM_KAFKA_PASSWORD"]
    assert of_kafka_python(SECURED.kafka)["sasl_plain_password"].startswith(CANARY)
    store = store_of(SECURED)
    holders = [
        SECURED,
        Cluster("shop", client, {}),
        _credentials_of(client),
        store,
        store._client,
        store._client.connection_pool,
    ]
    for holder in holders:
        assert CANARY not in f"{holder!r} {holder}", type(holder)
    store.close()


def test_a_redis_that_is_away_is_named_without_the_password() -> None:
    """Causes of the error are silent about it too."""
    store = store_of(load_settings(None, {"RANKSTREAM_REDIS__URL": "redis://[::1]:1"}))
    with pytest.raises(StoreUnavailable) as away:
        store.ping()
    error: BaseException | None = away.value
    while error is not None:
        assert CANARY not in f"{error!r}"
        error = error.__cause__ or error.__context__
    store.close()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("RANKSTREAM_KAFKA__PASSWORD", f"{CANARY}"),
        ("RANKSTREAM_REDIS__PASSWORD", f"[{CANARY}"),
        ("RANKSTREAM_KAFKA_PASSWORT", f"{CANARY}"),
        ("RANKSTREAM_REDIS__URL", f"redis://u:{CANARY}@h/0"),
        ("RANKSTREAM_REDIS__URL", f"redis://u:{CANARY}/x@h:1/0"),
        ("RANKSTREAM_REDIS__URL", f"rediss://h:1/0?password={CANARY}"),
        ("RANKSTREAM_KAFKA__BOOTSTRAP", f"sasl://u:{CANARY}@h:9092"),
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_and_not_repeated(
    variable: str, value: str
) -> None:
    """Where somebody would look for it, or has misspelt the name."""
    with pytest.raises(SettingsError) as refused:
        load_settings(None, {variable: value})
    assert CANARY not in str(refused.value)


@pytest.mark.parametrize(
    "text",
    [
        f'[kafka]\npassword = "{CANARY}"\n',
        f"[kafka]\npassword = {CANARY}\n",
        f'[kafka]\npassword = "{CANARY}\n',
        f'[redis]\npassword = ["{CANARY}"]\n',
    ],
)
def test_a_secret_in_the_settings_file_is_refused_and_not_repeated(
    text: str, tmp_path: Path
) -> None:
    """Whether it is TOML or not."""
    path = tmp_path / "shop.toml"
    path.write_text(text)
    with pytest.raises(SettingsError) as refused:
        load_settings(path, {})
    assert CANARY not in str(refused.value)
    assert os.fspath(path) in str(refused.value)
