"""A producer with the interface of aiokafka's, on a Kafka in memory."""

import asyncio
import copy
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.errors import (
    ConcurrentTransactions,
    IllegalOperation,
    InvalidProducerEpoch,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerClosed,
    ProducerFenced,
    UnknownTopicOrPartitionError,
)
from aiokafka.producer.transaction_manager import TransactionState
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.structs import RecordMetadata

from streams.kafka.group.membership import Membership
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content, Writer
from tests.fakes.points import Point

Headers = Iterable[tuple[str, bytes]] | None


class FakeBatch:
    """Records for one partition; takes no more once its size is reached."""

    def __init__(self, max_bytes: int) -> None:
        self.contents: list[Content] = []
        self._max_bytes = max_bytes
        self._n_bytes = 0
        self._is_closed = False

    def append(
        self,
        *,
        timestamp: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = None,
    ) -> int | None:
        """Take a record; None where it is full. An empty one takes any record."""
        content = _content(key, value, headers, timestamp)
        n_bytes = _size_of(content)
        is_full = bool(self.contents) and self._n_bytes + n_bytes > self._max_bytes
        if is_full or self._is_closed:
            self._is_closed = True
            return None
        self.contents.append(content)
        self._n_bytes += n_bytes
        return len(self.contents)

    def close(self) -> None:
        """Take no more."""
        self._is_closed = True


