"""What a real broker and its clients say of append times."""

import asyncio
import logging
from typing import Any

import aiokafka
import pytest
from faust.types import TP
from kafka import KafkaProducer

from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.topics import CLICKS, INPUT, KEPT, QUERIES, Topic, full_name
from streams.kafka.append_time import AppendTimes, ClockDifference, wall_ms
from tests.services import KafkaService

OURS = "rankstream.worker"

CREATED_MS = 1_000
"""What the client says: 1970."""


async def read(bootstrap: str, topic: str) -> Any:
    """The only record of a topic, as the client has it."""
    consumer = aiokafka.AIOKafkaConsumer(
        topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        return await consumer.getone()
    finally:
        await consumer.stop()


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What we said ourselves, without the clients."""
    return [each.getMessage() for each in caplog.records if each.name == OURS]


@pytest.mark.broker
def test_a_clients_time_is_told_from_the_brokers(
    kafka: KafkaService, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An input topic has the broker's; one that is not altered yet has the client's.

    Neither record is taken to be of 1970, and the clocks agree, as they are one.
    """
    own = KafkaSettings(bootstrap=kafka.bootstrap)
    settings = Settings(namespace=namespace, kafka=own)
    older = KEPT | {"message.timestamp.type": "CreateTime"}
    admin = TopicAdmin(settings, [Topic(QUERIES, 1, INPUT), Topic(CLICKS, 1, older)])
    admin.create()
    admin.close()
    before_ms = wall_ms()
    with KafkaProducer(bootstrap_servers=kafka.bootstrap) as producer:
        for name in (QUERIES, CLICKS):
            topic = full_name(namespace, name)
            producer.send(topic, b"{}", timestamp_ms=CREATED_MS).get(60)
    altered, other = (
        asyncio.run(read(kafka.bootstrap, full_name(namespace, name)))
        for name in (QUERIES, CLICKS)
    )
    times, clocks = AppendTimes(), ClockDifference()
    with caplog.at_level(logging.WARNING, OURS):
        place = TP(altered.topic, 0)
        (found_ms,) = times.of(place, [altered])
        clocks.see(place, altered, told_ms=before_ms, now_ms=wall_ms())
        assert said(caplog) == []
        (read_ms,) = times.of(TP(other.topic, 0), [other])

    assert other.timestamp == CREATED_MS
    assert found_ms == altered.timestamp
    assert before_ms <= found_ms <= wall_ms()
    assert found_ms <= read_ms <= wall_ms()
    assert clocks.seconds(place) == 0
    (line,) = said(caplog)
    assert f"event=no-append-time place={other.topic}[0]@0" in line
