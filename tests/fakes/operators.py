"""What is done to a cluster, but not by a client: to a broker, and to the fake."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from aiokafka import TopicPartition
from kafka import KafkaAdminClient
from kafka import TopicPartition as AdminPlace
from kafka.errors import TopicAlreadyExistsError

from tests.fakes.kafka import FakeKafka

ENDING = ["PrepareCommit", "PrepareAbort", "PrepareEpochFence"]
LONGEST_S = 300.0


class FakeOperator:
    """Of a Kafka in memory, which writes its markers at once."""

    def __init__(self, kafka: FakeKafka) -> None:
        self._kafka = kafka

    async def recreate(self, topic: str, n_partitions: int) -> None:
        """Delete a topic, and create it again."""
        self._kafka.delete(topic)
        self._kafka.create(topic, n_partitions)

    async def delete_before(self, place: TopicPartition, offset: int) -> None:
        """Delete records."""
        self._kafka.delete_before(place, offset)

    async def settle(self, names: set[str]) -> None:
        """Wait for nothing."""

    async def expire(self, name: str) -> None:
        """Let an open transaction time out."""
        self._kafka.transactions.expire(name)


class BrokerOperator:
    """Of a broker, over one connection for all schedules."""

    def __init__(self, admin: KafkaAdminClient) -> None:
        self._admin = admin
        self._turn = asyncio.Lock()

    async def recreate(self, topic: str, n_partitions: int) -> None:
        """Delete a topic, and create it again once it is gone."""
        await self._do(lambda: self._admin.delete_topics([topic]))
        wanted = {topic: {"num_partitions": n_partitions, "replication_factor": 1}}

        def create() -> bool:
            try:
                self._admin.create_topics(wanted, wait_for_metadata=True)
            except TopicAlreadyExistsError:
                return False
            return True

        await self._until(create)

    async def delete_before(self, place: TopicPartition, offset: int) -> None:
        """Delete records."""
        at = AdminPlace(place.topic, place.partition)
        await self._do(lambda: self._admin.delete_records({at: offset}))

    async def settle(self, names: set[str]) -> None:
        """Wait until no transaction of these ids is ending."""
        await self._until(lambda: not self._are_in(names, ENDING))

    async def expire(self, name: str) -> None:
        """Wait until an open transaction has timed out."""
        await self._until(lambda: not self._are_in({name}, ["Ongoing", *ENDING]))

    def _are_in(self, names: set[str], states: list[str]) -> bool:
        listed = self._admin.list_transactions(state_filters=states)
        return any(
            each.transactional_id in names for some in listed.values() for each in some
        )

    async def _until(self, is_true: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + LONGEST_S
        while not await self._do(is_true):
            assert time.monotonic() < deadline_s, "waited for too long"
            await asyncio.sleep(0.05)

    async def _do(self, work: Callable[[], Any]) -> Any:
        async with self._turn:
            return await asyncio.to_thread(work)