class _Pending:
    """A batch on its way, and the futures of those who wait for it."""

    def __init__(self, place: TopicPartition, contents: list[Content]) -> None:
        self.place = place
        self.contents = contents
        self.future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class FakeProducer:
    """The part of `AIOKafkaProducer` that is used here.

    As there, records and requests of a transaction leave in the background: what was
    sent arrives later, and a commit first waits for it. Here one request is on its
    way at a time, and each waits at a point before it reaches the broker and at
    another before its answer comes.

    Parameters
    ----------
    options
        As for aiokafka; what is not read here has no effect.
    """

    def __init__(self, kafka: FakeKafka, point: Point, **options: Any) -> None:
        self._kafka = kafka
        self._point = point
        self._name: str | None = options.get("transactional_id")
        self._max_request_bytes = options.get("max_request_size", 1 << 20)
        self._max_batch_bytes = options.get("max_batch_size", 1 << 14)
        self._writer: Writer | None = None
        self._state = TransactionState.UNINITIALIZED
        self._ended: asyncio.Future[None] | None = None
        self._places: set[TopicPartition] = set()
        self._group: str | None = None
        self._pending: list[_Pending] = []
        self._offsets: list[
            tuple[str, dict[TopicPartition, int], Membership | None, Any]
        ] = []
        self._sender: asyncio.Task[None] | None = None
        self._is_closed = False
        self._reasons: tuple[Any, ...] = ()

    async def start(self) -> None:
        """Become the only life of the transactional id."""
        await self._point("connect producer")
        name = self._name
        if name is not None:
            self._writer = await self._asked(
                "initialise", lambda: self._kafka.transactions.initialise(name)
            )
            self._turn(TransactionState.READY)

    async def stop(self) -> None:
        """Let what was sent arrive, and leave a transaction as it is."""
        if self._is_closed:
            return
        self._is_closed = True
        await self._point("stop producer")
        await self.flush()
        if self._sender is not None:
            self._sender.cancel()

    async def partitions_for(self, topic: str) -> set[int]:
        """Partitions of a topic.

        Raises
        ------
        UnknownTopicOrPartitionError
            Where there is none of that name.
        """
        await self._point("ask for partitions")
        n_partitions = self._kafka.n_partitions(topic)
        if n_partitions is None:
            raise UnknownTopicOrPartitionError
        return set(range(n_partitions))

    async def send(
        self,
        topic: str,
        value: bytes | None = None,
        key: bytes | None = None,
        partition: int = 0,
        timestamp_ms: int | None = None,
        headers: Headers = None,
    ) -> "asyncio.Future[Any]":
        """Send a record; the future says where it came to stand."""
        assert not (value is None and key is None), "Need at least one: key or value"
        content = _content(key, value, headers or None, timestamp_ms)
        place = await self._place(topic, partition)
        if _size_of(content) > self._max_request_bytes:
            raise MessageSizeTooLargeError
        return self._queue(place, [content])

    async def send_and_wait(self, *args: Any, **kwargs: Any) -> Any:
        """Send a record, and wait until the broker has it."""
        return await (await self.send(*args, **kwargs))

    def create_batch(self) -> FakeBatch:
        """An empty batch."""
        return FakeBatch(self._max_batch_bytes)

    async def send_batch(
        self, batch: FakeBatch, topic: str, *, partition: int
    ) -> "asyncio.Future[Any]":
        """Send a batch."""
        place = await self._place(topic, partition)
        batch.close()
        return self._queue(place, batch.contents)

    async def flush(self) -> None:
        """Wait until all that was sent has arrived or failed."""
        waiting = [each.future for each in self._pending]
        if waiting:
            await asyncio.wait(waiting)

    async def begin_transaction(self) -> None:
        """Begin a transaction; the broker hears of it with its first record."""
        self._check_transactional()
        await self._point("begin")
        self._turn(TransactionState.IN_TRANSACTION)
        self._ended = asyncio.get_running_loop().create_future()

    async def commit_transaction(self) -> None:
        """Commit; a cancelled wait does not stop it."""
        await self._end(TransactionState.COMMITTING_TRANSACTION)

    async def abort_transaction(self) -> None:
        """Abort; a cancelled wait does not stop it."""
        await self._end(TransactionState.ABORTING_TRANSACTION)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, Any],
        group_id: str,
        member: Membership | None = None,
    ) -> None:
        """Commit offsets of a group with the transaction, as one of its members."""
        self._check_transactional()
        if self._state is not TransactionState.IN_TRANSACTION:
            raise self._illegal("Not in the middle of a transaction")
        plain = {
            place: each if isinstance(each, int) else int(each[0])
            for place, each in offsets.items()
        }
        future = asyncio.get_running_loop().create_future()
        self._offsets.append((group_id, plain, member, future))
        self._wake()
        await asyncio.shield(future)

    # What a caller does.

    def _check_transactional(self) -> None:
        if self._name is None:
            raise IllegalOperation(
                "You need to configure transaction_id to use transactions"
            )

    def _turn(self, state: TransactionState) -> None:
        assert TransactionState.is_transition_valid(self._state, state), (
            f"Invalid state transition {self._state} -> {state}"
        )
        self._state = state

    async def _place(self, topic: str, partition: int) -> TopicPartition:
        partitions = await self.partitions_for(topic)
        in_transaction = self._state is TransactionState.IN_TRANSACTION
        if self._name is not None and not in_transaction:
            raise self._illegal("Can't send messages while not in transaction")
        assert partition in partitions, "Unrecognized partition"
        if self._is_closed:
            raise ProducerClosed
        return TopicPartition(topic, partition)

    def _queue(
        self, place: TopicPartition, contents: list[Content]
    ) -> "asyncio.Future[Any]":
        pending = _Pending(place, contents)
        self._pending.append(pending)
        self._wake()
        return pending.future

    async def _end(self, state: TransactionState) -> None:
        self._check_transactional()
        self._turn(state)
        assert self._ended is not None
        self._wake()
        await asyncio.shield(self._ended)

    # What happens in the background.

    def _wake(self) -> None:
        if self._sender is None or self._sender.done():
            self._sender = asyncio.ensure_future(self._send())

    async def _send(self) -> None:
        try:
            while (request := self._next_request()) is not None:
                await request()
        except KafkaError as error:
            is_named = isinstance(error, ProducerFenced)
            self._fail(error if is_named else KafkaError("batch delivery failed"))

    def _next_request(self) -> Callable[[], Any] | None:
        new = {each.place for each in self._pending} - self._places
        if self._name is not None and new:
            return lambda: self._add_places(new)
        if self._offsets:
            return self._commit_offsets
        if self._pending:
            return self._produce
        if self._state in {
            TransactionState.COMMITTING_TRANSACTION,
            TransactionState.ABORTING_TRANSACTION,
        }:
            return self._end_transaction
        return None

    async def _add_places(self, places: set[TopicPartition]) -> None:
        name, writer = self._known()
        await self._asked(
            "add partitions",
            lambda: self._kafka.transactions.add_places(name, writer, places),
        )
        self._places |= places

    async def _commit_offsets(self) -> None:
        name, writer = self._known()
        group, offsets, member, future = self._offsets[0]
        transactions = self._kafka.transactions
        if self._group is None:
            await self._asked(
                "add group", lambda: transactions.add_group(name, writer, group)
            )
            self._group = group
        await self._asked(
            "commit offsets",
            lambda: transactions.commit_offsets(name, writer, group, offsets, member),
        )
        del self._offsets[0]
        future.set_result(None)

    async def _produce(self) -> None:
        """One request: a batch for each partition."""
        batches: dict[TopicPartition, _Pending] = {}
        for each in self._pending:
            batches.setdefault(each.place, each)
        by = None if self._name is None else self._known()
        await self._point("produce")
        answers = [
            (each, self._attempt(lambda each=each: self._kafka.produce(  # type: ignore[misc]
                each.place, each.contents, by
            )))
            for each in batches.values()
        ]  # fmt: skip
        await self._point("produce, answered")
        for each, answer in answers:
            self._pending.remove(each)
            if each.future.done():
                continue
            if isinstance(answer, KafkaError):
                each.future.set_exception(answer)
            else:
                topic, partition = each.place
                each.future.set_result(
                    RecordMetadata(topic, partition, each.place, answer, -1, 0, None)
                )

    def _attempt(self, append: Callable[[], int]) -> int | KafkaError:
        try:
            return append()
        except InvalidProducerEpoch:
            return self._fenced()
        except KafkaError as error:
            return error

    async def _end_transaction(self) -> None:
        is_commit = self._state is TransactionState.COMMITTING_TRANSACTION
        if self._places or self._group is not None:
            name, writer = self._known()
            await self._asked(
                "commit" if is_commit else "abort",
                lambda: self._kafka.transactions.end(name, writer, is_commit=is_commit),
            )
        self._turn(TransactionState.READY)
        self._places.clear()
        self._group = None
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _known(self) -> tuple[str, Writer]:
        assert self._name is not None
        assert self._writer is not None
        return self._name, self._writer

    async def _asked(self, what: str, ask: Callable[[], Any]) -> Any:
        """The broker's answer, asked again while it is busy."""
        while True:
            await self._point(what)
            try:
                answer = ask()
            except ConcurrentTransactions:
                continue
            except InvalidProducerEpoch:
                raise self._fenced() from None
            await self._point(f"{what}, answered")
            return answer

    def _fenced(self) -> ProducerFenced:
        """What is raised by a request of a former life, with who began the next one."""
        name, _ = self._known()
        return ProducerFenced(self._kafka.transactions.taker_of(name))

    def _illegal(self, what: str) -> IllegalOperation:
        """What is raised by what may not be asked, with why it may not be."""
        return IllegalOperation(what, *self._reasons)

    def _fail(self, error: KafkaError) -> None:
        self._state, self._reasons = TransactionState.FATAL_ERROR, error.args
        for pending in self._pending:
            if not pending.future.done():
                pending.future.set_exception(copy.copy(error))
        self._pending.clear()
        for *_, future in self._offsets:
            future.set_exception(error)
        self._offsets.clear()
        if self._ended is None or self._ended.done():
            self._ended = asyncio.get_running_loop().create_future()
        self._ended.set_exception(error)
        self._ended.exception()  # nobody may be waiting


def _content(
    key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int | None
) -> Content:
    if not isinstance(headers, list | None):
        # The compiled records of aiokafka take nothing else.
        raise TypeError(f"Expected list, got {type(headers).__name__}")
    at_ms = time.time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
    return Content(key, value, tuple(headers or ()), at_ms)


def _size_of(content: Content) -> int:
    size: int = DefaultRecordBatchBuilder.estimate_size_in_bytes(
        content.key, content.value, list(content.headers)
    )
    return size
