"""Records of transactions that have not ended, or that a broker keeps open for good."""

import asyncio
from collections.abc import Sequence

from aiokafka import TopicPartition

from streams.kafka.clients import Cluster

LOOKS_S, BETWEEN_LOOKS_S = 1.5, 0.3
"""For how long, and how far apart, to look whether a transaction of ours has ended."""


async def have_stuck(cluster: Cluster, places: Sequence[TopicPartition]) -> bool:
    """Whether any of the partitions has open records that stay the first for a while.

    Others may write to them: what they have open moves on.
    """
    committed = cluster.clients.consumer(
        **cluster.client, isolation_level="read_committed"
    )
    everything = cluster.clients.consumer(**cluster.client)
    try:
        await committed.start()
        await everything.start()
        asked = list(places)
        stuck: dict[TopicPartition, int] | None = None
        for _ in range(round(LOOKS_S / BETWEEN_LOOKS_S)):
            stable, last = await asyncio.gather(
                committed.end_offsets(asked),
                everything.end_offsets(asked),
            )
            found = {at: stable[at] for at in places if stable[at] < last[at]}
            if stuck is not None:
                found = {at: n for at, n in found.items() if stuck.get(at) == n}
            if not found:
                return False
            stuck = found
            await asyncio.sleep(BETWEEN_LOOKS_S)
    finally:
        await committed.stop()
        await everything.stop()
    return True
