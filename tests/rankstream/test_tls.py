"""What settings say about TLS, as contexts of connections, or refused."""

import ssl
from pathlib import Path

import msgspec
import pytest
import redis
import trustme
from cryptography.hazmat.primitives import serialization

from producers.readiness import shown_url
from rankstream.configuration.redis_url import redis_place
from rankstream.redis_store import redis_clients
from rankstream.redis_store.redis_clients import Identity
from rankstream.redis_store.redis_connection import RedisConnection
from rankstream.settings import KafkaSettings, SettingsError, load_settings
from rankstream.tls import MOST_TOKEN_BYTES, in_the_clear, tls_context, token_in

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
        ("kafka.sasl_mechanism", "GSSAPI", "must be one of"),
        ("kafka.oauth_token_file", "t", "kafka.sasl_mechanism OAUTHBEARER, and only"),
        ("redis.ca_file", "ca.pem", "must be set with a url of rediss only"),
        ("redis.certificate_file", "c.pem", "must be set with a url of rediss only"),
        ("redis.key_file", "key.pem", "must be set with redis.certificate_file"),
        ("redis.sentinel_username", "u", "must be set with a url of sentinels only"),
        ("redis.url", "http://h/0", "must begin with one of"),
        ("redis.url", "redis://h:x/0", "must have numbers as port and database"),
        ("redis.url", "redis+sentinel://h", "must name what they watch"),
        ("redis.url", "redis+sentinel://h/0", "must name what they watch"),
        ("redis.url", "redis+sentinel://h:26379/0", "must name what they watch"),
        ("redis.url", "redis+sentinel:///shop/0", "must name a host"),
        ("redis.url", "redis:///0", "must name a host"),
        ("redis.url", "redis+cluster://:6379,b", "must name a host"),
        ("redis.url", "redis://a,b/0", "must name one host"),
        ("redis.url", "redis://[::1/0", "must be an address"),
        ("redis.url", "redis://h:99999999/0", "ports of 1 to 65535"),
        ("redis.url", "redis://h/-1", "a database of 0 to"),
        ("redis.url", "redis://h/1/2", "no more path than its form has"),
        ("redis.url", "unix://run/redis.sock", "after three slashes"),
        ("redis.url", "rediss://h/0?ssl_cert_reqs=none", "'ssl_cert_reqs': the cert"),
        ("redis.url", "rediss://h/0?ssl_ca_certs=canary", "redis.ca_file names the"),
        ("redis.url", "redis://h/0?timeout=canary", "'timeout': no setting has it"),
        ("redis.url", "redis://h/0?ssl%5Fcert_reqs=none", "must end with its path"),
        ("redis.url", "redis://h/0?canary", "must end with its path"),
        ("redis.url", "redis://h/0#canary", "must end with its path"),
        ("redis.url", "http://h/0?canary", "must begin with one of"),
        ("redis.url", "redis://h/0?%70assword=canary", "must not carry credentials"),
        ("redis.url", "redis://h/0?PASSWORD=canary", "must not carry credentials"),
        ("redis.url", "redis://me:canary@[h/0", "must be an address; got an address w"),
        ("redis.url", "redis+cluster://h/1", "must name no database"),
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


@pytest.mark.parametrize(
    ("bootstrap", "protocol", "mechanism", "sent"),
    [
        ("kafka:9092", "SASL_PLAINTEXT", "PLAIN", "the password in the clear"),
        ("localhost:1,kafka:9092", "SASL_PLAINTEXT", "PLAIN", "the password"),
        ("kafka:9092", "SASL_PLAINTEXT", "OAUTHBEARER", "the token in the clear"),
        ("kafka:9092", "SASL_PLAINTEXT", "SCRAM-SHA-512", ""),
        ("kafka:9092", "SASL_SSL", "PLAIN", ""),
        ("127.0.0.1:1,[::1]:2,localhost:3", "SASL_PLAINTEXT", "PLAIN", ""),
    ],
)
def test_who_sends_a_secret_in_the_clear_is_warned(
    bootstrap: str, protocol: str, mechanism: str, sent: str
) -> None:
    """Unless nobody is on the way."""
    kafka = KafkaSettings(
        bootstrap, security_protocol=protocol, sasl_mechanism=mechanism
    )
    said = in_the_clear(kafka)
    assert bool(said) == bool(sent)
    assert sent in said


@pytest.mark.parametrize("address", ["redis://me:canary@h/0", "redis://h/0?x=canary"])
def test_other_settings_do_not_print_the_address_as_it_is(address: str) -> None:
    """A word of it may be a secret."""
    variables = {"RANKSTREAM_REDIS__URL": address, "RANKSTREAM_REDIS__CA_FILE": "c"}
    with pytest.raises(SettingsError, match=r"redis\.ca_file") as refused:
        load_settings(None, variables)
    assert "canary" not in str(refused.value)
    assert "canary" not in shown_url(address)
    connection = RedisConnection(
        address, Identity(), namespace="", timeout_s=1.0, retries=0
    )
    assert "canary" not in connection.place


@pytest.mark.parametrize("kind", ["sentinel", "cluster"])
def test_sentinels_and_nodes_are_reached_over_tls(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever they are asked by: sentinels, what they name, and each node."""
    found: dict[str, object] = {}

    def made(**options: object) -> None:
        found.update(options)

    monkeypatch.setattr(redis_clients, "RedisCluster", made)
    client = redis_clients.client_of(
        f"rediss+{kind}://a,b/{'shop/0' if kind == 'sentinel' else ''}",
        Identity(),
        timeout_s=1.0,
        retries=0,
    )
    if kind == "cluster":
        assert found["ssl"] is True
        return
    pool = client.connection_pool
    assert issubclass(pool.connection_class, redis.SSLConnection)
    for each in pool.sentinel_manager.sentinels:
        assert issubclass(each.connection_pool.connection_class, redis.SSLConnection)


def test_a_socket_has_no_host() -> None:
    """Nor a database in its path."""
    place = redis_place("unix:///run/redis.sock")
    assert (place.hosts, place.db, place.is_tls) == ([], 0, False)
    load_settings(None, {"RANKSTREAM_REDIS__URL": "unix:///run/redis.sock"})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b" \n", "is empty"),
        (b"\xef\xbb\xbfabc", "one token of printable ASCII"),
        ("abc".encode("utf-16"), "one token of printable ASCII"),
        (b"abc\x01host=evil\x01", "one token of printable ASCII"),
        (b"abc\ndef\n", "one token of printable ASCII"),
        (b"a" * (MOST_TOKEN_BYTES + 1), "65,536 bytes at most"),
    ],
)
def test_what_is_no_token_is_not_shown_to_a_broker(
    raw: bytes, said: str, tmp_path: Path
) -> None:
    """The next connection looks anew."""
    file = tmp_path / "token"
    file.write_bytes(raw)
    with pytest.raises(OSError, match=said):
        token_in(str(file))
    file.write_bytes(b"abc.d-e_f~g+h/i==\r\n")
    assert token_in(str(file)) == "abc.d-e_f~g+h/i=="
