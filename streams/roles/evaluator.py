"""Verdicts on Kafka: partial sums of all partitions in, verdicts out.

Reads the compacted topic `preferences`, merges the sums of all partitions, and writes a
verdict on each experiment whose sums changed to `evaluations`. It stores nothing: a
verdict is a function of the committed sums, so a second evaluator writes the same.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from typing import Any

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from rankstream.settings import Settings
from rankstream.wire.bounds import LARGEST
from rankstream.wire.topics import EVALUATIONS, MAX_RECORD_BYTES, PREFERENCES, full_name
from rankstream.wire.verdicts import Verdict, encode_verdict
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import rounded_log_checks
from streams.comparisons.preference_fold import UNREADABLE, read_outcomes, read_records
from streams.comparisons.verdicts import refused_verdict, verdict_of
from streams.kafka.committed_reader import Waiting, client_options, committed_batches

EVERY_S = 5.0
"""Time between verdicts on an experiment whose sums change."""

log = logging.getLogger("rankstream.evaluator")

_to_json = msgspec.json.Encoder().encode


class Evaluator:
    """Takes records of `preferences`, and gives verdicts on what changed."""

    def __init__(self) -> None:
        self._values: dict[tuple[int, bytes], bytes] = {}
        self._judged: dict[tuple[str, int], bytes] = {}

    def take(self, partition: int, key: bytes | None, value: bytes | None) -> None:
        """Take one record."""
        if key is None:
            return
        if value is None:
            self._values.pop((partition, key), None)
        else:
            self._values[partition, key] = value

    def values(self) -> dict[bytes, bytes]:
        """The records as they are now; their keys name the partition."""
        return {key: value for (_, key), value in sorted(self._values.items())}

    def verdicts(self, values: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Key and value of a verdict on all that changed since the last call.

        A change of the log's health counts too. An experiment whose records cannot be
        read has an alarm for a verdict. May run in another thread than `take`.
        """
        outcomes = read_outcomes(values)
        log_health = _to_json(rounded_log_checks(outcomes))
        records = read_records(values)
        found = []
        for comparison in records.comparisons:
            place = comparison.name, comparison.settings.epoch
            state = comparison.encoded() + log_health
            if self._judged.get(place) != state:
                self._judged[place] = state
                found.append((place, self._judge(comparison, outcomes)))
        for place, why in records.refused.items():
            if self._judged.get(place) != why.encode():
                self._judged[place] = why.encode()
                found.append((place, _refused(*place, why)))
        return [
            (place[0].encode(), encoded_verdict(place, each)) for place, each in found
        ]

    @staticmethod
    def _judge(comparison: Comparison, outcomes: Mapping[str, int]) -> Verdict:
        try:
            return verdict_of(comparison, outcomes)
        except UNREADABLE as error:
            why = f"{type(error).__name__}: {error}"
            return _refused(comparison.name, comparison.settings.epoch, why)


def encoded_verdict(place: tuple[str, int], verdict: Verdict) -> bytes:
    """A verdict as JSON; an alarm in its place where it fits no record."""
    value = encode_verdict(verdict)
    most = LARGEST[EVALUATIONS] - len(place[0].encode())
    if len(value) <= most:
        return value
    why = f"a verdict must fit {most} bytes; got {len(value)}: compare fewer at once"
    return encode_verdict(_refused(*place, why))


def _refused(name: str, epoch: int, why: str) -> Verdict:
    log.error("event=experiment-refused experiment=%s epoch=%d %s", name, epoch, why)
    return refused_verdict(name, epoch, why)


async def evaluate(settings: Settings, stop: asyncio.Event) -> None:
    """Give verdicts until the stop, waiting while the broker is away."""
    evaluator = Evaluator()
    reading = [
        asyncio.create_task(_read(settings, partition, evaluator))
        for partition in range(settings.kafka.partitions)
    ]
    topic = full_name(settings.namespace, EVALUATIONS)
    waiting = Waiting(f"{topic} at {settings.kafka.bootstrap}")
    try:
        while not stop.is_set():
            try:
                await _write(settings, topic, evaluator, stop, waiting)
            except KafkaError as error:
                waiting.say(error)
                await _either(stop, 1.0)
    finally:
        for task in reading:
            task.cancel()
        results = await asyncio.gather(*reading, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _write(
    settings: Settings,
    topic: str,
    evaluator: Evaluator,
    stop: asyncio.Event,
    waiting: Waiting,
) -> None:
    producer = AIOKafkaProducer(
        **client_options(settings.kafka),
        acks="all",
        enable_idempotence=True,
        max_request_size=MAX_RECORD_BYTES,
    )
    await producer.start()
    waiting.over()
    try:
        while not stop.is_set():
            await _either(stop, EVERY_S)
            for key, value in await asyncio.to_thread(
                evaluator.verdicts, evaluator.values()
            ):
                await producer.send_and_wait(topic, value, key=key)
                log.info("event=verdict experiment=%s", key.decode())
    finally:
        await producer.stop()


async def _read(settings: Settings, partition: int, evaluator: Evaluator) -> None:
    topic = full_name(settings.namespace, PREFERENCES)
    batches = committed_batches(settings.kafka, topic, partition)
    async with contextlib.aclosing(batches):
        async for batch in batches:
            for key, value in batch.records:
                evaluator.take(partition, key, value)


async def _either(event: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        waiting: Any = event.wait()
        await asyncio.wait_for(waiting, timeout_s)
