"""The secured broker, which several files of tests share."""

import gc
import os
import warnings
from collections.abc import Iterator

import pytest

from deploy.process import ServerFailed
from tests.services import ServiceMissing, without
from tests.streams.kafka.secured import SecuredBroker, secured_broker


@pytest.fixture
def refused_connections() -> Iterator[None]:
    """Kafka's client leaves sockets open that nobody shook hands with."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


@pytest.fixture(scope="session")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    """The broker and the authority that signs its certificates."""
    try:
        with secured_broker(tmp_path_factory.mktemp("secured")) as broker:
            yield broker
    except ServerFailed as error:
        without(ServiceMissing(f"no Kafka: {error}"), os.environ)
