"""The insides of Faust and aiokafka that the transport counts on."""

import asyncio
import inspect
import types
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import aiokafka
import faust
import pytest
from aiokafka.consumer.fetcher import Fetcher as AiokafkaFetcher
from aiokafka.consumer.fetcher import OffsetResetStrategy
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.consumer.subscription_state import SubscriptionState
from aiokafka.errors import NoOffsetForPartitionError, OffsetOutOfRangeError
from faust.tables.recovery import Recovery
from faust.transport.consumer import Consumer as FaustConsumer
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from rankstream.settings import ModelSettings, Settings
from streams.kafka.app import build_app
from streams.kafka.append_time import ClockDifference
from streams.kafka.clients import Cluster
from streams.kafka.eager_service import EagerService
from streams.kafka.flow import Flow
from streams.kafka.gathered_fetches import GatheringConsumer
from streams.kafka.transport import (
    CommittedReadsThread,
    Consumer,
    ReadProgress,
)

PLACE = TP("queries", 0)
NOW_MS = 1_700_000_000_000


def waited(*coroutines: Awaitable[Any]) -> Any:
    """What comes of waiting for the first of some coroutines."""

    async def run() -> Any:
        return await EagerService().wait_first(*coroutines)

    return asyncio.run(run())


async def at_once() -> int:
    """Give a number without waiting."""
    return 7


async def after(seconds: float, log: list[str]) -> int:
    """Give a number after some time."""
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        log.append("cancelled")
        raise
    return 8


def test_what_does_not_wait_is_done_at_once() -> None:
    """The first wins without a task; the other is never begun."""
    other = after(10.0, [])
    result = waited(at_once(), other)
    assert result.results == [7]
    assert inspect.getcoroutinestate(other) == inspect.CORO_CLOSED


def test_what_waits_goes_on_where_it_was() -> None:
    """A coroutine that was stepped once is not begun anew."""
    log: list[str] = []
    result = waited(after(0.01, log), after(10.0, log))
    assert result.results == [8]


def test_what_waits_is_cancelled_when_the_other_is_first() -> None:
    """A suspended flow ends a callback that waits for room."""
    log: list[str] = []
    result = waited(after(10.0, log), after(0.01, []))
    assert result.results == [8]
    assert log == ["cancelled"]


def test_an_error_of_the_first_is_raised() -> None:
    """Nothing is swallowed on the short way."""

    async def broken() -> None:
        raise KeyError("x")

    try:
        waited(broken(), after(10.0, []))
    except KeyError:
        return
    raise AssertionError("the error must be raised")


def test_faust_still_waits_for_each_message_as_it_did() -> None:
    """The short way is made for this line; where it moves, look again."""
    source = "".join(inspect.getsource(FaustConsumer._drain_messages).split())
    assert "self.wait_first(callback(message),self.suspend_flow.wait())" in source
    assert faust.__version__ == "0.15.3"


def test_what_is_overridden_is_still_there() -> None:
    """Names without which an override would be silently without effect."""
    thread = driver.AIOKafkaConsumerThread
    for place, name in (
        (thread, "_create_worker_consumer"),
        (thread, "on_thread_stop"),
        (thread, "_fetch_records"),
        (thread, "seek_wait"),
        (thread, "earliest_offsets"),
        (thread, "highwaters"),
        (driver.Consumer, "_new_consumer_thread"),
        (driver.Consumer, "seek_to_committed"),
        (driver.Consumer, "on_partitions_revoked"),
        (driver.Consumer, "on_partitions_assigned"),
        (FaustConsumer, "_getmany"),
        (driver.Consumer, "_to_message"),
        (FaustConsumer, "perform_seek"),
        (faust.App, "_create_directories"),
        (faust.App, "_crash"),
    ):
        assert callable(getattr(place, name)), name
    assert "self._fetch_records," in inspect.getsource(thread.getmany)
    assert Consumer.wait_first is EagerService.wait_first
    assert "self._getmany(" in inspect.getsource(FaustConsumer._wait_next_records)
    assert "_group_instance_id is None" in inspect.getsource(
        GroupCoordinator._maybe_leave_group
    )


