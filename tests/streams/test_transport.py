"""The insides of Faust and aiokafka that the transport counts on."""

import asyncio
import inspect
from collections.abc import Awaitable
from typing import Any

import aiokafka
import faust
from aiokafka.consumer.group_coordinator import GroupCoordinator
from faust.transport.consumer import Consumer as FaustConsumer
from faust.transport.drivers import aiokafka as driver

from streams.transport import Consumer, EagerService


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
        (thread, "seek_wait"),
        (driver.Consumer, "_new_consumer_thread"),
        (driver.Consumer, "seek_to_committed"),
        (FaustConsumer, "_getmany"),
        (faust.App, "_create_directories"),
        (faust.App, "_crash"),
    ):
        assert callable(getattr(place, name)), name
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
        "_fetch_max_wait_ms",
    ):
        assert hasattr(made, name), name
        assert f"self.{name}" in inspect.getsource(type(made).start), name
    assert hasattr(made, "_request_timeout_ms")
    assert hasattr(made._client, "_request_timeout_ms")
