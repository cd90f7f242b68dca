"""What every test has: fixtures of real services, and unhurried properties."""

import os
import uuid
from collections.abc import Generator, Iterator

import pytest
from hypothesis import settings

from tests.services import (
    KafkaService,
    RedisService,
    ServiceMissing,
    kafka_service,
    redis_service,
    without,
)

# The first example of a run may compile a kernel.
settings.register_profile("rankstream", deadline=None)
settings.load_profile("rankstream")

SERVICES = {"kafka", "redis_server"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what uses a real service, so that `-m "not broker"` leaves it out."""
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.broker)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a test on real services that was skipped has failed."""
    report = yield
    was_skipped = report.skipped and not hasattr(report, "wasxfail")
    if was_skipped and os.environ.get("CI") and item.get_closest_marker("broker"):
        report.outcome = "failed"
        report.longrepr = f"must not be skipped in CI; {report.longrepr}"
    return report


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaService]:
    """A real Kafka broker."""
    try:
        with kafka_service() as service:
            yield service
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisService]:
    """A real Redis."""
    try:
        with redis_service() as service:
            yield service
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture
def namespace(request: pytest.FixtureRequest) -> str:
    """A namespace of the test's own, also on a broker that has seen it before."""
    name = "".join(c if c.isascii() and c.isalnum() else "-" for c in request.node.name)
    return f"{name[:60]}-{uuid.uuid4().hex[:8]}"
