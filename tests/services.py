"""Real Kafka and Redis for tests, from the best source that there is.

An address in the environment; else a container, where an engine runs; else the
broker's own jars and the Redis binary. Without any, tests that need them are
skipped by hand and fail in CI.
"""

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

import pytest

from deploy.broker import Broker, cluster
from deploy.local_server import LocalServer
from deploy.process import ServerFailed
from deploy.redis_server import Redis
from tests.session.shared_server import shared_port

Server = TypeVar("Server", bound=LocalServer)

KAFKA_IMAGE = "confluentinc/cp-kafka:7.9.0"
KAFKA_IN_A_CONTAINER = {
    "KAFKA_AUTO_CREATE_TOPICS_ENABLE": "false",
    "KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS": "1000",
    "KAFKA_MESSAGE_MAX_BYTES": "16777216",
    "KAFKA_REPLICA_FETCH_MAX_BYTES": "16777216",
    "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
    "KAFKA_TRANSACTION_STATE_LOG_NUM_PARTITIONS": "4",
    "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
}


PATIENT = "broker.session.timeout.ms=60000\n"
"""Of the broker that all share: it is not killed, so it may be silent for long, and a
busy machine does not have it fenced by its own controller."""

REDIS_IMAGE = "redis:7.4-alpine"
REDIS_IN_A_CONTAINER = (
    "redis-server --save '' --appendonly no --maxmemory-policy noeviction"
)


@dataclass(frozen=True)
class KafkaService:
    """A broker's address, and its control where it is ours."""

    bootstrap: str
    broker: Broker | None = None


@dataclass(frozen=True)
class RedisService:
    """A Redis' address, and its control where it is ours."""

    url: str
    server: Redis | None = None

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 6379


class ServiceMissing(RuntimeError):
    """There is no way to have a service here.

    Operator action: do what the message says; it names a variable as a way out.
    """


@contextlib.contextmanager
def kafka_service(
    folder: Path, environment: Mapping[str, str] = os.environ
) -> Iterator[KafkaService]:
    """A broker for as long as the context lasts.

    Parameters
    ----------
    folder
        Of the run: processes that name the same one share a broker.

    Raises
    ------
    ServiceMissing
        Where there is none.
    """
    named = environment.get("RANKSTREAM_TEST_KAFKA")
    if named:
        yield KafkaService(named)
    elif has_container_engine():
        with _kafka_container() as bootstrap:
            yield KafkaService(bootstrap)
    else:
        with _shared_broker(folder) as bootstrap:
            yield KafkaService(bootstrap)


@contextlib.contextmanager
def _shared_broker(folder: Path) -> Iterator[str]:
    with contextlib.ExitStack() as until_the_end:
        try:
            make = partial(Broker, more=PATIENT)
            port = until_the_end.enter_context(shared_port(folder / "kafka", make))
        except ServerFailed as error:
            raise ServiceMissing(f"no Kafka: {error}") from error
        yield f"127.0.0.1:{port}"


@contextlib.contextmanager
def our_broker() -> Iterator[Broker]:
    """A broker under our control: it can be killed, paused and started again.

    Raises
    ------
    ServiceMissing
        Where there is no Java or there are no jars.
    """
    with _started(Broker, "Kafka") as broker:
        yield broker


@contextlib.contextmanager
def our_cluster(n_nodes: int = 3) -> Iterator[list[Broker]]:
    """Several brokers of one cluster, under our control.

    Raises
    ------
    ServiceMissing
        Where there is no Java or there are no jars.
    """
    with tempfile.TemporaryDirectory(prefix="rankstream-cluster-") as folder:
        nodes = cluster(Path(folder), n_nodes)
        with contextlib.ExitStack() as running:
            for node in nodes:
                running.callback(node.kill)
            try:
                with ThreadPoolExecutor(n_nodes) as together:
                    list(together.map(Broker.start, nodes))
            except ServerFailed as error:
                raise ServiceMissing(f"no cluster: {error}") from error
            yield nodes


@contextlib.contextmanager
def redis_service(
    environment: Mapping[str, str] = os.environ,
) -> Iterator[RedisService]:
    """A Redis for as long as the context lasts.

    Raises
    ------
    ServiceMissing
        Where there is none.
    """
    named = environment.get("RANKSTREAM_TEST_REDIS")
    if named:
        yield RedisService(named)
    elif has_container_engine():
        with _redis_container() as url:
            yield RedisService(url)
    else:
        with _started(Redis, "Redis") as redis:
            yield RedisService(redis.url, redis)


@contextlib.contextmanager
def _started(make: Callable[[Path], Server], name: str) -> Iterator[Server]:
    with tempfile.TemporaryDirectory(prefix=f"rankstream-{name.lower()}-") as folder:
        server = make(Path(folder))
        try:
            server.start()
        except ServerFailed as error:
            raise ServiceMissing(f"no {name}: {error}") from error
        try:
            yield server
        finally:
            server.kill()


def has_container_engine() -> bool:
    """Whether a container engine answers."""
    try:
        import docker  # noqa: PLC0415  the package is for development only
    except ImportError:
        return False
    try:
        client = docker.from_env(timeout=5)
    except docker.errors.DockerException:
        return False
    try:
        return bool(client.ping())
    except (docker.errors.DockerException, OSError):
        return False
    finally:
        client.close()


def without(reason: ServiceMissing, environment: Mapping[str, str]) -> NoReturn:
    """Skip the test by hand, fail it in CI."""
    if environment.get("CI"):
        pytest.fail(f"tests on real services must run in CI; {reason}")
    pytest.skip(str(reason))


@contextlib.contextmanager
def _kafka_container() -> Iterator[str]:
    from testcontainers.community.kafka import KafkaContainer  # noqa: PLC0415

    container = KafkaContainer(KAFKA_IMAGE).with_kraft()
    for name, value in KAFKA_IN_A_CONTAINER.items():
        container.with_env(name, value)
    with container:
        yield container.get_bootstrap_server()


@contextlib.contextmanager
def _redis_container() -> Iterator[str]:
    from testcontainers.community.redis import RedisContainer  # noqa: PLC0415

    container = RedisContainer(REDIS_IMAGE).with_command(REDIS_IN_A_CONTAINER)
    with container:
        port = container.get_exposed_port(container.port)
        yield f"redis://{container.get_container_host_ip()}:{port}/0"
