"""Where a process under test gets its Kafka clients."""

import asyncio
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from aiokafka import TopicPartition

from streams.kafka.group.group_positions import Committed, PositionsHang
from tests.fakes.consumer import FakeConsumer
from tests.fakes.kafka import FakeKafka
from tests.fakes.points import Point, straight_on
from tests.fakes.producer import FakeProducer

ASKED = 10
"""Times that a broker is asked for positions before they hang."""


@dataclass(frozen=True)
class FakeClients:
    """Clients of a Kafka in memory, in place of aiokafka's."""

    kafka: FakeKafka
    point: Point = straight_on

    def producer(self, **options: Any) -> FakeProducer:
        """A producer; takes the options of `AIOKafkaProducer`."""
        return FakeProducer(self.kafka, self.point, **options)

    async def positions(
        self,
        options: Mapping[str, Any],  # noqa: ARG002
        group: str,
        places: Collection[TopicPartition],
    ) -> dict[TopicPartition, Committed]:
        """Offsets of a group, once no transaction can move them any more."""
        for _ in range(ASKED):
            await self.point("ask for positions")
            if not any(self.kafka.transactions.may_move(group, at) for at in places):
                found = self.kafka.groups.get(group, {})
                await self.point("ask for positions, answered")
                return {at: Committed(found[at], "") for at in places if at in found}
            await asyncio.sleep(1)
        raise PositionsHang

    def consumer(self, **options: Any) -> FakeConsumer:
        """A consumer; takes the options of `AIOKafkaConsumer`."""
        return FakeConsumer(self.kafka, self.point, **options)
