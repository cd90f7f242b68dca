"""What lies in the topics of the takeover, and what one worker would have written."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kafka import KafkaAdminClient, TopicPartition

from models.counts.cells import TOTAL_NAMES
from producers.topic_reader import read_records
from rankstream.settings import Settings
from rankstream.wire.events import (
    Click,
    Frontier,
    Impression,
    Interaction,
    decode_event_record,
    decode_interaction_record,
)
from rankstream.wire.topics import (
    CLICKS,
    EVENTS,
    INTERACTIONS,
    LATE,
    QUERIES,
    dead_letters,
    full_name,
)
from streams.ingest.ingest import Ingest
from streams.kafka.state.resume_position import ResumePosition
from streams.local import LocalPipeline
from streams.stage import Output, SourceRecord
from streams.statistics.reader import Statistics

COUNTED = ("shown", "clicked", "first_click", "shown_to_first", "shown_to_last")
ASIDE = (LATE, dead_letters(QUERIES), dead_letters(CLICKS))

InOrder = dict[tuple[int, int], list[Impression | Click]]
"""What ingestion took in: by partition of `events` and source, in order."""


Log = dict[tuple[int, int], bytes]
"""Records of `events`, by partition and offset."""

Values = dict[tuple[int, bytes], bytes]
"""The last value of each key of a topic, by partition."""


def log_of(settings: Settings) -> Log:
    """What `events` holds."""
    return {
        (record.partition, record.offset): record.value or b""
        for record in read_records(settings, EVENTS)
    }


def delete_most(settings: Settings, held: Mapping[int, ResumePosition]) -> float:
    """Delete 83 of 90 parts of what was counted; the share of records that is left."""
    n_before = len(log_of(settings))
    name = full_name(settings.namespace, EVENTS)
    admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    try:
        admin.delete_records(
            {
                TopicPartition(name, partition): position.offset * 83 // 90
                for partition, position in held.items()
            }
        )
    finally:
        admin.close()
    return len(log_of(settings)) / n_before


def taken_in(log: Log) -> InOrder:
    """Impressions and clicks of the canonical log."""
    found: InOrder = {}
    for (partition, _), value in sorted(log.items()):
        _take(found, partition, value)
    return found


def taken_in_anew(settings: Settings) -> InOrder:
    """The same, by ingestion of this version from the first record on."""
    found: InOrder = {}
    for topic in (QUERIES, CLICKS):
        stages = [Ingest(topic, partition, settings) for partition in range(2)]
        for record in read_records(settings, topic):
            stage = stages[record.partition]
            stage.fold(
                SourceRecord(
                    topic,
                    record.partition,
                    record.offset,
                    record.timestamp_ms,
                    record.key,
                    record.value,
                    record.headers,
                )
            )
        for output in (output for stage in stages for output in stage.outputs()):
            if output.topic == EVENTS:
                _take(found, output.partition, output.value)
    return found


def _take(found: InOrder, partition: int, packed: bytes | None) -> None:
    batch = decode_event_record(packed or b"")
    known = found.setdefault((partition, batch.source), [])
    known += [each for each in batch.elements if not isinstance(each, Frontier)]


class Passed:
    """What the fold passed on: interactions in order, and what it put aside."""

    def __init__(self) -> None:
        self.interactions: dict[tuple[int, int], list[Interaction]] = {}
        self.numbers: dict[tuple[int, int], list[int]] = {}
        self.aside: Counter[tuple[str, int, bytes]] = Counter()

    def take(self, topic: str, partition: int, packed: bytes | None) -> None:
        """Take a record of one of its outputs."""
        if topic in ASIDE:
            self.aside[topic, partition, packed or b""] += 1
        elif topic == INTERACTIONS:
            batch = decode_interaction_record(packed or b"")
            place, rows = (batch.source, partition), batch.interactions
            self.interactions.setdefault(place, []).extend(rows)
            numbers = range(batch.first_sequence, batch.first_sequence + len(rows))
            self.numbers.setdefault(place, []).extend(numbers)


def passed_on(settings: Settings) -> Passed:
    """What lies in the topics; of the dead letters those that the fold wrote."""
    found = Passed()
    for topic in (INTERACTIONS, *ASIDE):
        for record in read_records(settings, topic):
            if record.value != b"no JSON":
                found.take(topic, record.partition, record.value)
    return found


def folded(settings: Settings, log: Log) -> tuple[LocalPipeline, Passed]:
    """Records of `events`, folded by this version."""
    found = Passed()

    def keep(output: Output) -> None:
        found.take(output.topic, output.partition, output.value)

    pipeline = LocalPipeline(settings, now=lambda: 0, on_output=keep)
    for (partition, _), value in sorted(log.items()):
        pipeline.fold_events(partition, value)
    pipeline.flush()
    for fold in pipeline.folds:
        fold.settle()
    return pipeline, found


def sums_of(records: Iterable[tuple[bytes, bytes]]) -> Counter[tuple[Any, ...]]:
    """All that statistics count by query and item, over sets, eras and groups."""
    statistics = Statistics(records)
    sums: Counter[tuple[Any, ...]] = Counter()
    for name in statistics.names():
        cell = statistics.cell(name)
        for total in TOTAL_NAMES:
            sums[name.query, total] += cell.total(total)
        ids = [cell.items[number] for number in cell.column("item").tolist()]
        for column in COUNTED:
            places = zip(
                ids, cell.column("rank"), cell.column(column).tolist(), strict=True
            )
            for item, rank, count in places:
                sums[name.query, item, int(rank), column] += count
        for (number, *counts), squared in zip(
            cell.sums[:, :4].tolist(), cell.squared_inverses(), strict=True
        ):
            for part, count in enumerate((*counts, squared)):
                sums[name.query, cell.items[number], "sums", part] += count
        for one, rank, other, other_rank, count in cell.click_pairs.tolist():
            ends = ((cell.items[one], rank), (cell.items[other], other_rank))
            sums[name.query, *sorted(ends)] += count
    return +sums


def n_closed(settings: Settings) -> int:
    """Interactions that came out."""
    return sum(len(each) for each in passed_on(settings).interactions.values())


def n_learned(settings: Settings) -> int:
    """Interactions of the model: the version that its last snapshot will have."""
    return sum(
        row.impression.model == "m"
        for each in passed_on(settings).interactions.values()
        for row in each
    )


def of_partition(values: Values, partition: int) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of one partition."""
    for (at, key), value in values.items():
        if at == partition:
            yield key, value
