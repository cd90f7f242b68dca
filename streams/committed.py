"""Committed records of a topic, from its beginning and on, without a group."""

import asyncio
import logging
from collections.abc import AsyncIterator

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from rankstream.topics import MAX_RECORD_BYTES, MIB, full_name
from streams.checkpoint import Cluster

log = logging.getLogger("rankstream.committed")


async def committed_records(
    cluster: Cluster, topic: str
) -> AsyncIterator[tuple[bytes | None, bytes | None]]:
    """Key and value of every committed record of partition 0; rides out outages."""
    place = TopicPartition(full_name(cluster.namespace, topic), 0)
    offset = 0
    while True:
        consumer = AIOKafkaConsumer(
            **cluster.client,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_partition_fetch_bytes=MAX_RECORD_BYTES + MIB,
            fetch_max_wait_ms=100,
        )
        try:
            await consumer.start()
            consumer.assign([place])
            if offset:
                consumer.seek(place, offset)
            async for record in consumer:
                offset = record.offset + 1
                yield record.key, record.value
        except KafkaError as error:
            log.warning("event=kafka-away reason=%s", type(error).__name__)
            await asyncio.sleep(1.0)
        finally:
            await consumer.stop()
