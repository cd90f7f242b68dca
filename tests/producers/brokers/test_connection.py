"""How settings become options of a client."""

from pathlib import Path

import pytest
import trustme

from producers.brokers.connection import client_options
from rankstream.settings import KafkaSettings, SettingsError


def test_plain_needs_nothing_but_addresses() -> None:
    """Several brokers are a list."""
    assert client_options(KafkaSettings(bootstrap="a:1,b:2")) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
    }


def test_sasl_over_tls_takes_its_password_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User, password and the authority's certificate reach the client."""
    monkeypatch.delenv("RANKSTREAM_KAFKA_PASSWORD", raising=False)
    word = "open sesame"
    (tmp_path / "password").write_text(f"{word}\n")
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    settings = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="SCRAM-SHA-512",
        username="worker",
        password_file=str(tmp_path / "password"),
        ca_file=str(tmp_path / "authority.pem"),
    )
    options = client_options(settings)
    assert options["security_protocol"] == "SASL_SSL"
    assert options["sasl_mechanism"] == "SCRAM-SHA-512"
    assert options["sasl_plain_username"] == "worker"
    assert options["sasl_plain_password"] == word
    assert len(options["ssl_context"].get_ca_certs()) == 1
    assert word not in repr(settings)


@pytest.mark.parametrize(
    ("settings", "rule"),
    [
        (KafkaSettings(sasl_mechanism="PLAIN", username="w"), "sasl_mechanism must"),
        (KafkaSettings(security_protocol="SASL_SSL"), "sasl_mechanism must"),
        (
            KafkaSettings(
                security_protocol="SASL_SSL", sasl_mechanism="PLAIN", username="w"
            ),
            "RANKSTREAM_KAFKA_PASSWORD",
        ),
    ],
)
def test_half_an_identity_is_refused(
    settings: KafkaSettings, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that would send no password, or send one in the clear, is not made."""
    monkeypatch.delenv("RANKSTREAM_KAFKA_PASSWORD", raising=False)
    with pytest.raises(SettingsError, match=rule):
        client_options(settings)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (None, "readable"),
        ("\n", "is empty"),
        ("two words", "printable ASCII"),
        ("x" * 65_537, "65,536 bytes at most"),
    ],
)
def test_a_token_file_is_looked_at_before_anybody_connects(
    text: str | None, rule: str, tmp_path: Path
) -> None:
    """As the file of a password."""
    file = tmp_path / "token"
    if text is not None:
        file.write_text(text)
    settings = KafkaSettings(
        security_protocol="SASL_SSL",
        sasl_mechanism="OAUTHBEARER",
        oauth_token_file=str(file),
    )
    with pytest.raises(SettingsError, match=f"kafka.oauth_token_file must.*{rule}"):
        client_options(settings)
