"""One record, by a producer of its own: for what is told now and then."""

from rankstream.wire.topics import MAX_RECORD_BYTES
from streams.kafka.clients import Cluster
from streams.kafka.state.transactions import delivered


async def send_record(cluster: Cluster, topic: str, key: bytes, value: bytes) -> None:
    """Send it to the one partition of a topic; returns when the broker has it.

    Raises
    ------
    KafkaError
    """
    place = cluster.place(topic, 0)
    producer = cluster.clients.producer(
        **cluster.client,
        acks="all",
        enable_idempotence=True,
        max_request_size=MAX_RECORD_BYTES,
    )
    try:
        await producer.start()
        sent = await producer.send(
            place.topic, partition=place.partition, key=key, value=value
        )
        await delivered([sent])
    finally:
        await producer.stop()
