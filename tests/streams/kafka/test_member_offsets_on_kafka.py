"""A broker takes offsets from members of the generation only, and the fake does too."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from kafka import KafkaAdminClient

from streams.kafka.clients import Cluster, KafkaClients, Producer
from streams.kafka.group.group_positions import (
    Committed,
    PositionsHang,
    stable_positions,
)
from streams.kafka.group.member_offsets import VotedOut
from streams.kafka.group.membership import Membership
from streams.kafka.state.transactions import Transactions
from streams.stage import LogRefused
from tests.services import KafkaService

ASK_MS, HANG_MS = 60_000, 5_000
"""How long a broker may take to answer, and until what it does not say hangs."""

BUSY_MS = 60_000
"""A member of a busy machine may be silent for so long, and is one still."""


class Bench:
    """A topic of two partitions, a group, and who is its member."""

    def __init__(self, bootstrap: str) -> None:
        self.name = uuid.uuid4().hex[:8]
        self.client = {"bootstrap_servers": bootstrap}
        self.place = TopicPartition(self.name, 0)
        self.consumers: list[AIOKafkaConsumer] = []
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        topics = {self.name: {"num_partitions": 2, "replication_factor": 1}}
        admin.create_topics(topics, wait_for_metadata=True)
        admin.close()

    async def join(self, instance: str | None = None) -> AIOKafkaConsumer:
        """One more member, once all have their share."""
        consumer = AIOKafkaConsumer(
            self.name,
            group_id=self.name,
            group_instance_id=instance,
            heartbeat_interval_ms=100,
            rebalance_timeout_ms=BUSY_MS,
            session_timeout_ms=BUSY_MS,
            enable_auto_commit=False,
            **self.client,
        )
        self.consumers.append(consumer)
        await consumer.start()
        alive = [each for each in self.consumers if not each._closed]
        while len({as_member(each).generation for each in alive}) > 1 or not all(
            each.assignment() for each in alive
        ):
            await asyncio.sleep(0.02)
        return consumer

    async def commit(self, offset: int, member: Membership | None) -> None:
        """The offset of the group, in a transaction of its own."""
        async with self.begun(offset, member) as producer:
            await producer.commit_transaction()

    @asynccontextmanager
    async def begun(
        self, offset: int, member: Membership | None
    ) -> AsyncIterator[Producer]:
        """A transaction with an offset that has not ended yet."""
        producer = KafkaClients().producer(
            transactional_id=uuid.uuid4().hex, **self.client
        )
        await producer.start()
        try:
            await producer.begin_transaction()
            await (await producer.send(self.name, partition=1, key=b"k", value=b"v"))
            await producer.send_offsets_to_transaction(
                {self.place: (offset, "")}, self.name, member
            )
            yield producer
        finally:
            await producer.stop()

    async def positions(self, ask_ms: int = ASK_MS) -> dict[TopicPartition, Committed]:
        """What the group has committed."""
        asked = self.client, self.name, [self.place], ask_ms
        return await asyncio.to_thread(stable_positions, *asked)


def as_member(consumer: AIOKafkaConsumer) -> Membership:
    """As whom a consumer takes part by now."""
    coordinator = consumer._coordinator
    return Membership(
        coordinator.generation,
        coordinator.member_id,
        coordinator._group_instance_id or "",
        frozenset(consumer.assignment()),
    )


async def closed(bench: Bench) -> None:
    """All members leave."""
    for consumer in bench.consumers:
        await consumer.stop()


def test_who_was_voted_out_commits_nothing(kafka: KafkaService) -> None:
    """Of another generation, or no member; and each generation is the next number."""

    async def body() -> None:
        bench = Bench(kafka.bootstrap)
        try:
            first = await bench.join()
            before = as_member(first)
            await bench.commit(5, before)
            assert await bench.positions() == {bench.place: Committed(5, "")}
            await bench.join()
            now = as_member(first)
            assert now.generation == before.generation + 1
            assert now.follows(before)
            with pytest.raises(VotedOut, match="of another generation"):
                await bench.commit(6, before)
            with pytest.raises(VotedOut, match="no member"):
                await bench.commit(7, now._replace(member_id="nobody"))
            assert await bench.positions() == {bench.place: Committed(5, "")}
            await bench.commit(8, now)
            assert await bench.positions() == {bench.place: Committed(8, "")}
        finally:
            await closed(bench)

    asyncio.run(body())


def test_an_instance_that_has_a_successor_commits_nothing(kafka: KafkaService) -> None:
    """The generation is the same, the member another."""

    async def body() -> None:
        bench = Bench(kafka.bootstrap)
        try:
            first = await bench.join("one")
            before = as_member(first)
            await bench.commit(5, before)
            first._coordinator._group_instance_id = "one"
            task = first._coordinator._coordination_task
            task.cancel()  # it hears of nothing any more
            first._closed = True
            second = await bench.join("one")
            assert as_member(second).generation == before.generation
            with pytest.raises(VotedOut, match="another instance"):
                await bench.commit(6, before)
            await bench.commit(7, as_member(second))
            first._closed = False
        finally:
            await closed(bench)

    asyncio.run(body())


def test_a_transaction_may_last_as_long_as_brokers_allow(kafka: KafkaService) -> None:
    """A longer one is refused in words, as it will never be allowed."""

    async def body() -> None:
        client = {"bootstrap_servers": kafka.bootstrap}
        own = Transactions(Cluster(uuid.uuid4().hex[:8], client, {}), "long")
        await own.fence(900_000)
        with pytest.raises(LogRefused, match="must be at most what brokers allow"):
            await own.fence(900_001)
        await own.close()

    asyncio.run(body())


def test_positions_are_told_once_nothing_can_move_them(kafka: KafkaService) -> None:
    """Also where a transaction began to end before its writer was voted out."""

    async def body() -> None:
        bench = Bench(kafka.bootstrap)
        try:
            first = await bench.join()
            await bench.commit(5, as_member(first))
            async with bench.begun(6, as_member(first)) as producer:
                await bench.join()
                with pytest.raises(PositionsHang):
                    await bench.positions(HANG_MS)
                await producer.commit_transaction()
            assert await bench.positions() == {bench.place: Committed(6, "")}
        finally:
            await closed(bench)

    asyncio.run(body())
