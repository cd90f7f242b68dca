"""What a backup holds, without a broker: its files, and the numbers in them."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from producers.formats.canonical_dump import Header, write_dump
from producers.formats.source_file import FileUnreadable
from producers.topic_reader import Record
from rankstream.operations.conversion.backup import (
    EVENTS_FILE,
    FOLD,
    HEADER,
    KEPT_FILE,
    SETTINGS_KEY,
    Kept,
    back_up,
    last_values,
    read_kept,
)
from rankstream.operations.conversion.restore import numbered, restore, sequences_of
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.settings import KafkaSettings, Settings
from rankstream.wire.events import (
    SCHEMA,
    EventRecord,
    Frontier,
    decode_event_record,
    encode_record,
)
from streams.kafka.state.resume_position import POSITION_KEY

SETTINGS = Settings(
    kafka=KafkaSettings(input_partitions=1, partitions=2, learner_partitions=1)
)


def record(source: int, sequence: int) -> bytes:
    """One with a frontier."""
    frontier = Frontier(source, 2, 1_000 + sequence, 0)
    return encode_record(EventRecord(SCHEMA, source, sequence, [frontier]))


def backup(folder: Path, records: list[tuple[int, bytes]], **pinned: object) -> Path:
    """A folder as a backup leaves it."""
    write_dump(folder / EVENTS_FILE, Header("events", 2), records)
    settings = Kept(FOLD, 0, SETTINGS_KEY, msgspec.msgpack.encode(pinned))
    write_dump(
        folder / KEPT_FILE, Header(HEADER, 1), [(0, msgspec.msgpack.encode(settings))]
    )
    return folder


def test_a_log_that_retention_has_cut_is_numbered_anew(tmp_path: Path) -> None:
    """Each source of each partition from 1; nothing else of a record changes."""
    records = [(0, record(0, 7)), (0, record(1, 1)), (1, record(0, 1)),
               (0, record(0, 8)), (1, record(0, 2))]  # fmt: skip
    dump = backup(tmp_path, records) / EVENTS_FILE
    assert sequences_of(dump) == {(0, 0): 2, (1, 0): 1, (0, 1): 2}
    found = [decode_event_record(each.value or b"") for each in numbered(dump)]
    assert [each.sequence for each in found] == [1, 1, 1, 2, 2]
    before = [decode_event_record(value) for _, value in records]
    assert [each.elements for each in found] == [each.elements for each in before]


def test_a_log_that_lacks_a_record_is_refused(tmp_path: Path) -> None:
    """Before anything is written."""
    dump = backup(tmp_path, [(0, record(0, 1)), (0, record(0, 3))]) / EVENTS_FILE
    with pytest.raises(FileUnreadable, match="number 3 after 1"):
        sequences_of(dump)


class Topics:
    """A reader of one partition of each topic, from what a test says is there."""

    def __init__(self, **topics: list[tuple[bytes, bytes | None]]) -> None:
        self._topics = topics

    def partitions(self, _: str) -> list[int]:
        """One."""
        return [0]

    def records(self, topic: str) -> Iterator[Record]:
        """As they were written."""
        for number, (key, value) in enumerate(self._topics.get(topic, [])):
            yield Record(0, number, 0, key, value, ())


def test_the_last_value_of_a_key_is_kept_and_no_position(tmp_path: Path) -> None:
    """What was removed stays so; the place of a key is that of its last value."""
    written = [(b"a", b"1"), (b"b", b"1"), (POSITION_KEY, b"p"), (b"c", b"1"),
               (b"a", b"2"), (b"c", None)]  # fmt: skip
    reader: Any = Topics(snapshots=written)
    found = [(each.key, each.value) for each in last_values(reader, "snapshots")]
    assert found == [(b"b", b"1"), (b"a", b"2")]
    back_up(reader, SETTINGS, tmp_path / "kept", lambda _: None)
    _, kept = read_kept(tmp_path / "kept")
    of_topic = [(x.key, x.value) for x in kept if x.topic == "snapshots"]
    assert of_topic == found
    assert POSITION_KEY not in {each.key for each in kept}


def test_a_reader_that_was_stopped_makes_no_backup(tmp_path: Path) -> None:
    """It ends early, as at the end of a log: who is told so stops the rest."""
    reader: Any = Topics(events=[(b"", record(0, 1)), (b"", record(0, 2))])

    def stopped(number: int) -> None:
        assert number == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        back_up(reader, SETTINGS, tmp_path / "half", stopped)
    with pytest.raises(ConversionRefused, match="must be whole"):
        read_kept(tmp_path / "half")


@pytest.mark.parametrize("name", [EVENTS_FILE, KEPT_FILE])
def test_half_a_backup_is_none(name: str, tmp_path: Path) -> None:
    """An interrupted one lacks its second file."""
    (backup(tmp_path, []) / name).unlink()
    with pytest.raises(ConversionRefused, match=f"{name} is not there"):
        read_kept(tmp_path)


@pytest.mark.parametrize(
    ("name", "other"), [(EVENTS_FILE, KEPT_FILE), (KEPT_FILE, EVENTS_FILE)]
)
def test_another_dump_in_its_place_is_refused(
    name: str, other: str, tmp_path: Path
) -> None:
    """By what its head says."""
    folder = backup(tmp_path, [], **{"time.keep_ms": SETTINGS.time.keep_ms})
    (folder / name).write_bytes((folder / other).read_bytes())
    with pytest.raises(FileUnreadable, match=f"a dump must be of .*{name}"):
        restore(SETTINGS, folder, lambda _: None)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x: x.with_kafka(partitions=4), "kafka.partitions must be that of"),
        (
            lambda x: x.with_kafka(input_partitions=2),
            "kafka.input_partitions must be that of the backup, 1; got 2",
        ),
        (lambda x: x, r"time.keep_ms was 5, is \d+"),
    ],
)
def test_other_settings_are_refused_by_name(
    change: Callable[[Settings], Settings], said: str, tmp_path: Path
) -> None:
    """No Kafka is asked."""
    folder = backup(tmp_path, [], **{"time.keep_ms": 5})
    with pytest.raises(ConversionRefused, match=said):
        restore(change(SETTINGS), folder, lambda _: None)