def test_what_is_set_on_a_consumer_is_what_it_uses() -> None:
    """Options that Faust has no setting for are still attributes of these names."""

    async def consumer() -> aiokafka.AIOKafkaConsumer:
        return aiokafka.AIOKafkaConsumer(bootstrap_servers="127.0.0.1:1")

    made = asyncio.run(consumer())
    made._closed = True  # it was never started
    for name in (
        "_isolation_level",
        "_max_partition_fetch_bytes",
        "_fetch_max_bytes",
        "_fetch_max_wait_ms",
    ):
        assert hasattr(made, name), name
        assert f"self.{name}" in inspect.getsource(type(made).start), name
    assert hasattr(made, "_request_timeout_ms")
    assert hasattr(made._client, "_request_timeout_ms")


def fetched(offset: int, **fields: Any) -> Any:
    """A record as aiokafka gives it, and as Faust hands it on."""
    nothing = {"key": None, "value": b"", "headers": (), "timestamp_type": 0}
    return SimpleNamespace(offset=offset, **(nothing | fields))


def test_what_was_counted_when_it_came_is_counted_when_it_goes() -> None:
    """Nothing waits when everything was taken."""

    async def run() -> None:
        consumer, _, thread = fetching()
        thread.may_return.set()
        for bundle in (await consumer._getmany({PLACE}, 1.0))[PLACE]:
            assert consumer.waiting_bytes > 0
            consumer.taken(bundle.n_bytes)
        assert consumer.waiting_bytes == 0

    asyncio.run(run())


class Fetcher:
    """In place of aiokafka's: takes three records, which moves the position."""

    def __init__(self) -> None:
        self._closed = False
        self._subscriptions: Any = SubscriptionState()
        self._subscriptions.assign_from_user({aiokafka.TopicPartition(*PLACE)})
        assignment = self._subscriptions.subscription.assignment
        self.partition: Any = assignment.state_value(PLACE)
        self.partition.reset_to(5)
        self.fields: dict[str, Any] = {}

    async def fetched_records(self, *_: Any, **__: Any) -> dict[TP, list[Any]]:
        """Take them, and answer."""
        self.partition.highwater = 8
        self.partition.consumed_to(8)
        return {PLACE: [fetched(offset, **self.fields) for offset in (5, 6, 7)]}


class FetchingThread(CommittedReadsThread):
    """The consumer's thread; its answers wait until the other loop has time."""

    def __init__(self, fetcher: Fetcher) -> None:
        self.may_return = asyncio.Event()
        self.before: Callable[[], None] = lambda: None
        self.consumer: Any = SimpleNamespace(flow_active=True)
        self._consumer: Any = SimpleNamespace(
            _closed=False,
            _max_poll_records=None,
            _fetcher=fetcher,
            _subscription=fetcher._subscriptions,
        )

    def _ensure_consumer(self) -> Any:
        return self._consumer

    async def call_thread(self, fun: Any, *args: Any, **kwargs: Any) -> Any:
        """Answer after a while."""
        self.before()
        answer = await fun(*args, **kwargs)
        await self.may_return.wait()
        return answer

    async def earliest_offsets(self, *places: TP) -> dict[TP, int]:
        """Where the topic begins."""
        return dict.fromkeys(places, 9)

    async def highwaters(self, *places: TP) -> dict[TP, int]:
        """Where it ends."""
        return dict.fromkeys(places, 20)


