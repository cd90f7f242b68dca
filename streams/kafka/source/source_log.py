"""What the role `adapt` writes: events and positions, in one transaction.

There is one writer, whichever worker it is: the id of its transactions is that of the
role. Whoever takes the role over ends what its predecessor had begun, and only then
reads the positions. Every event is in a transaction with the position behind its
document, so no document is adapted twice, and none is left out.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from aiokafka import TopicPartition

from rankstream.wire.topics import CLICKS, QUERIES
from streams.kafka.clients import Cluster
from streams.kafka.state.transactions import Transactions
from streams.stage import Output
from streams.topology import writer_of

log = logging.getLogger("rankstream.adapter")


class Position(NamedTuple):
    """Where reading of a partition goes on, and of which topic; "" where not known."""

    offset: int
    topic_id: str


class SourceLog:
    """The one writer of adapted events.

    Parameters
    ----------
    group
        Whose positions they are.
    timeout_ms
        After so long the broker aborts what its producer left.
    """

    def __init__(self, cluster: Cluster, group: str, timeout_ms: int) -> None:
        self._group = group
        self._transactions = Transactions(cluster, writer_of("adapt"), timeout_ms)

    async def fence(self) -> None:
        """Become the only writer; ends all that an earlier one has left."""
        await self._transactions.fence()

    async def write(
        self, outputs: Sequence[Output], positions: Mapping[TopicPartition, Position]
    ) -> None:
        """All of it in one transaction; raises as `Transactions.commit` does."""
        told = {at: (each.offset, each.topic_id) for at, each in positions.items()}
        await self._transactions.commit(outputs, told, self._group)

    async def end_what_hangs(self, places: Collection[TopicPartition]) -> None:
        """Abort what a broker keeps open of a transaction that has ended.

        Reading goes on from the position before it, so its events must go. Who starts
        next looks at the positions: these are closed last. Where only a partition of
        events lacks its marker, the position was committed, and the next commit there
        includes them, as it should.
        """
        log.warning("event=ending-what-hangs group=%s", self._group)
        events = await self._transactions.partitions_of((QUERIES, CLICKS))
        await self._transactions.abort(events)
        await self._transactions.abort_positions(places, self._group)

    async def close(self) -> None:
        """Write no more."""
        await self._transactions.close()
