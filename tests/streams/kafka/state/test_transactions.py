"""How what a transaction writes leaves: by turns of its partitions, each in order."""

import asyncio
from collections.abc import Iterator
from typing import Any

from aiokafka import TopicPartition

from rankstream.wire.topics import MIB
from streams.kafka.clients import Cluster
from streams.kafka.state.transactions import BULK, Transactions
from streams.stage import Output
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.producer import FakeBatch, FakeProducer

OUTS = [TopicPartition("out", each) for each in range(3)]
LARGE = MIB // 2 + 1
"""Bytes of which no two are one batch."""

FEW, MANY = 3, BULK + 1


def records(partition: int, n_records: int) -> Iterator[Output]:
    """Large records, each with its number."""
    for number in range(n_records):
        value = number.to_bytes(2, "big") + bytes(LARGE)
        yield Output("out", partition, None, value)


def test_partitions_take_turns_and_keep_their_order(monkeypatch: Any) -> None:
    """One after another, whether their records or batches of these are sent."""
    left: list[int] = []
    send, send_batch = FakeProducer.send, FakeProducer.send_batch

    async def one(self: FakeProducer, topic: str, **content: Any) -> Any:
        left.append(content["partition"])
        return await send(self, topic, **content)

    async def several(
        self: FakeProducer, batch: FakeBatch, topic: str, *, partition: int
    ) -> Any:
        assert len(batch.contents) == 1
        left.append(partition)
        return await send_batch(self, batch, topic, partition=partition)

    monkeypatch.setattr(FakeProducer, "send", one)
    monkeypatch.setattr(FakeProducer, "send_batch", several)
    kafka = FakeKafka()
    kafka.create("out", len(OUTS))

    async def body() -> None:
        own = Transactions(Cluster("", {}, {}, FakeClients(kafka)), "writer")
        await own.fence(60_000)
        sizes = MANY, FEW, MANY
        await own.commit(
            record for each, size in enumerate(sizes) for record in records(each, size)
        )
        await own.close()

    asyncio.run(body())
    while ending := kafka.transactions.ending:
        kafka.transactions.write_marker(ending[0])
    assert left == [0, 1, 2] * FEW + [0, 2] * (MANY - FEW)
    for place, size in zip(OUTS, (MANY, FEW, MANY), strict=True):
        found = [each.value or b"" for each in kafka.committed(place)]
        assert [value[:2] for value in found] == [
            number.to_bytes(2, "big") for number in range(size)
        ]
