"""A broker that believes nobody: passwords, tokens or certificates, all over TLS.

It also asks for rights: who is let in by the names below may do everything, and others
what they were granted.
"""

import base64
import contextlib
import datetime as dt
import json
import time
from collections.abc import Iterator
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialUpsertion

from deploy.broker import Broker
from deploy.process import free_port
from producers.event_producer import EventProducer
from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES

USER, PASSWORD = "shop", "canary-of-kafka"
KEY_PASSWORD = "canary-of-the-key"  # noqa: S105  of a key that lives as long as a test
LISTENERS = ("secured", "mutual", "token", "expired", "elsewhere")
"""By password; certificate; token; and two whose own certificate is no good."""

SESSION_S = 10.0
"""So long a token lets in at most: then the client must show one anew."""

PROPERTIES = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{more}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},{more}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\
SECURED:SASL_SSL,MUTUAL:SSL,TOKEN:SASL_SSL,EXPIRED:SSL,ELSEWHERE:SSL
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS;User:{user};User:certified
ssl.keystore.type=PEM
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.mutual.ssl.client.auth=required
listener.name.mutual.ssl.principal.mapping.rules=\
RULE:^.*CN=([a-z]+).*$/$1/,RULE:^.*$/certified/
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.token.sasl.enabled.mechanisms=OAUTHBEARER
listener.name.token.oauthbearer.connections.max.reauth.ms={session_ms}
listener.name.token.oauthbearer.sasl.jaas.config=\
org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.secured.scram-sha-256.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secured.scram-sha-512.sasl.jaas.config=\
org.apache.kafka.common.security.scram.ScramLoginModule required;
"""


class SecuredBroker:
    """The broker, the authority, and settings for clients of its listeners."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ca = trustme.CA()
        self.ports = {name: free_port() for name in LISTENERS}
        self.ca.cert_pem.write_to_path(str(folder / "ca.pem"))
        long_ago = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)
        certs = dict.fromkeys(LISTENERS, self.ca.issue_cert("127.0.0.1"))
        certs["expired"] = self.ca.issue_cert("127.0.0.1", not_after=long_ago)
        certs["elsewhere"] = self.ca.issue_cert("elsewhere.example")
        text = PROPERTIES.format(
            folder=folder, user=USER, password=PASSWORD,
            session_ms=round(1_000 * SESSION_S),
            more=",".join(
                f"{name.upper()}://127.0.0.1:{port}"
                for name, port in self.ports.items()
            ),
        )  # fmt: skip
        for name, cert in certs.items():
            chain = b"".join(pem.bytes() for pem in cert.cert_chain_pems)
            (folder / f"{name}.pem").write_bytes(_key(cert) + chain)
            text += (
                f"listener.name.{name}.ssl.keystore.location={folder}/{name}.pem\n"
                f"listener.name.{name}.ssl.keystore.type=PEM\n"
            )
        self.broker = Broker(folder, more=text)

    @contextlib.contextmanager
    def admin(self) -> Iterator[KafkaAdminClient]:
        """A client that may do everything."""
        client = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        try:
            yield client
        finally:
            client.close()

    def add_user(self, name: str = USER) -> None:
        """Let a user in by SCRAM too."""
        with self.admin() as admin:
            for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
                user = UserScramCredentialUpsertion(name, mechanism, PASSWORD)
                said = admin.alter_user_scram_credentials([user])
                assert not any(said.values()), said

    def command_config(self, folder: Path) -> Path:
        """The file that gives Kafka's own programs a user who may do everything."""
        file = folder / "admin.properties"
        file.write_text(
            "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\n"
            "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule "
            f'required username="{USER}" password="{PASSWORD}";\n'
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.folder}/ca.pem\n"
        )
        return file

    def by_password(self, folder: Path, **other: str) -> str:
        """Settings of who is let in by a password; `other` ones override them."""
        (folder / "password").write_text(PASSWORD + "\n")
        return self._section("secured", {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": USER,
            "password_file": str(folder / "password"),
        } | other)  # fmt: skip

    def by_token(self, folder: Path, name: str = USER, **other: str) -> str:
        """Settings of who is let in by a token, which ends with its session."""
        renew_token(folder / "token", name)
        return self._section("token", {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "OAUTHBEARER",
            "oauth_token_file": str(folder / "token"),
        } | other)  # fmt: skip

    def by_certificate(
        self,
        folder: Path,
        signer: trustme.CA | None = None,
        name: str | None = None,
        **other: str,
    ) -> str:
        """Settings of who is let in by a certificate, whose key is encrypted."""
        cert = (signer or self.ca).issue_cert("worker", common_name=name)
        cert.cert_chain_pems[0].write_to_path(str(folder / "own.pem"))
        (folder / "own.key").write_bytes(_key(cert, KEY_PASSWORD))
        (folder / "key-password").write_text(KEY_PASSWORD + "\n")
        return self._section("mutual", {
            "security_protocol": "SSL",
            "certificate_file": str(folder / "own.pem"),
            "key_file": str(folder / "own.key"),
            "key_password_file": str(folder / "key-password"),
        } | other)  # fmt: skip

    def by_nothing(self, listener: str, **other: str) -> str:
        """Settings of who only believes the authority."""
        return self._section(listener, {"security_protocol": "SSL"} | other)

    def _section(self, listener: str, values: dict[str, str]) -> str:
        values = {
            "bootstrap": f"127.0.0.1:{self.ports[listener]}",
            "ca_file": str(self.folder / "ca.pem"),
        } | values
        lines = (f'{name} = "{value}"\n' for name, value in values.items())
        return "[kafka]\npartitions = 1\n" + "".join(lines)


