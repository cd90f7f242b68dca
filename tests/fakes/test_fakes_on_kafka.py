"""The fake does what a broker does, as far as drawn schedules can tell."""

import asyncio
import uuid
from dataclasses import dataclass
from pprint import pformat
from typing import Any

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from kafka import KafkaAdminClient

from tests.fakes.clients import FakeClients
from tests.fakes.driver import Driver, Seen
from tests.fakes.kafka import FakeKafka
from tests.fakes.operators import BrokerOperator, FakeOperator
from tests.fakes.schedules import TOPICS, drawn
from tests.services import KafkaService

SEEDS = range(25)
AT_ONCE = 10


@dataclass(frozen=True)
class BrokerClients:
    """Clients of a broker."""

    bootstrap: str

    def producer(self, **options: Any) -> AIOKafkaProducer:
        """A producer."""
        return AIOKafkaProducer(bootstrap_servers=self.bootstrap, **options)

    def consumer(self, **options: Any) -> AIOKafkaConsumer:
        """A consumer."""
        return AIOKafkaConsumer(bootstrap_servers=self.bootstrap, **options)


async def on_the_fake(seed: int) -> list[Seen]:
    """What a schedule sees of the fake."""
    kafka = FakeKafka()
    for topic, n_partitions in TOPICS.items():
        kafka.create(topic, n_partitions)
    return await Driver(FakeClients(kafka), FakeOperator(kafka), "").run(drawn(seed))


async def on_the_broker(bootstrap: str, seeds: range) -> list[list[Seen]]:
    """What schedules see of a broker, each with topics of its own."""
    # Some futures fail whose producer was fenced before anybody waits for them.
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)
    run = uuid.uuid4().hex[:8]
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        wanted = {
            f"{run}-{seed}-{topic}": {
                "num_partitions": n_partitions,
                "replication_factor": 1,
            }
            for seed in seeds
            for topic, n_partitions in TOPICS.items()
        }
        await asyncio.to_thread(admin.create_topics, wanted, wait_for_metadata=True)
        operator = BrokerOperator(admin)
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(seed: int) -> list[Seen]:
            async with turns:
                driver = Driver(BrokerClients(bootstrap), operator, f"{run}-{seed}-")
                return await driver.run(drawn(seed))

        return await asyncio.gather(*(one(seed) for seed in seeds))
    finally:
        admin.close()


def test_drawn_schedules_see_the_same_of_both(kafka: KafkaService) -> None:
    """Offsets, records, positions, ends, and errors by class, step by step."""
    seen = asyncio.run(on_the_broker(kafka.bootstrap, SEEDS))
    for seed, there in zip(SEEDS, seen, strict=True):
        here = asyncio.run(on_the_fake(seed))
        for number, (expected, given) in enumerate(zip(there, here, strict=True)):
            assert given == expected, (
                f"seed {seed}, step {number}:\n"
                + pformat([step for step, _ in here[:number]])
                + f"\nthe broker: {pformat(expected)}\nthe fake: {pformat(given)}"
            )
