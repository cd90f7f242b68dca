"""Whole partitions of compacted topics, in batches, as who writes them last left them.

Whoever writes a partition does so in transactions, so what is read up to the last
stable offset is a state that was committed. The end moves on while it is read: what
compaction takes away meanwhile has come again before the end that is reached.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import TypeVar

from aiokafka import TopicPartition

from streams.kafka.clients import Cluster, Consumer
from streams.kafka.whole_batches import FETCH_BYTES, POLL_MS, WHOLE, each_of

Pair = tuple[bytes, bytes | None]
"""Key and value; without a value the key was removed."""

Check = Callable[[], None]

T = TypeVar("T")
Result = TypeVar("Result")


async def decided_end(cluster: Cluster, place: TopicPartition) -> int:
    """The offset behind the newest record, be it committed or not."""
    consumer = cluster.clients.consumer(**cluster.client)
    try:
        await consumer.start()
        return (await consumer.end_offsets([place]))[place]
    finally:
        await consumer.stop()


async def whole_partition(
    cluster: Cluster, place: TopicPartition, check: Check, *, at_least: int = 0
) -> AsyncGenerator[list[Pair], None]:
    """Committed records from the beginning to the end, batch by batch.

    Parameters
    ----------
    check
        Is called before each batch, and may raise.
    at_least
        An offset that must be stable before it ends: what was under way before it has
        been decided then.
    """
    consumer = cluster.clients.consumer(
        **cluster.client,
        isolation_level="read_committed",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_partition_fetch_bytes=FETCH_BYTES,
        key_deserializer=WHOLE,
    )
    try:
        await consumer.start()
        consumer.assign([place])
        is_over = False
        while not is_over:
            check()
            fetched = await consumer.getmany(place, timeout_ms=POLL_MS)
            records = each_of(fetched.get(place, []))
            is_over = await _is_at_end(consumer, place, at_least)
            if records:
                yield [(one.key, one.value) for one in records if one.key is not None]
    finally:
        await consumer.stop()


async def _is_at_end(consumer: Consumer, place: TopicPartition, at_least: int) -> bool:
    position = await consumer.position(place)
    stable = consumer.last_stable_offset(place)
    return stable is not None and position >= max(stable, at_least)


async def whole_topic(
    cluster: Cluster, places: Sequence[TopicPartition], check: Check
) -> AsyncGenerator[list[Pair], None]:
    """The same of several partitions, one after another."""
    for place in places:
        async for pairs in whole_partition(cluster, place, check):
            yield pairs


async def built_of(
    read: AsyncGenerator[list[T], None], build: Callable[[Iterator[T]], Result]
) -> Result:
    """Build something in a thread of what is read in this loop meanwhile.

    Raises
    ------
    Exception
        What reading or building failed with.
    """
    loop = asyncio.get_running_loop()

    def pulled() -> Iterator[T]:
        while True:
            asked = asyncio.run_coroutine_threadsafe(anext(read, None), loop)
            chunk = asked.result()
            if chunk is None:
                return
            yield from chunk

    try:
        return await asyncio.to_thread(build, pulled())
    finally:
        await read.aclose()
