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

from rankstream.wire.topics import CLICKS, MAX_RECORD_BYTES, MIB, QUERIES, full_name
from streams.kafka.clients import Producer
from streams.kafka.state.state_log import Cluster, delivered
from streams.stage import Output

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
        self._cluster = cluster
        self._group = group
        self._timeout_ms = timeout_ms
        self._producer: Producer | None = None

    async def fence(self) -> None:
        """Become the only writer; ends all that an earlier one has left."""
        await self.close()
        cluster = self._cluster
        self._producer = cluster.clients.producer(
            **cluster.client,
            transactional_id=full_name(cluster.namespace, "rankstream-adapt"),
            transaction_timeout_ms=self._timeout_ms,
            request_timeout_ms=self._timeout_ms,
            acks="all",
            max_request_size=MAX_RECORD_BYTES + MIB,
            max_batch_size=MIB,
            linger_ms=0,
        )
        await self._producer.start()

    async def write(
        self, outputs: Sequence[Output], positions: Mapping[TopicPartition, Position]
    ) -> None:
        """All of it in one transaction; returns when that is committed.

        Raises
        ------
        KafkaError
            Whether it is committed is not known: whoever fences and reads the
            positions knows.
        """
        producer = self._producer
        if producer is None:
            raise ValueError("fence must be called before write")
        await producer.begin_transaction()
        await delivered(
            [
                await producer.send(
                    self._cluster.place(each.topic, each.partition).topic,
                    partition=each.partition,
                    key=each.key,
                    value=each.value,
                    headers=list(each.headers),
                )
                for each in outputs
            ]
        )
        await producer.send_offsets_to_transaction(
            {at: (each.offset, each.topic_id) for at, each in positions.items()},
            self._group,
        )
        await producer.commit_transaction()

    async def end_what_hangs(self, places: Collection[TopicPartition]) -> None:
        """Abort what a broker keeps open of a transaction that has ended.

        Where a broker had no leader when a transaction ended, it may lack the marker
        for good (KAFKA-20734). Reading goes on from the position before it, so its
        events must go. Who starts next looks at the positions: these are closed last.
        Where only a partition of events lacks its marker, the position was committed,
        and the next commit there includes them, as it should.
        """
        producer = self._producer
        if producer is None:
            raise ValueError("fence must be called before anything hangs")
        log.warning("event=ending-what-hangs group=%s", self._group)
        await producer.begin_transaction()
        for topic in (QUERIES, CLICKS):
            name = full_name(self._cluster.namespace, topic)
            await delivered(
                [
                    await producer.send(name, partition=n, key=b"nothing", value=b"")
                    for n in sorted(await producer.partitions_for(name))
                ]
            )
        await producer.abort_transaction()
        await producer.begin_transaction()
        nowhere = dict.fromkeys(places, 0)
        await producer.send_offsets_to_transaction(nowhere, self._group)
        await producer.abort_transaction()

    async def close(self) -> None:
        """Write no more."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()
