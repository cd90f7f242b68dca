"""A broker that believes nobody: passwords over TLS, or certificates of clients."""

import contextlib
import datetime as dt
from collections.abc import Iterator
from pathlib import Path

import trustme
from cryptography.hazmat.primitives import serialization
from kafka import KafkaAdminClient
from kafka.admin import UserScramCredentialUpsertion

from deploy.broker import Broker
from deploy.process import free_port

USER, PASSWORD = "shop", "canary-of-kafka"
KEY_PASSWORD = "canary-of-the-key"  # noqa: S105  of a key that lives as long as a test
LISTENERS = ("secured", "mutual", "expired", "elsewhere")
"""By password; by certificate; and two whose own certificate is no good."""

PROPERTIES = """
listeners=PLAINTEXT://127.0.0.1:{{port}},CONTROLLER://127.0.0.1:{{controller_port}},{more}
advertised.listeners=PLAINTEXT://127.0.0.1:{{port}},{more}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,\
SECURED:SASL_SSL,MUTUAL:SSL,EXPIRED:SSL,ELSEWHERE:SSL
ssl.keystore.type=PEM
ssl.truststore.type=PEM
ssl.truststore.location={folder}/ca.pem
listener.name.mutual.ssl.client.auth=required
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secured.plain.sasl.jaas.config=\
org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
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

    def add_user(self) -> None:
        """Let the user in by SCRAM too."""
        admin = KafkaAdminClient(bootstrap_servers=self.broker.bootstrap)
        user = UserScramCredentialUpsertion(USER, "SCRAM-SHA-512", PASSWORD)
        said = admin.alter_user_scram_credentials([user])
        admin.close()
        assert not any(said.values()), said

    def by_password(self, folder: Path, **other: str) -> str:
        """Settings of who is let in by a password; `other` ones override them."""
        (folder / "password").write_text(PASSWORD + "\n")
        return self._section("secured", {
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "username": USER,
            "password_file": str(folder / "password"),
        } | other)  # fmt: skip

    def by_certificate(
        self, folder: Path, signer: trustme.CA | None = None, **other: str
    ) -> str:
        """Settings of who is let in by a certificate, whose key is encrypted."""
        cert = (signer or self.ca).issue_cert("worker")
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
