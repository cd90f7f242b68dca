"""What every test has: fixtures of real services, and unhurried properties."""

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.services import KafkaService, RedisService, kafka_service, redis_service

# The first example of a run may compile a kernel.
settings.register_profile("rankstream", deadline=None)
settings.load_profile("rankstream")


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaService]:
    """A real Kafka broker."""
    with kafka_service() as service:
        yield service


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisService]:
    """A real Redis."""
    with redis_service() as service:
        yield service


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"{name[:60]}-{id(request) % 100_000}"
