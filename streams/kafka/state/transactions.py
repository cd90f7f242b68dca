"""One writer at a time of a partition's state, a role's events or a model."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import InvalidTimestampError, InvalidTransactionTimeout

from rankstream.wire.topics import MAX_RECORD_BYTES, MIB, full_name
from streams.kafka.clients import Cluster, Producer
from streams.kafka.group.membership import Membership
from streams.stage import LogRefused, Output

BULK = 64
"""More records than this for one partition are packed into batches of our own."""


class Transactions:
    """Writes all of something or nothing; whoever fences first shuts the others out.

    Parameters
    ----------
    name
        Their id, without namespace. It names what is written, not who writes it, so
        that the next writer ends what this one had begun, and fences it.
    timeout_ms
        After so long the broker aborts what its producer left.
    """

    def __init__(self, cluster: Cluster, name: str, timeout_ms: int = 0) -> None:
        self._cluster = cluster
        self._name = name
        self._timeout_ms = timeout_ms
        self._producer: Producer | None = None

    async def fence(self, timeout_ms: int = 0) -> None:
        """Become the only writer; ends all that an earlier one has left.

        Raises
        ------
        LogRefused
            Where brokers allow no transaction to last so long.
        """
        await self.close()
        cluster, timeout_ms = self._cluster, timeout_ms or self._timeout_ms
        self._producer = cluster.clients.producer(
            **cluster.client,
            transactional_id=full_name(cluster.namespace, self._name),
            transaction_timeout_ms=timeout_ms,
            request_timeout_ms=timeout_ms,
            acks="all",
            max_request_size=MAX_RECORD_BYTES + MIB,
            max_batch_size=MIB,
            linger_ms=0,
        )
        try:
            await self._producer.start()
        except InvalidTransactionTimeout as error:
            raise LogRefused(
                "delivery.transaction_timeout_ms must be at most what brokers allow; "
                f"got {timeout_ms:,}: lower it, or raise their "
                "transaction.max.timeout.ms"
            ) from error

    async def commit(
        self,
        outputs: Iterable[Output],
        positions: Mapping[TopicPartition, int | tuple[int, str]] | None = None,
        group: str = "",
        member: Membership | None = None,
    ) -> None:
        """All of it in one transaction; returns when that is committed.

        Parameters
        ----------
        positions
            What the group is to have committed by it, if anything.
        member
            Whose positions they are, so that the broker takes them from nobody who
            was voted out; without one it does not ask.

        Raises
        ------
        ValueError
            Before it is fenced.
        VotedOut
            Where the group has gone on without the member; nothing is committed.
        KafkaError
            Whether it is committed is not known: whoever fences next and reads knows.
        """
        producer = self._fenced()
        records: dict[tuple[str, int], list[Output]] = {}
        for output in outputs:
            records.setdefault((output.topic, output.partition), []).append(output)
        await producer.begin_transaction()
        await delivered(
            await _sent_by_turns(
                _sends(producer, self._cluster.place(*at), together)
                for at, together in records.items()
            )
        )
        if positions is not None:
            await producer.send_offsets_to_transaction(positions, group, member)
        await producer.commit_transaction()

    async def abort(self, *parts: Iterable[TopicPartition]) -> None:
        """A marker that aborts in these partitions, one part after another.

        Where a partition had no leader when a transaction ended, it lacks the marker
        for good (KAFKA-20734), and this one's ends that too. Whoever starts next looks
        at some only, so these come last: where this start is killed in between, the
        next one still sees that something hangs.
        """
        producer = self._fenced()
        await producer.begin_transaction()
        for part in parts:
            # A transaction has the partitions that it wrote to; nobody reads these.
            await delivered(
                [
                    await producer.send(
                        at.topic, partition=at.partition, key=b"nothing", value=b""
                    )
                    for at in part
                ]
            )
        await producer.abort_transaction()

    async def abort_positions(
        self, places: Iterable[TopicPartition], group: str
    ) -> None:
        """The same for the positions of a group."""
        producer = self._fenced()
        await producer.begin_transaction()
        await producer.send_offsets_to_transaction(dict.fromkeys(places, 0), group)
        await producer.abort_transaction()

    async def partitions_of(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of topics, by their names without namespace."""
        places: list[TopicPartition] = []
        for topic in topics:
            name = self._cluster.place(topic, 0).topic
            partitions = await self._fenced().partitions_for(name)
            places += [TopicPartition(name, each) for each in sorted(partitions)]
        return places

    async def close(self) -> None:
        """Write no more."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    def _fenced(self) -> Producer:
        if self._producer is None:
            raise ValueError("fence must be called before anything is written")
        return self._producer


async def delivered(sent: Iterable[Any]) -> None:
    """Wait until the brokers have all that was sent.

    Raises
    ------
    LogRefused
        Where their clocks are too far from this machine's.
    """
    try:
        await asyncio.gather(*sent)
    except InvalidTimestampError as error:
        raise LogRefused(
            "the brokers must take the time that this machine gives its records; they "
            "say that it is too far from theirs: set its clock by NTP, and run "
            "`rankstream topics create --alter`, so that they give the time themselves"
        ) from error


async def _sent_by_turns(
    partitions: Iterable[Iterator[Awaitable[Any]]],
) -> list[Any]:
    """Send something of each partition, then again: a request takes a batch of each.

    A batch waits until the one before it of its partition has left.
    """
    sent, turns = [], deque(partitions)
    while turns:
        sends = turns.popleft()
        if (send := next(sends, None)) is not None:
            sent.append(await send)
            turns.append(sends)
    return sent


def _sends(
    producer: Producer, place: TopicPartition, records: Sequence[Output]
) -> Iterator[Awaitable[Any]]:
    """All of a partition, in its order; nothing is made before it is its turn."""
    if len(records) > BULK:
        for batch in _batches(producer, records):
            yield producer.send_batch(batch, place.topic, partition=place.partition)
        return
    for record in records:
        yield producer.send(
            place.topic,
            partition=place.partition,
            key=record.key,
            value=record.value,
            headers=list(record.headers),
        )


def _batches(producer: Producer, records: Iterable[Output]) -> Iterator[Any]:
    """Records packed into batches of our own."""
    batch = producer.create_batch()
    for record in records:
        content = {
            "key": record.key,
            "value": record.value,
            "headers": list(record.headers),
            "timestamp": None,
        }
        if batch.append(**content) is None:
            batch.close()
            yield batch
            batch = producer.create_batch()
            # An empty batch takes a record of any size.
            batch.append(**content)
    batch.close()
    yield batch
