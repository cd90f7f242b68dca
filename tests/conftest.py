"""What every test has: fixtures of real services, and unhurried properties."""

import contextlib
import os
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from xdist.remote import Producer

from tests.printed_json import hold_to_schemas
from tests.services import (
    KafkaService,
    RedisService,
    ServiceMissing,
    kafka_service,
    our_broker,
    redis_service,
    without,
)
from tests.session.broker_classes import VARIABLE, java_options
from tests.session.budget import Budget, Summary
from tests.session.durations import kept, quicker
from tests.session.scheduling import LongestFirst

# The first example of a run may compile a kernel. CI draws the same ones each time.
settings.register_profile("rankstream", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("rankstream")

os.environ.setdefault(VARIABLE, java_options())

SERVICES = {"kafka", "breakable_kafka", "redis_server"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """How durations and pictures of a run are kept."""
    parser.addoption(
        "--keep-durations", type=Path, metavar="FILE",
        help="write what each test took to this table",
    )  # fmt: skip
    parser.addoption(
        "--screenshots", type=Path, metavar="FOLDER",
        help="keep what the monitor's page looks like in each of its states",
    )  # fmt: skip
    parser.addoption(
        "--under", type=float, metavar="SECONDS",
        help="leave out tests that took as long, all their cases together, before",
    )  # fmt: skip


def pytest_configure(config: pytest.Config) -> None:
    """Measure where tests run, and tell where the run is told of."""
    config.pluginmanager.register(Budget(), "budget")
    if not hasattr(config, "workerinput"):
        summary = Summary(config.getoption("--keep-durations"))
        config.pluginmanager.register(summary, "durations")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(
    config: pytest.Config, log: Producer
) -> LongestFirst | None:
    """Files in the order of what they took, where files are to be spread."""
    if config.getoption("dist") != "loadfile":
        return None
    return LongestFirst(config, log, kept())


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark what uses a real service, so that `-m "not broker"` leaves it out."""
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.broker)
    under = config.getoption("--under")
    if under is not None:
        is_quick = quicker([item.nodeid for item in items], kept(), under)
        longer = [item for item in items if not is_quick[item.nodeid]]
        config.hook.pytest_deselected(items=longer)
        items[:] = [item for item in items if is_quick[item.nodeid]]


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
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> KafkaService:
    """A real Kafka broker, which all processes of the run share."""
    folder = tmp_path_factory.getbasetemp()
    if hasattr(request.config, "workerinput"):
        folder = folder.parent
    until_the_end = contextlib.ExitStack()
    request.config.add_cleanup(until_the_end.close)
    try:
        return until_the_end.enter_context(kafka_service(folder))
    except ServiceMissing as reason:
        without(reason, os.environ)


@pytest.fixture(scope="module")
def breakable_kafka() -> Iterator[KafkaService]:
    """A broker of the file's own: it can be killed and paused."""
    try:
        with our_broker() as broker:
            yield KafkaService(broker.bootstrap, broker)
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


@pytest.fixture(autouse=True)
def _printed_json_fits_its_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a test asks of a command: see `tests.printed_json`."""
    hold_to_schemas(monkeypatch)
