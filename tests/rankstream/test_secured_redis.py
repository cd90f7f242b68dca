"""Redis over TLS, with a user that may do little: what services and `publish` do."""

import datetime as dt
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from rankstream.ranker import Ranker
from rankstream.settings import Settings, load_settings
from rankstream.snapshots import SnapshotStore, StoreUnavailable, store_of
from tests.redis_user import redis_user
from tests.services import RedisService
from tests.snapshot_factory import envelope
from tests.tls_proxy import HANDSHAKE, TlsProxy, tls_proxy

USER, PASSWORD, GUESS = "shop-service", "canary-of-redis", "canary-of-a-guess"
YESTERDAY = dt.datetime.now(dt.UTC) - dt.timedelta(days=1)


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    """Who signs Redis' certificate."""
    return trustme.CA()


@pytest.fixture
def user(redis_server: RedisService, namespace: str) -> Iterator[str]:
    """A user of Redis who has nothing but the keys of the namespace."""
    with redis_user(redis_server.url, USER, PASSWORD, namespace) as name:
        yield name


def served(cert: trustme.LeafCert) -> ssl.SSLContext:
    """What a server shows."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    cert.configure_cert(context)
    return context


def settings_of(folder: Path, proxy: TlsProxy, namespace: str, ca: trustme.CA) -> Path:
    """A settings file of a service."""
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    (folder / "password").write_text(PASSWORD)
    config = folder / "shop.toml"
    config.write_text(
        f'namespace = "{namespace}"\n[redis]\n'
        f'url = "rediss://127.0.0.1:{proxy.port}/0"\nusername = "{USER}"\n'
        f'password_file = "{folder / "password"}"\nca_file = "{folder / "ca.pem"}"\n'
    )
    return config


def loaded(config: Path, **changed: str) -> Settings:
    """The settings, with variables beside them."""
    return load_settings(config, changed)


def test_a_ranker_has_its_snapshot_over_tls(
    redis_server: RedisService,
    user: str,
    namespace: str,
    ca: trustme.CA,
    tmp_path: Path,
) -> None:
    """As a user who may see nothing else; no byte of it was sent in the clear."""
    with tls_proxy(served(ca.issue_cert("127.0.0.1")), redis_server.port) as proxy:
        store = store_of(loaded(settings_of(tmp_path, proxy, namespace, ca)))
        assert store.publish(envelope(3, model="m"))
        store.put_documents({"experiments": {"boost": b"{}"}})
        ranker = Ranker("m", store=store)
        assert ranker.refresh()
        assert ranker.version == 3
        assert next(store.notifications("m")) is None
        stranger = SnapshotStore(
            f"rediss://127.0.0.1:{proxy.port}/0", namespace="another",
            username=user, password=PASSWORD, ca_file=str(tmp_path / "ca.pem"),
        )  # fmt: skip
        with pytest.raises(StoreUnavailable, match="NoPermission"):
            stranger.publish(envelope(3, model="m"))
        store.close()
        stranger.close()
        assert set(proxy.first_bytes) == {HANDSHAKE}


class Wrong(NamedTuple):
    """What a server shows or a client says, and what is told of it."""

    told: str = "CERTIFICATE_VERIFY_FAILED"
    name: str = "127.0.0.1"
    expires: dt.datetime | None = None
    is_ours: bool = True
    password: str = PASSWORD


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(Wrong(is_ours=False), id="another authority"),
        pytest.param(Wrong(expires=YESTERDAY), id="expired"),
        pytest.param(Wrong(name="elsewhere.example"), id="another name"),
        pytest.param(
            Wrong(told="AuthenticationError", password=GUESS),
            id="wrong password",
        ),
    ],
)
@pytest.mark.usefixtures("user")
def test_who_is_not_who_it_must_be_is_not_spoken_to(
    wrong: Wrong,
    redis_server: RedisService,
    namespace: str,
    ca: trustme.CA,
    tmp_path: Path,
) -> None:
    """The refusal says why, not with what; nothing is tried in the clear."""
    signer = ca if wrong.is_ours else trustme.CA()
    cert = signer.issue_cert(wrong.name, not_after=wrong.expires)
    with tls_proxy(served(cert), redis_server.port) as proxy:
        config = settings_of(tmp_path, proxy, namespace, ca)
        (tmp_path / "password").write_text(wrong.password)
        store = store_of(loaded(config), retries=0)
        with pytest.raises(StoreUnavailable) as refused:
            store.ping()
        store.close()
        said = f"{refused.value} {refused.value!r}"
        assert wrong.told in said
        assert "canary" not in said
        assert set(proxy.first_bytes) == {HANDSHAKE}
