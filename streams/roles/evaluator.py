"""Verdicts on Kafka: partial sums of all partitions in, verdicts out.

Reads the compacted topic `preferences`, merges the sums of all partitions, and writes a
verdict on each experiment whose sums changed to `evaluations`; also clicks per list of
each trained model whose interventions were shown. It stores nothing: a verdict is a
function of the committed sums, so a second evaluator writes the same.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Iterator, Mapping

import msgspec
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaError

from rankstream.settings import Settings
from rankstream.wire.bounds import LARGEST
from rankstream.wire.models.model_evaluations import encode_rates
from rankstream.wire.topics import EVALUATIONS, MAX_RECORD_BYTES, PREFERENCES, full_name
from rankstream.wire.verdicts import Verdict, encode_verdict
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import rounded_log_checks
from streams.comparisons.intervention_lists import merged
from streams.comparisons.intervention_rates import rates_of
from streams.comparisons.preference_fold import UNREADABLE, read_outcomes, read_records
from streams.comparisons.verdicts import refused_verdict, verdict_of
from streams.kafka.committed_reader import CommittedBatch, CompactedView, client_options
from streams.kafka.reader_role import FollowedPartition, either, run_reader_role
from streams.kafka.status.experiment_series import experiment_series
from streams.kafka.status.status_page import Status
from streams.series import Series

EVERY_S = 5.0
"""Time between verdicts on an experiment whose sums change."""

RATES = b"/interventions"
"""How keys of clicks per list end; they begin with the model."""

log = logging.getLogger("rankstream.evaluator")

_to_json = msgspec.json.Encoder().encode


class Evaluator:
    """Takes records of `preferences`, and writes verdicts on what changed."""

    absences = (KafkaError,)

    def __init__(self, settings: Settings) -> None:
        self._kafka = settings.kafka
        self._topic = full_name(settings.namespace, EVALUATIONS)
        self.awaited = f"{self._topic} at {settings.kafka.bootstrap}"
        self.wrote_s: float | None = None
        self._n_written = self._n_failures = 0
        self._views: dict[int, CompactedView] = {}
        self._judged: dict[tuple[str, int], bytes] = {}
        self._verdicts: dict[str, Verdict] = {}
        self._running = settings.experiments.keys()
        self._rated: dict[str, bytes] = {}
        self._unsent: deque[tuple[bytes, bytes]] = deque()
        self._producer: AIOKafkaProducer | None = None

    def take(self, source: FollowedPartition, batch: CommittedBatch) -> None:
        """Take what was read of one partition."""
        self._views.setdefault(source.partition, CompactedView()).take(batch)

    def values(self) -> dict[bytes, bytes]:
        """The records as they are now; their keys name the partition."""
        return {
            key: value
            for _, view in sorted(self._views.items())
            for key, value in sorted(view.values.items())
        }

    async def turn(self, stop: asyncio.Event) -> None:
        """Wait a while, then write a verdict on each experiment that changed."""
        producer = await self._connected()
        await either(stop, timeout_s=EVERY_S)
        self._unsent += await asyncio.to_thread(self.verdicts, self.values())
        try:
            while self._unsent:
                key, value = self._unsent[0]
                await producer.send_and_wait(self._topic, value, key=key)
                # While lists are shown clicks per list move at every turn.
                if not key.endswith(RATES):
                    log.info("event=verdict experiment=%s", key.decode())
                self._unsent.popleft()
                self._n_written += 1
                self.wrote_s = time.monotonic()
        except KafkaError:
            self._n_failures += 1
            await self.close()
            raise

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many verdicts wait."""
        return {
            "verdicts_written": self._n_written,
            "verdicts_pending": len(self._unsent),
            "verdict_failures": self._n_failures,
        }

    def series(self) -> Iterator[Series]:
        """What is known of each experiment; those with most lists first."""
        return experiment_series([*self._verdicts.values()])

    async def close(self) -> None:
        """Let go of the broker; what was not sent is sent by the next turn."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def _connected(self) -> AIOKafkaProducer:
        if self._producer is None:
            producer = AIOKafkaProducer(
                **client_options(self._kafka),
                acks="all",
                enable_idempotence=True,
                max_request_size=MAX_RECORD_BYTES,
            )
            try:
                await producer.start()
            except KafkaError:
                await producer.stop()
                raise
            self._producer = producer
        return self._producer

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
        for (name, epoch), verdict in found:
            known = self._verdicts.get(name)
            is_newest = known is None or known.epoch <= epoch
            # One that has ended stays in the topic, and alarms nobody.
            if is_newest and name in self._running:
                self._verdicts[name] = verdict
        encoded = [
            (place[0].encode(), encoded_verdict(place, each)) for place, each in found
        ]
        return encoded + self._rates(values)

    def _rates(self, values: Mapping[bytes, bytes]) -> list[tuple[bytes, bytes]]:
        """Key and value of the rates of each model that changed."""
        try:
            rates = rates_of(merged(values))
        except UNREADABLE as error:
            if self._rated.get("") != str(error).encode():
                self._rated[""] = str(error).encode()
                log.error("event=interventions-refused %s", error)
            return []
        found = [(each.model, encode_rates(each)) for each in rates]
        changed = [each for each in found if self._rated.get(each[0]) != each[1]]
        self._rated |= changed
        return [(model.encode() + RATES, value) for model, value in changed]

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


async def evaluate(
    settings: Settings, stop: asyncio.Event, status: Status | None = None
) -> None:
    """Give verdicts until the stop, waiting while the broker is away."""
    topic = full_name(settings.namespace, PREFERENCES)
    sources = [
        FollowedPartition(topic, each) for each in range(settings.kafka.partitions)
    ]
    await run_reader_role(settings.kafka, sources, Evaluator(settings), stop, status)