def fetching(
    fetcher: Fetcher | None = None,
) -> tuple[Any, Fetcher, FetchingThread]:
    """A consumer whose next fetch finds three records."""
    fetcher = fetcher or Fetcher()
    thread = FetchingThread(fetcher)
    consumer: Any = Consumer.__new__(Consumer)
    consumer.waiting_bytes = 0
    consumer._last, consumer._positions, consumer._ends = {}, {}, {}
    consumer.clocks = ClockDifference()
    consumer._flow, consumer._fetcher = Flow(), None
    consumer._flow.assign()
    consumer._flow.resume(consumer._flow.stop())
    consumer._thread = thread
    consumer.app = types.SimpleNamespace(not_held_back=lambda places: places)
    return consumer, fetcher, thread


async def begun(consumer: Consumer) -> asyncio.Task[Any]:
    """A fetch that has taken its records and not handed them over."""
    task = asyncio.create_task(consumer._getmany({PLACE}, 1.0))
    await asyncio.sleep(0.01)
    return task


def test_what_is_fetched_and_not_handed_over_is_not_reached() -> None:
    """A resume position behind records that nobody folded would lose them."""

    async def run() -> None:
        consumer, fetcher, thread = fetching()
        task = await begun(consumer)
        assert fetcher.partition.position == 8
        assert consumer.progress(PLACE).position is None
        thread.may_return.set()
        assert [len(each.records) for each in (await task)[PLACE]] == [3]
        assert consumer.progress(PLACE) == ReadProgress(7, 8, 8)

    asyncio.run(run())


def test_an_answer_is_told_from_the_next_by_its_time() -> None:
    """The line that this counts on; without it no source would ever be idle."""
    source = inspect.getsource(AiokafkaFetcher._proc_fetch_request)
    assert "now_ms = int(1000 * time.time())" in source
    assert "tp_state.timestamp = now_ms" in source


def test_the_end_of_a_source_is_heard_with_its_records_and_forgotten_at_a_seek() -> (
    None
):
    """With the time of the answer, by which later ones are known."""

    async def run() -> None:
        consumer, fetcher, thread = fetching()
        fetcher.partition.timestamp = NOW_MS
        thread.may_return.set()
        await consumer._getmany({PLACE}, 1.0)
        assert consumer._ends[PLACE].told_ms == NOW_MS
        consumer._forget_positions()
        assert PLACE not in consumer._ends
        assert consumer.progress(PLACE).at_end_ms == 0

    asyncio.run(run())


def test_records_from_the_future_tell_of_a_clock_that_is_behind() -> None:
    """By how much, of the partition that they are from."""

    async def run() -> None:
        consumer, fetcher, thread = fetching()
        fetcher.fields = {"timestamp_type": 1, "timestamp": NOW_MS + 10**12}
        thread.may_return.set()
        await consumer._getmany({PLACE}, 1.0)
        assert consumer.clocks.seconds(PLACE) < -(10**6)

    asyncio.run(run())


def test_a_fetch_that_is_given_up_reaches_nothing() -> None:
    """A stop cancels the fetch that is under way, and its records are dropped."""

    async def run() -> None:
        consumer, fetcher, _ = fetching()
        task = await begun(consumer)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert fetcher.partition.position == 8
        assert consumer.progress(PLACE).position is None

    asyncio.run(run())


class Outside(Fetcher):
    """In place of aiokafka's: what is to be read is not there."""

    async def fetched_records(self, *_: Any, **__: Any) -> dict[TP, list[Any]]:
        """Fail as a fetch does that may not jump."""
        raise OffsetOutOfRangeError({PLACE: 5})


@pytest.mark.parametrize(("is_moved", "told"), [(False, [(PLACE, 9, 20)]), (True, [])])
def test_what_is_not_there_is_told_and_never_jumped_over(
    is_moved: bool, told: list[Any]
) -> None:
    """With what is there instead; unless the reader has moved on since."""

    async def run() -> None:
        consumer, _, thread = fetching(Outside())
        heard: list[Any] = []

        async def read_outside(*what: Any) -> None:
            heard.append(what)

        consumer.app.read_outside = read_outside
        thread.may_return.set()
        if is_moved:
            thread.before = consumer._flow.stop
        assert await consumer._getmany({PLACE}, 1.0) == {}
        assert heard == told

    asyncio.run(run())


