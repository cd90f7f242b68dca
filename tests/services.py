"""Real Kafka and Redis for tests, from the best source that there is.

An address in the environment; else a container, where an engine runs; else the
broker's own jars and the Redis binary. Without any, tests that need them are
skipped by hand and fail in CI.
"""

import contextlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from deploy.broker import Broker
from deploy.process import ServerFailed
from deploy.redis_server import Redis


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


def has_container_engine() -> bool:
    """Whether a container engine answers."""
    return Path(os.environ.get("DOCKER_HOST", "/var/run/docker.sock")).exists()


@contextlib.contextmanager
def kafka_service() -> Iterator[KafkaService]:
    """A broker for as long as the context lasts."""
    named = os.environ.get("RANKSTREAM_TEST_KAFKA")
    if named:
        yield KafkaService(named)
    elif has_container_engine():
        from testcontainers.community.kafka import KafkaContainer  # noqa: PLC0415

        with KafkaContainer("confluentinc/cp-kafka:7.9.0").with_kraft() as container:
            yield KafkaService(container.get_bootstrap_server())
    else:
        with tempfile.TemporaryDirectory(prefix="rankstream-kafka-") as folder:
            broker = Broker(Path(folder))
            try:
                broker.start()
            except ServerFailed as error:
                _without("Kafka", error)
            try:
                yield KafkaService(broker.bootstrap, broker)
            finally:
                broker.kill()


@contextlib.contextmanager
def redis_service() -> Iterator[RedisService]:
    """A Redis for as long as the context lasts."""
    named = os.environ.get("RANKSTREAM_TEST_REDIS")
    if named:
        yield RedisService(named)
        return
    with tempfile.TemporaryDirectory(prefix="rankstream-redis-") as folder:
        redis = Redis(Path(folder))
        try:
            redis.start()
        except (ServerFailed, ImportError) as error:
            _without("Redis", error)
        try:
            yield RedisService(redis.url, redis)
        finally:
            redis.kill()


def _without(what: str, error: Exception) -> None:
    if os.environ.get("CI"):
        pytest.fail(f"{what} must run in CI; {error}")
    pytest.skip(f"no {what}: {error}")
