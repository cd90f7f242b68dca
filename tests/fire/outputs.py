"""The outputs of a finished run, read from their topics."""

from producers.topic_reader import Record, TopicReader
from rankstream.operations.recount.referred_log import referred_records
from rankstream.settings import Settings
from rankstream.wire.topics import (
    CLICKS,
    INTERACTIONS,
    LATE,
    QUERIES,
    STATISTICS,
    dead_letters,
)
from streams.fold.segments import STATE_TOPIC
from streams.partition_fold import partition_fold
from streams.stage import Change
from tests.fire.letters import Found, last_values, letter_of


def collected(settings: Settings) -> Found:
    """Everything that the pipeline wrote."""
    found = Found()
    with TopicReader(settings) as reader:
        for record in reader.records(INTERACTIONS):
            found.take_interactions(record.value or b"")
        for record in reader.records(LATE):
            found.take_late(record.value or b"", record.headers)
        for topic in (QUERIES, CLICKS):
            for record in reader.records(dead_letters(topic)):
                letter = letter_of(record.value, record.key, record.headers)
                found.letters.append(letter)
            for values in _compacted(reader, f"ingest-{topic}-state").values():
                found.take_ingest_state(values[b"state"])
        statistics = _compacted(reader, STATISTICS)
        states = _compacted(reader, STATE_TOPIC)
        log = {
            partition: [*referred_records(reader, partition, _of_fold(values))]
            for partition, values in states.items()
        }
    for partition, values in states.items():
        counted = statistics.get(partition, {})
        found.statistics += counted.items()
        changes = [Change(STATISTICS, k, v) for k, v in counted.items()]
        changes += [Change(STATE_TOPIC, k, v) for k, v in values.items()]
        fold = partition_fold(partition, settings)
        changes = [each for each in changes if each.key != b"marker"]
        fold.restore([*changes, *log[partition]])
        found.outcomes.update(fold.counters())
    return found


def _of_fold(values: dict[bytes, bytes]) -> dict[tuple[str, bytes], bytes]:
    """By topic and key."""
    return {(STATE_TOPIC, key): value for key, value in values.items()}


def _compacted(reader: TopicReader, topic: str) -> dict[int, dict[bytes, bytes]]:
    """The last value of each key, by partition."""
    by_partition: dict[int, list[Record]] = {}
    for record in reader.records(topic):
        by_partition.setdefault(record.partition, []).append(record)
    return {
        partition: last_values((record.key, record.value) for record in records)
        for partition, records in by_partition.items()
    }
