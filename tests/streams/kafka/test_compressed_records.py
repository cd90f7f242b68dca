"""Small on the wire and large once unpacked: the broker refuses it, and goes on."""

import asyncio
import time
from collections.abc import Iterator

import pytest
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from kafka import KafkaConsumer, KafkaProducer

from deploy.broker import Broker
from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import MIB, QUERIES
from streams.topology import topics_of
from tests.bombs import Bomb, throw
from tests.services import ServiceMissing, our_broker, without
from tests.worker_process import PATIENCE_S

pytestmark = pytest.mark.broker

GOOD = b'{"packed": "%s"}' % (b"x" * 100_000)


@pytest.fixture
def own_broker() -> Iterator[Broker]:
    """A broker of the test's own, of 512 MiB: another test's must not suffer."""
    try:
        with our_broker() as broker:
            settings = Settings(kafka=KafkaSettings(bootstrap=broker.bootstrap))
            admin = TopicAdmin(settings, topics_of(settings.kafka))
            admin.create()
            admin.close()
            yield broker
    except ServiceMissing as reason:
        without(reason, {})


def test_what_would_be_too_large_unpacked_is_refused_and_nobody_else_is_harmed(
    own_broker: Broker,
) -> None:
    """Up to eight megabytes that unpack to eight gigabytes.

    Where even the broker has no room for it, it says so less plainly; where it ends of
    it, nothing is lost either.
    """
    bootstrap = own_broker.bootstrap
    bombs = {
        "no larger than others": (Bomb(1, 7 * MIB), None),
        "two in a batch": (Bomb(2, 7 * MIB), MessageSizeTooLargeError),
        "one record": (Bomb(1, 100 * MIB), MessageSizeTooLargeError),
        "one of 1,000 MB": (Bomb(1, 1_000 * MIB), KafkaError),
        "8 MB of 7 GB": (Bomb(1_000, 7 * MIB), KafkaError),
    }
    sent = []
    for name, (bomb, refusal) in bombs.items():
        assert bomb.size() < 8 * MIB
        if refusal is None:
            asyncio.run(throw(bootstrap, QUERIES, bomb))
            sent.append(b" " * 7 * MIB)
        else:
            with pytest.raises(refusal):
                asyncio.run(throw(bootstrap, QUERIES, bomb))
        own_broker.start()  # which does nothing where it runs
        send(bootstrap, good := GOOD + name.encode())
        sent.append(good)
    assert values(bootstrap, len(sent)) == sent


def send(bootstrap: str, value: bytes) -> None:
    """Send what a client that compresses may send, and wait for the answer."""
    producer = KafkaProducer(bootstrap_servers=bootstrap, compression_type="gzip")
    producer.send(QUERIES, value, partition=0).get(timeout=PATIENCE_S)
    producer.close()


def values(bootstrap: str, n_values: int) -> list[bytes]:
    """What a reader of the topic is given, as many as there should be."""
    consumer = KafkaConsumer(
        QUERIES, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    )
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < n_values and time.monotonic() < deadline:
        for records in consumer.poll(timeout_ms=500).values():
            found += [record.value for record in records]
    assert not consumer.poll(timeout_ms=200)
    consumer.close()
    return found
