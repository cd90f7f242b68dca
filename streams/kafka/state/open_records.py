"""Records of transactions that have not ended, or that a broker keeps open for good."""

import asyncio
from collections.abc import Sequence

from aiokafka import TopicPartition

from streams.kafka.clients import Cluster

LOOKS_S, BETWEEN_LOOKS_S = 1.5, 0.3
"""For how long, and how far apart, to look whether a transaction of ours has ended."""


async def have_stuck(cluster: Cluster, places: Sequence[TopicPartition]) -> bool:
    """Whether records of any of the partitions stay open for a while.

    Of what is there by now: others may write more to them.
    """
    committed = cluster.clients.consumer(
        **cluster.client, isolation_level="read_committed"
    )
    everything = cluster.clients.consumer(**cluster.client)
    try:
        await committed.start()
        await everything.start()
        written = await everything.end_offsets(list(places))
        for _ in range(round(LOOKS_S / BETWEEN_LOOKS_S)):
            decided = await committed.end_offsets(list(places))
            if all(decided[place] >= written[place] for place in places):
                return False
            await asyncio.sleep(BETWEEN_LOOKS_S)
    finally:
        await committed.stop()
        await everything.stop()
    return True
