"""Where a process under test gets its Kafka clients."""

from dataclasses import dataclass
from typing import Any

from tests.fakes.consumer import FakeConsumer
from tests.fakes.kafka import FakeKafka
from tests.fakes.points import Point, straight_on
from tests.fakes.producer import FakeProducer


@dataclass(frozen=True)
class FakeClients:
    """Clients of a Kafka in memory, in place of aiokafka's."""

    kafka: FakeKafka
    point: Point = straight_on

    def producer(self, **options: Any) -> FakeProducer:
        """A producer; takes the options of `AIOKafkaProducer`."""
        return FakeProducer(self.kafka, self.point, **options)

    def consumer(self, **options: Any) -> FakeConsumer:
        """A consumer; takes the options of `AIOKafkaConsumer`."""
        return FakeConsumer(self.kafka, self.point, **options)