def renew_token(file: Path, name: str, lasts_s: float = 3_600.0) -> None:
    """A token for so long; nobody has signed it, which brokers of tests believe."""
    now_s = time.time()
    claims = {"sub": name, "iat": now_s, "exp": now_s + lasts_s}
    parts = [
        base64.urlsafe_b64encode(json.dumps(each).encode()).rstrip(b"=").decode()
        for each in ({"alg": "none"}, claims)
    ]
    beside = file.with_suffix(".new")
    beside.write_text(f"{'.'.join(parts)}.\n")
    beside.replace(file)


def _key(cert: trustme.LeafCert, password: str = "") -> bytes:
    """The certificate's key in the form that Java and OpenSSL read."""
    key = serialization.load_pem_private_key(cert.private_key_pem.bytes(), None)
    locked: serialization.KeySerializationEncryption = serialization.NoEncryption()
    if password:
        locked = serialization.BestAvailableEncryption(password.encode())
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked
    )


@contextlib.contextmanager
def secured_broker(folder: Path) -> Iterator[SecuredBroker]:
    """One that runs.

    Raises
    ------
    ServerFailed
        Where there is no Java or there are no jars.
    """
    made = SecuredBroker(folder)
    try:
        made.broker.start()
        made.add_user()
        yield made
    finally:
        made.broker.kill()


def written(folder: Path, kafka: str, more: str = "") -> Path:
    """A settings file."""
    path = folder / "shop.toml"
    path.write_text(f"{more}\n{kafka}")
    return path


def send(settings: Settings, number: int = 1) -> None:
    """A list, a click on it, what is no event, and the end."""
    at_ms = 1_700_000_000_000 + 60_000 * (number - 1)
    shown = {
        "impression_id": f"i{number}",
        "query_id": "q",
        "at_ms": at_ms,
        "model": "m",
        "policy": "deterministic",
        "candidates": ["a", "b"],
        "shown": ["b", "a"],
    }
    click = {"impression_id": f"i{number}", "query_id": "q", "at_ms": at_ms + 1}
    with EventProducer(settings) as producer:
        producer.send(QUERIES, json.dumps(shown).encode())
        producer.send(CLICKS, json.dumps(click | {"position": 2}).encode())
        producer.send_raw(QUERIES, b"no event")
        producer.end()