def test_what_is_not_there_is_not_told_of_a_place_from_before_a_seek() -> None:
    """The partition may be revoked while the broker is asked what is there."""

    async def run() -> None:
        consumer, _, thread = fetching(Outside())
        highwaters = thread.highwaters

        async def moved(*places: TP) -> Any:
            consumer._flow.stop()
            return await highwaters(*places)

        async def read_outside(*what: Any) -> None:
            raise AssertionError(what)

        thread.highwaters = moved  # type: ignore[method-assign]
        consumer.app.read_outside = read_outside
        thread.may_return.set()
        assert await consumer._getmany({PLACE}, 1.0) == {}

    asyncio.run(run())


class Nowhere(Fetcher):
    """In place of aiokafka's: the group has committed nothing."""

    async def fetched_records(self, *_: Any, **__: Any) -> dict[TP, list[Any]]:
        """Fail as a fetch does that was under way at an assignment."""
        raise NoOffsetForPartitionError(PLACE)


@pytest.mark.parametrize("is_moved", [False, True])
def test_a_fetch_from_before_a_seek_may_have_nowhere_to_begin(is_moved: bool) -> None:
    """It is dropped; after the seek, it would be a fault."""

    async def run() -> None:
        consumer, _, thread = fetching(Nowhere())
        thread.may_return.set()
        if is_moved:
            thread.before = consumer._flow.stop
            assert await consumer._getmany({PLACE}, 1.0) == {}
            return
        with pytest.raises(NoOffsetForPartitionError):
            await consumer._getmany({PLACE}, 1.0)

    asyncio.run(run())


def test_a_consumer_of_a_stage_may_not_jump() -> None:
    """Faust hands its setting on, under which aiokafka raises."""
    assert "auto_offset_reset=conf.consumer_auto_offset_reset" in inspect.getsource(
        driver.AIOKafkaConsumerThread._create_worker_consumer
    )
    app = build_app(Settings(), "fold", [], Cluster("", {}, {}))
    assert app.conf.consumer_auto_offset_reset == "none"
    assert OffsetResetStrategy.from_str("none") == OffsetResetStrategy.NONE


def test_a_fetch_from_before_a_seek_is_dropped() -> None:
    """Its records and its position are of another place in the log."""

    async def run() -> None:
        consumer, _, thread = fetching()
        task = await begun(consumer)
        consumer._flow.resume(consumer._flow.stop())
        thread.may_return.set()
        assert await task == {}
        assert consumer.progress(PLACE) == ReadProgress(-1, None, None)
        assert consumer.waiting_bytes == 0

    asyncio.run(run())


@pytest.mark.parametrize(
    ("settings", "apart_s"),
    [(Settings(), 0.5), (Settings(models={"a": ModelSettings(features=1)}), 0.1)],
)
def test_a_trickle_is_read_as_often_as_somebody_waits(
    settings: Settings, apart_s: float
) -> None:
    """How often follows from how far commits may be apart."""

    async def run() -> None:
        app: Any = build_app(settings, "fold", [], Cluster("", {}, {}))
        worker = CommittedReadsThread(app.consumer, loop=app.loop)
        made = worker._create_worker_consumer(app.transport)
        made._closed = True  # it was never started
        assert isinstance(made, GatheringConsumer)
        assert made.apart_s == pytest.approx(apart_s)

    asyncio.run(run())


def test_nothing_is_kept_of_records_that_are_done_with() -> None:
    """What Faust keeps to commit by would grow for ever behind the first marker."""
    consumer: Any = Consumer.__new__(Consumer)
    consumer._unacked_messages = set()
    consumer._acked, consumer._acked_index = {}, {}
    message: Any = type("Message", (), {"acked": False, "tp": PLACE, "offset": 7})()
    assert consumer.ack(message)
    assert message.acked
    assert not consumer.ack(message)
    assert (consumer._acked, consumer._acked_index) == ({}, {})
    assert asyncio.run(consumer.commit()) is False


