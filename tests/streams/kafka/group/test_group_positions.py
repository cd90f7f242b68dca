"""What asking for positions leaves behind where no broker answers."""

import gc
import logging
import os
import socket
import threading
from collections.abc import Iterator
from contextlib import closing

import pytest
from aiokafka import TopicPartition

from streams.kafka.broker_away import BrokerAway
from streams.kafka.group.group_positions import stable_positions

N_ASKED, ASK_MS = 3, 200


@pytest.fixture
def no_collector(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """As in a worker, whose collector hardly runs, and which keeps no log lines."""
    caplog.set_level(logging.CRITICAL, "kafka")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def n_open() -> int:
    """Files and sockets of this process."""
    return len(os.listdir("/dev/fd"))


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize("is_silent", [False, True])
def test_a_broker_that_is_away_leaves_no_thread_and_no_socket(is_silent: bool) -> None:
    """It is asked again until it answers, which may be for hours."""
    with closing(socket.socket()) as broker:
        broker.bind(("127.0.0.1", 0))
        if is_silent:
            broker.listen()
        client = {"bootstrap_servers": f"127.0.0.1:{broker.getsockname()[1]}"}
        before = threading.active_count(), n_open()
        for _ in range(N_ASKED):
            with pytest.raises(BrokerAway, match="KafkaTimeoutError"):
                stable_positions(client, "group", [TopicPartition("a", 0)], ASK_MS)
        assert (threading.active_count(), n_open()) == before
