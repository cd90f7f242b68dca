"""The Kafka clients of a stage's process, made by aiokafka or by a test.

The protocols say all that is asked of a client; they behave and fail as aiokafka's do.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from aiokafka import AIOKafkaConsumer, TopicPartition

from rankstream.wire.topics import full_name
from streams.kafka.group.group_positions import Committed, stable_positions
from streams.kafka.group.member_offsets import MemberProducer
from streams.kafka.group.membership import Membership


class Producer(Protocol):
    """A transactional producer."""

    async def start(self) -> None:
        """Connect, and fence whoever had its transactional id."""

    async def stop(self) -> None:
        """Disconnect."""

    async def partitions_for(self, topic: str) -> set[int]:
        """Partitions of a topic."""

    async def begin_transaction(self) -> None:
        """Begin a transaction."""

    async def commit_transaction(self) -> None:
        """Commit it, once everything was sent."""

    async def abort_transaction(self) -> None:
        """Abort it."""

    async def send(
        self,
        topic: str,
        *,
        partition: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[tuple[str, bytes]] = (),
    ) -> Awaitable[Any]:
        """Send a record; what is returned is done when the broker has it."""

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, int | tuple[int, str]],
        group_id: str,
        member: Membership | None = None,
    ) -> None:
        """Let a consumer group have committed these offsets, if this is committed.

        Raises `VotedOut` where the member is none of the group's generation.
        """

    def create_batch(self) -> Any:
        """An empty batch, with `append` and `close`."""

    async def send_batch(
        self, batch: Any, topic: str, *, partition: int
    ) -> Awaitable[Any]:
        """Send a batch that was closed."""


class Consumer(Protocol):
    """A consumer without a group."""

    async def start(self) -> None:
        """Connect."""

    async def stop(self) -> None:
        """Disconnect."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        """Read these partitions, and no other."""

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Partitions of a topic, None where it is not known."""

    def seek(self, partition: TopicPartition, offset: int) -> None:
        """Go on at an offset."""

    async def beginning_offsets(
        self, partitions: list[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Offset of the oldest record of each partition."""

    async def end_offsets(
        self, partitions: list[TopicPartition]
    ) -> Mapping[TopicPartition, int]:
        """Offset behind the newest record that the isolation level shows."""

    async def getmany(
        self, *partitions: TopicPartition, timeout_ms: int
    ) -> Mapping[TopicPartition, list[Any]]:
        """Records that came, by partition."""

    async def position(self, partition: TopicPartition) -> int:
        """Offset of what is read next."""

    def last_stable_offset(self, partition: TopicPartition) -> int | None:
        """The end of what is decided, as of the last fetch; None before one."""


class Clients(Protocol):
    """Makes clients; options are those of aiokafka's."""

    def producer(self, **options: Any) -> Producer:
        """A producer that was not started yet."""

    def consumer(self, **options: Any) -> Consumer:
        """A consumer that was not started yet."""

    async def positions(
        self,
        options: Mapping[str, Any],
        group: str,
        places: Collection[TopicPartition],
    ) -> Mapping[TopicPartition, Committed]:
        """What a group has committed, once nothing can change it any more.

        Raises
        ------
        PositionsHang
            Where that takes long.
        """


class TidyConsumer(AIOKafkaConsumer):  # type: ignore[misc]
    """A consumer of aiokafka's whose stop lets go of all that it has.

    The library's own cancels its tasks and waits for them. One that has not begun, as
    right after the start (aiokafka issue 647), or that pauses after a failed fetch,
    lets its cancellation out: whoever stops the consumer would take it for his own, and
    the connection would stay open.
    """

    async def stop(self) -> None:
        """Disconnect, also right after the start and while fetches fail."""
        # In a task of its own no cancellation but ours comes from outside.
        closing = asyncio.ensure_future(self._let_go())
        try:
            await asyncio.wait({closing})
        except asyncio.CancelledError:
            closing.cancel()
            await asyncio.wait({closing})
            raise
        if not closing.cancelled():
            closing.result()

    async def _let_go(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(0)  # each of its tasks begins
        try:
            await super().stop()
        except asyncio.CancelledError:
            # It was left where it was: the fetches of other nodes may still connect.
            if self._fetcher is not None:
                tasks = [self._fetcher._fetch_task, *self._fetcher._pending_tasks]  # noqa: SLF001
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
            await self._client.close()


class KafkaClients:
    """Clients that reach a broker."""

    def producer(self, **options: Any) -> Producer:
        """One of aiokafka's."""
        made: Producer = MemberProducer(**options)
        return made

    def consumer(self, **options: Any) -> Consumer:
        """One of aiokafka's."""
        made: Consumer = TidyConsumer(**options)
        return made

    async def positions(
        self,
        options: Mapping[str, Any],
        group: str,
        places: Collection[TopicPartition],
    ) -> Mapping[TopicPartition, Committed]:
        """Asked beside the loop, with kafka-python."""
        return await asyncio.to_thread(stable_positions, options, group, places)


AIOKAFKA = KafkaClients()
"""Those that every process has, unless it is told of others."""


@dataclass(frozen=True)
class Cluster:
    """How to reach Kafka, and which topics are meant.

    Parameters
    ----------
    client
        Options that every aiokafka client takes.
    topic_ids
        Ids of the source topics as they were when the process started.
    clients
        Makes them.
    """

    namespace: str
    client: Mapping[str, Any] = field(repr=False)  # it holds the password
    topic_ids: Mapping[str, str]
    clients: Clients = AIOKAFKA

    def place(self, topic: str, partition: int) -> TopicPartition:
        """A partition of one of our topics on the cluster."""
        return TopicPartition(full_name(self.namespace, topic), partition)