def test_nothing_is_fetched_between_a_revocation_and_the_next_seek(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not even where a seek of before ends meanwhile, which resumes Faust's flow."""
    begun_seeks: list[asyncio.Event] = []

    async def committed(_: Any) -> dict[TP, int]:
        begun_seeks.append(asyncio.Event())
        await begun_seeks[-1].wait()
        return {}

    async def nothing(*_: Any) -> dict[TP, int]:
        return {}

    monkeypatch.setattr(driver.Consumer, "seek_to_committed", committed)
    for name in ("on_partitions_revoked", "on_partitions_assigned"):
        monkeypatch.setattr(driver.Consumer, name, nothing)

    async def run() -> None:
        consumer, _, thread = fetching()
        opened: list[Any] = []

        async def open_partitions(committed: Any) -> dict[TP, int]:
            opened.append(committed)
            return {}

        consumer.app.open_partitions = open_partitions
        thread.may_return.set()
        seeks: list[asyncio.Task[Any]] = []

        async def seek() -> None:
            seeks.append(asyncio.create_task(consumer.seek_to_committed()))
            await asyncio.sleep(0)

        async def end(number: int) -> None:
            begun_seeks[number].set()
            await seeks[number]

        await seek()
        await consumer.on_partitions_revoked({PLACE})
        await seek()  # of the assignment that is over
        await end(0)
        assert await consumer._getmany({PLACE}, 1.0) == {}
        await end(1)
        assert await consumer._getmany({PLACE}, 1.0) == {}
        assert not opened
        await consumer.on_partitions_assigned({PLACE})
        assert await consumer._getmany({PLACE}, 1.0) == {}
        await seek()
        assert await consumer._getmany({PLACE}, 1.0) == {}
        await end(2)
        (bundle,) = (await consumer._getmany({PLACE}, 1.0))[PLACE]
        assert len(bundle.records) == 3

    asyncio.run(run())


def test_a_seek_waits_for_the_fetch_that_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would go on from where was sought, and its records are dropped."""
    log: list[str] = []

    async def nothing(*_: Any) -> dict[TP, int]:
        return {}

    monkeypatch.setattr(driver.Consumer, "seek_to_committed", nothing)

    async def run() -> None:
        consumer, _, thread = fetching()

        async def starts(_: Any) -> dict[TP, int]:
            return {PLACE: 5}

        async def seek_wait(_: Any) -> None:
            log.append("sought")

        consumer.app.open_partitions = starts
        monkeypatch.setattr(thread, "seek_wait", seek_wait)
        task = await begun(consumer)
        seek = asyncio.create_task(consumer.seek_to_committed())
        await asyncio.sleep(0.01)
        assert not log
        thread.may_return.set()
        assert await task == {}
        await seek
        assert log == ["sought"]

    asyncio.run(run())


def test_a_fetch_that_ends_too_late_seeks_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever has the partitions by then; others do seek."""
    sought: list[str] = []

    async def perform_seek(_: Any) -> None:
        sought.append("by Faust")

    monkeypatch.setattr(driver.Consumer, "perform_seek", perform_seek)

    async def run() -> None:
        consumer, _, thread = fetching()
        thread.may_return.set()

        async def fetch() -> None:
            await consumer._getmany({PLACE}, 1.0)
            await consumer.perform_seek()

        await asyncio.create_task(fetch())
        assert not sought
        await consumer.perform_seek()
        assert sought == ["by Faust"]

    asyncio.run(run())


def test_faust_resumes_its_flow_after_any_seek() -> None:
    """What makes our own flow necessary; where it asks by then, ours may go."""
    source = inspect.getsource(Recovery._resume_streams)
    _, after = source.split("consumer.perform_seek()")
    assert "consumer.resume_flow()" in after
    assert "generation_id" not in after
