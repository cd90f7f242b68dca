"""Records of many requests share batches; each request hears of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiokafka.errors import KafkaError, OutOfOrderSequenceNumber

from rankstream.operations.serving.deliveries import (
    Deadlines,
    Deliveries,
    Delivery,
    Record,
    Waiting,
)
from rankstream.wire.topics import CLICKS
from tests.fakes.kafka import FakeKafka
from tests.fakes.producer import FakeBatch, FakeProducer
from tests.served import Gate

SMALL_BYTES = 4_096


class Producer(FakeProducer):
    """Keeps what it was given, and refuses a batch that holds `bad` or `odd`."""

    def __init__(self, gate: Gate) -> None:
        kafka = FakeKafka()
        kafka.create(CLICKS, 2)
        super().__init__(kafka, gate, max_batch_size=SMALL_BYTES)
        self.sent: list[list[bytes]] = []

    async def send_batch(self, batch: FakeBatch, topic: str, *, partition: int) -> Any:
        """Send a batch."""
        values = [each.value or b"" for each in batch.contents]
        self.sent.append(values)
        if b"bad" in values:
            raise OutOfOrderSequenceNumber
        if b"odd" in values:
            raise RuntimeError
        return await super().send_batch(batch, topic, partition=partition)


class Bed:
    """Deliveries to a producer, and what was heard of them."""

    def __init__(self) -> None:
        self.gate = Gate()
        self.producer = Producer(self.gate)
        self.tasks: list[asyncio.Task[None]] = []
        self.failures: list[BaseException] = []
        self.ended: list[Delivery] = []
        self.deliveries = Deliveries(
            lambda work: self.tasks.append(asyncio.create_task(work)),
            lambda _, error: self.failures.append(error),
        )
        self.deliveries.use(self.producer)

    def begin(self, *values: bytes, partition: int = 0) -> Delivery:
        """Give the records of one request."""
        delivery = Delivery(len(values), 0, len(values), self.ended.append)
        for value in values:
            self.deliveries.add(Record(CLICKS, partition, value), delivery)
        return delivery

    async def end(self) -> None:
        """Wait until all was carried."""
        self.gate.is_shut = False
        await asyncio.gather(*self.tasks)
        await self.producer.stop()


def run(law: Callable[[Bed], Awaitable[None]]) -> None:
    """Hold a law on a loop of its own."""

    async def held() -> None:
        await law(Bed())

    asyncio.run(held())


def test_what_comes_while_a_batch_is_on_its_way_shares_the_next() -> None:
    """In the order in which it came, and each partition by itself."""

    async def law(bed: Bed) -> None:
        bed.gate.is_shut = True
        bed.begin(b"first")
        await asyncio.sleep(0)
        for number in range(20):
            bed.begin(b"%d" % number)
        bed.begin(b"other", partition=1)
        await bed.end()
        together = [b"%d" % number for number in range(20)]
        assert sorted(bed.producer.sent) == sorted([[b"first"], together, [b"other"]])
        assert len(bed.tasks) == 2
        assert len(bed.ended) == 22

    run(law)


def test_a_partition_is_taken_up_again_after_it_was_idle() -> None:
    """Whatever became of the last batch."""

    async def law(bed: Bed) -> None:
        for value in (b"one", b"bad", b"two", b"odd", b"three"):
            bed.begin(value)
            await asyncio.gather(*bed.tasks, return_exceptions=True)
        assert bed.producer.sent == [[b"one"], [b"bad"], [b"two"], [b"odd"], [b"three"]]
        assert [each.has_failed for each in bed.ended] == [
            False, True, False, True, False
        ]  # fmt: skip
        await bed.end()

    run(law)


def test_a_full_batch_is_followed_by_another_and_a_large_record_fits() -> None:
    """Nothing is left out, and nothing comes twice."""

    async def law(bed: Bed) -> None:
        values = [b"a" * 1_500, b"b" * 1_500, b"c" * 1_500, b"d" * 9_000, b"e"]
        delivery = bed.begin(*values)
        assert not delivery.is_decided
        await bed.end()
        assert [value for batch in bed.producer.sent for value in batch] == values
        assert [len(batch) for batch in bed.producer.sent] == [2, 1, 1, 1]
        assert delivery.is_decided
        assert not delivery.has_failed

    run(law)


def test_a_request_has_failed_if_any_of_its_records_has() -> None:
    """It hears so once all are decided; those of other batches have not failed."""

    async def law(bed: Bed) -> None:
        bed.gate.is_shut = True
        parted = Delivery(2, 0, 2, bed.ended.append)
        for partition, value in enumerate((b"bad", b"good")):
            bed.deliveries.add(Record(CLICKS, partition, value), parted)
        good = bed.begin(b"good too", partition=1)
        while not bed.failures:
            await asyncio.sleep(0)
        assert not parted.is_decided
        assert not parted.has_failed
        await bed.end()
        assert parted.has_failed
        assert isinstance(parted.error, KafkaError)
        assert good.is_decided
        assert not good.has_failed
        assert len(bed.failures) == 1

    run(law)


def test_an_end_decides_what_was_on_its_way_and_what_waited() -> None:
    """Nobody waits for what nobody carries any more."""

    async def law(bed: Bed) -> None:
        bed.gate.is_shut = True
        begun = [bed.begin(b"first")]
        await asyncio.sleep(0)
        begun += [bed.begin(b"x" * 3_000) for _ in range(3)]
        for task in bed.tasks:
            task.cancel()
        await asyncio.wait(bed.tasks)
        assert all(each.has_failed for each in begun)
        assert len(bed.ended) == 4
        await bed.end()

    run(law)


@pytest.mark.parametrize("is_early", [True, False])
def test_who_waits_hears_once(is_early: bool) -> None:
    """In the order of asking, that it is so or that time is up."""

    async def law() -> list[int]:
        loop, heard = asyncio.get_running_loop(), list[int]()
        deadlines = Deadlines(0.01)
        waiting = [Waiting(lambda n=n: heard.append(n)) for n in range(3)]  # type: ignore[misc]
        for each in waiting:
            deadlines.add(each, loop)
            await asyncio.sleep(0.002)
        if is_early:
            waiting[1].end()
            waiting[1].end()
        while len(heard) < 3:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        late = Waiting(lambda: heard.append(3))
        deadlines.add(late, loop)
        while len(heard) < 4:
            await asyncio.sleep(0.001)
        deadlines.close()
        return heard

    heard = asyncio.run(law())
    assert sorted(heard) == [0, 1, 2, 3]
    assert [each for each in heard if each != 1] == [0, 2, 3]
