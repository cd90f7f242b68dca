"""What is needed to have a namespace again: its log, and what no log gives.

The log is `events`, as it is. Statistics, comparisons, features, interactions and what
is learned from them follow from it. Beside it are kept the topics that do not follow,
how far ingestion is in time, and the settings that the log was counted under.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from producers.formats.canonical_dump import (
    Header,
    checked_records,
    read_dump,
    read_header,
    write_dump,
)
from producers.formats.source_file import FileUnreadable
from producers.topic_reader import Record, TopicReader
from rankstream.operations.answers.copies import BackedUp
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.settings import Settings
from rankstream.wire.topics import (
    DECISIONS,
    EVENTS,
    EXPERIMENTS,
    SNAPSHOTS,
    TRAINING,
    state_topic,
)
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.repartitioning.log_split import SPLITS_KEY
from streams.worker_roles import kinds_of

EVENTS_FILE = "events.dump.zst"
"""What `rankstream dump` writes."""

KEPT_FILE = "kept.dump.zst"
"""A dump too, whose records are `Kept`. It is written last."""

KEPT = (SNAPSHOTS, EXPERIMENTS, TRAINING, DECISIONS)
"""Topics whose last values cannot be made from the log."""

INGESTION = tuple(kind.state_topics[0] for kind in kinds_of("ingest"))
FOLD = state_topic("fold")
SETTINGS_KEY = b"settings"

HEADER = "kept"
"""In place of a topic, in the head of the second file."""

Heard = Callable[[int], None]
"""Is told how many records were read so far; may stop all by KeyboardInterrupt."""


class Kept(msgspec.Struct, array_like=True, frozen=True):
    """The last value of a key, in a partition of a topic."""

    topic: str
    partition: int
    key: bytes
    value: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Kept).decode


def back_up(
    reader: TopicReader, settings: Settings, folder: Path, heard: Heard
) -> BackedUp:
    """Write the two files; workers may run meanwhile.

    What is kept is read first. So the log knows all that it came from.

    Raises
    ------
    ConversionRefused
        Where the folder has files, or the log was split.
    """
    if folder.exists() and any(folder.iterdir()):
        raise ConversionRefused(
            f"a backup must have a folder of its own; {folder} has files: name another"
        )
    folder.mkdir(parents=True, exist_ok=True)
    states = [each for name in INGESTION for each in last_values(reader, name)]
    found = [each for name in KEPT for each in last_values(reader, name)]
    rest = [*states, _settings_of_fold(reader), *found]
    header = Header(EVENTS, len(reader.partitions(EVENTS)))
    records = _counted(reader.records(EVENTS), heard)
    n_events = write_dump(
        folder / EVENTS_FILE, header, checked_records(records, EVENTS)
    )
    write_dump(
        folder / KEPT_FILE,
        Header(HEADER, settings.kafka.input_partitions),
        ((each.partition, _encode(each)) for each in rest),
    )
    counts = dict.fromkeys(KEPT, 0)
    for each in found:
        counts[each.topic] += 1
    return BackedUp(str(folder), n_events, counts)


def last_values(reader: TopicReader, topic: str) -> list[Kept]:
    """The last value of each key of a compacted topic, as they were written.

    Resume positions are left out: they are of one topic alone.
    """
    found: dict[tuple[int, bytes], Kept] = {}
    for record in reader.records(topic):
        key = record.key or b""
        found.pop((record.partition, key), None)
        if record.value is not None and key != POSITION_KEY:
            one = Kept(topic, record.partition, key, record.value)
            found[record.partition, key] = one
    return list(found.values())


def partitions_in(file: Path, topic: str) -> int:
    """How many partitions a dump is of, which must be one of this topic.

    Raises
    ------
    FileUnreadable
    """
    header = read_header(file)
    if header.topic != topic:
        raise FileUnreadable(
            file, 0, f"a dump must be of {topic}; got {header.topic}: make the backup "
            "again",
        )  # fmt: skip
    return header.n_partitions


def read_kept(folder: Path) -> tuple[int, list[Kept]]:
    """Partitions of the input topics, and what is kept beside the log.

    Raises
    ------
    ConversionRefused
        Where the folder is no whole backup.
    FileUnreadable
        Where a file is damaged.
    """
    for name in (EVENTS_FILE, KEPT_FILE):
        if not (folder / name).exists():
            raise ConversionRefused(
                "a backup must be whole, as `rankstream backup` wrote it; "
                f"{folder / name} is not there: make it again"
            )
    file = folder / KEPT_FILE
    return partitions_in(file, HEADER), [_decode(x) for _, x in read_dump(file)]


def settings_in(kept: Iterable[Kept]) -> dict[str, Any]:
    """Settings that the log was counted under, by name; empty where it was not."""
    found = next(each.value for each in kept if each.topic == FOLD)
    settings: dict[str, Any] = msgspec.msgpack.decode(found)
    return settings


def _settings_of_fold(reader: TopicReader) -> Kept:
    """Those that the state of the fold is bound to.

    Raises
    ------
    ConversionRefused
        Where the log was split: folded from its beginning it would be another one.
    """
    settings: dict[str, Any] = {}
    for record in reader.records(FOLD):
        if record.key == SPLITS_KEY and record.value is not None:
            raise ConversionRefused(
                "a log to back up must have had its partitions from its beginning; "
                "it was split: copy it with `rankstream dump`, and fold the copy with "
                "`rankstream replay FILE --namespace OTHER` (docs/partitions.md)"
            )
        if record.key == POSITION_KEY and record.value is not None:
            settings = decode_position(record.value).settings
    return Kept(FOLD, 0, SETTINGS_KEY, _encode(settings))


def _counted(records: Iterable[Record], heard: Heard) -> Iterator[Record]:
    number = 0
    for number, record in enumerate(records, 1):
        yield record
        if number % 64 == 0:
            heard(number)
    # A reader that was stopped ends early: half a log must not pass for a whole one.
    heard(number)
