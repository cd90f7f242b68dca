"""What settings say about TLS, as contexts of connections, or refused."""

import ssl
from pathlib import Path

import msgspec
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from rankstream.settings import KafkaSettings, SettingsError, load_settings
from rankstream.tls import tls_context

WORD = "canary-of-a-key"


@pytest.fixture
def pems(tmp_path: Path) -> Path:
    """A folder with the authority, and a certificate with its key in several forms."""
    ca = trustme.CA()
    own = ca.issue_cert("worker")
    ca.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    own.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "both.pem"))
    own.cert_chain_pems[0].write_to_path(str(tmp_path / "certificate.pem"))
    own.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    key = serialization.load_pem_private_key(own.private_key_pem.bytes(), None)
    (tmp_path / "locked.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(WORD.encode()),
        )
    )
    (tmp_path / "word").write_text(WORD + "\n")
    (tmp_path / "none").write_text("no certificate\n")
    return tmp_path


def settings_of(folder: Path, files: dict[str, str]) -> KafkaSettings:
    """With these files."""
    named = {name: str(folder / file) for name, file in files.items()}
    return msgspec.convert({"security_protocol": "SSL"} | named, KafkaSettings)


def context(folder: Path, **files: str) -> ssl.SSLContext | None:
    """Of settings with these files."""
    return tls_context(settings_of(folder, files), {})


def test_plain_connections_have_no_context() -> None:
    """With a password or without."""
    for protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
        assert tls_context(KafkaSettings(security_protocol=protocol), {}) is None


def test_a_broker_must_show_a_certificate_of_its_name(pems: Path) -> None:
    """Of the named authority only."""
    found = context(pems, ca_file="ca.pem")
    assert found is not None
    assert found.verify_mode == ssl.CERT_REQUIRED
    assert found.check_hostname
    assert len(found.get_ca_certs()) == 1


def test_a_certificate_is_taken_with_its_key(pems: Path) -> None:
    """In one file or in two; an encrypted key with its password."""
    assert context(pems, certificate_file="both.pem")
    assert context(pems, certificate_file="certificate.pem", key_file="key.pem")
    locked = {"certificate_file": "certificate.pem", "key_file": "locked.pem"}
    assert context(pems, **(locked | {"key_password_file": "word"}))
    settings = settings_of(pems, locked)
    assert tls_context(settings, {"RANKSTREAM_KAFKA_KEY_PASSWORD": WORD})


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"ca_file": "absent"}, "absent: No such file or directory"),
        ({"ca_file": "none"}, "kafka.ca_file must hold certificates as PEM"),
        ({"certificate_file": "absent"}, "absent and the same file: No such file"),
        ({"certificate_file": "certificate.pem", "key_file": "none"}, "and its key"),
        ({"certificate_file": "certificate.pem", "key_file": "locked.pem"}, "password"),
        (
            {
                "certificate_file": "certificate.pem",
                "key_file": "locked.pem",
                "key_password_file": "none",
            },
            "kafka.key_password_file",
        ),
    ],
)
def test_files_that_are_not_what_they_must_be(
    files: dict[str, str], said: str, pems: Path
) -> None:
    """Are refused by their names; nobody is asked for a password."""
    with pytest.raises(SettingsError, match="PEM") as refused:
        context(pems, **files)
    assert said in str(refused.value)
    assert WORD not in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("kafka.security_protocol", "TLS", "must be one of"),
        ("kafka.security_protocol", "ssl", "must be one of"),
        ("kafka.ca_file", "ca.pem", "SSL or SASL_SSL only; got PLAINTEXT"),
        ("kafka.certificate_file", "c.pem", "SSL or SASL_SSL only; got PLAINTEXT"),
        ("kafka.key_file", "key.pem", "must be set with kafka.certificate_file"),
        ("kafka.key_password_file", "w", "must be set with kafka.certificate_file"),
        ("redis.ca_file", "ca.pem", "must be set with a url of rediss:// only"),
        ("redis.url", "redis://h/0?password=canary", "must not carry credentials"),
        ("redis.url", "rediss://h/0?db=1&username=canary", "must not carry cred"),
    ],
)
def test_what_would_be_less_safe_than_it_looks_is_refused(
    setting: str, value: str, said: str
) -> None:
    """A connection is never plain where a file of TLS is named."""
    variable = f"RANKSTREAM_{setting.replace('.', '__').upper()}"
    with pytest.raises(SettingsError, match=rf"^{setting} ") as refused:
        load_settings(None, {variable: value})
    assert said in str(refused.value)
    assert "canary" not in str(refused.value)
