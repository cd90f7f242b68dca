"""The events of a run through the folds in this process: no Kafka, no faults."""

from collections import Counter
from typing import Any

from rankstream.settings import (
    ModelSettings,
    Settings,
    StatisticsSettings,
    TimeSettings,
)
from rankstream.wire.events import ACTIVE, Frontier, decode_event_record
from rankstream.wire.topics import (
    CANDIDATES,
    CLICKS,
    EVENTS,
    INTERACTIONS,
    LATE,
    QUERIES,
)
from streams.ingest.ingest import END_HEADER, Ingest
from streams.learning.learn import Learn
from streams.partition_fold import partition_fold
from streams.stage import Output, SourceRecord
from tests.fire.events import (
    ACTIONS,
    DISORDER_MS,
    KEEP_MS,
    REMEMBER_MS,
    WINDOW_MS,
    Event,
    Events,
)
from tests.fire.letters import Found, letter_of
from tests.fire.lists import MODEL, N_FEATURES

TIME = TimeSettings(
    disorder_ms=DISORDER_MS,
    click_window_ms=WINDOW_MS,
    remember_ms=REMEMBER_MS,
    keep_ms=KEEP_MS,
)
STATISTICS = StatisticsSettings(actions=ACTIONS)
MODELS = {MODEL: ModelSettings(features=N_FEATURES)}


class Watermarks:
    """The watermark of each partition of the log, from its frontiers."""

    def __init__(self, n_partitions: int) -> None:
        self._spoken: list[dict[int, Frontier]] = [{} for _ in range(n_partitions)]
        self._reached_ms = [-1] * n_partitions

    def take(self, partition: int, frontier: Frontier) -> None:
        """Hear a frontier."""
        spoken = self._spoken[partition]
        spoken[frontier.source] = frontier
        if len(spoken) == frontier.n_sources:
            active = [each.at_ms for each in spoken.values() if each.state == ACTIVE]
            now_ms = min(active) if active else max(f.at_ms for f in spoken.values())
            self._reached_ms[partition] = max(self._reached_ms[partition], now_ms)

    def of(self, partition: int) -> int:
        """The watermark of a partition; -1 before all have spoken."""
        return self._reached_ms[partition]

    def frontier_ms(self) -> int | None:
        """The least frontier anywhere; None before all have spoken everywhere."""
        least: int | None = None
        for spoken in self._spoken:
            if not spoken or len(spoken) < next(iter(spoken.values())).n_sources:
                return None
            lowest = min(each.at_ms for each in spoken.values())
            least = lowest if least is None else min(least, lowest)
        return least

    def is_ended(self) -> bool:
        """Whether every source has said that nothing more comes."""
        return all(
            spoken
            and len(spoken) == next(iter(spoken.values())).n_sources
            and all(each.state == 2 for each in spoken.values())
            for spoken in self._spoken
        )


class InProcess:
    """Ingest and folds, called one after another."""

    def __init__(self, settings: Settings, now_ms: int) -> None:
        inputs = range(settings.kafka.input_partitions)
        self.found = Found()
        self.log: list[tuple[int, int, bytes]] = []
        self.interactions: list[tuple[int, bytes]] = []
        self.watermarks = Watermarks(settings.kafka.partitions)
        self._now_ms = now_ms
        self._ingest = {
            (topic, p): Ingest(topic, p, settings)
            for topic in (QUERIES, CLICKS)
            for p in inputs
        }
        self.folds = [
            partition_fold(p, settings) for p in range(settings.kafka.partitions)
        ]
        self._offsets: Counter[tuple[str, int]] = Counter()

    def send(self, event: Event, partition: int) -> None:
        """Send one event to a partition of the input topics."""
        offset = self._give(event.topic, partition, event)
        if event.expect is not None:
            event.expect(partition, offset)

    def pass_on(self) -> None:
        """A commit of every stage."""
        for ingest in self._ingest.values():
            for output in ingest.outputs():
                self._take(output)
        for fold in self.folds:
            for output in fold.outputs():
                self._take(output)

    def end(self) -> None:
        """End every source, and read the state."""
        for topic, partition in self._ingest:
            self._give(topic, partition, Event(topic, b"", headers=(END_HEADER,)))
        self.pass_on()
        for fold in self.folds:
            for change in fold.changes():
                if change.topic == "statistics" and change.value:
                    self.found.statistics.append((change.key, change.value))
            self.found.outcomes.update(fold.counters())
        for ingest in self._ingest.values():
            for change in ingest.changes():
                self.found.take_ingest_state(change.value or b"")

    def _give(self, topic: str, partition: int, event: Event) -> int:
        offset = self._offsets[topic, partition]
        self._offsets[topic, partition] += 1
        self._ingest[topic, partition].fold(
            SourceRecord(
                topic,
                partition,
                offset,
                self._now_ms,
                event.key,
                event.value,
                event.headers,
            )
        )
        return offset

    def _take(self, output: Output) -> None:
        value = output.value or b""
        if output.topic == EVENTS:
            self._fold(output.partition, value)
        elif output.topic == INTERACTIONS:
            self.interactions.append((output.partition, value))
            self.found.take_interactions(value)
        elif output.topic == LATE:
            self.found.take_late(value, output.headers)
        elif output.topic != CANDIDATES:
            letter = letter_of(output.value, output.key, output.headers)
            self.found.letters.append(letter)

    def _fold(self, partition: int, value: bytes) -> None:
        offset = self._offsets[EVENTS, partition]
        self._offsets[EVENTS, partition] += 1
        self.log.append((partition, offset, value))
        for element in decode_event_record(value).elements:
            if isinstance(element, Frontier):
                self.watermarks.take(partition, element)
        record: Any = SourceRecord(EVENTS, partition, offset, 0, None, value, ())
        self.folds[partition].fold(record)


def run_in_process(
    events: Events, settings: Settings, now_ms: int, every: int = 100
) -> InProcess:
    """Send all events, holding back what must be held back."""
    pipeline = InProcess(settings, now_ms)
    held: list[Event] = []
    inputs = settings.kafka.input_partitions
    for number, event in enumerate(events):
        if event.not_before_ms > pipeline.watermarks.of(event.partition_of_log):
            held.append(event)
        else:
            pipeline.send(event, number * 7919 % inputs)
        if number % every == every - 1:
            pipeline.pass_on()
            held = _released(held, pipeline, inputs)
    pipeline.pass_on()
    left = _released(held, pipeline, inputs)
    if left:
        raise RuntimeError(f"{len(left)} events were held back to the end")
    pipeline.end()
    return pipeline


def _released(held: list[Event], pipeline: InProcess, inputs: int) -> list[Event]:
    left = []
    for number, event in enumerate(held):
        if event.not_before_ms > pipeline.watermarks.of(event.partition_of_log):
            left.append(event)
        else:
            pipeline.send(event, number % inputs)
    return left


def warm_up(settings: Settings) -> None:
    """Have every kernel compiled and cached, so that no fault strikes a compiler."""
    now_ms = 1_700_000_000_000
    events = Events(0, now_ms, now_ms, 3_000, settings.kafka.partitions)
    pipeline = run_in_process(events, settings, now_ms + 2 * events.lasts_ms)
    learners = [Learn(p, settings) for p in range(settings.kafka.learner_partitions)]
    for number, (partition, value) in enumerate(pipeline.interactions):
        record = SourceRecord(INTERACTIONS, partition, number, 0, None, value, ())
        learners[partition].fold(record)
