"""Every reader of a topic of ours refuses another schema, before it reads on."""

import base64
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from producers.formats import canonical_dump
from producers.formats.canonical_dump import Header, read_dumped_events, write_dump
from producers.formats.source_file import FileUnreadable
from producers.stop_signal import Stop
from producers.topic_reader import Record
from rankstream.operations.commands.dump import run as dump
from rankstream.operations.monitoring.position_bias import PositionBias
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import ExperimentSettings, ModelSettings, Settings
from rankstream.wire.events import (
    LOGGED,
    SCHEMA,
    ClickMark,
    Interaction,
    decode_interaction_record,
    encode_record,
)
from rankstream.wire.exposures import pack_exposures
from rankstream.wire.schemas import (
    SchemaRefused,
    check_schema,
    schema_of,
)
from rankstream.wire.topics import (
    EVENTS,
    INTERACTIONS,
    PREFERENCES,
    STATISTICS,
)
from streams.comparisons.health import health_of
from streams.comparisons.preference_fold import read_outcomes, read_records
from streams.learning.learn import Learn
from streams.local import local_settings
from streams.partition_fold import partition_fold
from streams.recount.recount import Statistics as NoStatistics
from streams.recount.recount import recount
from streams.recount.rules import rules_of
from streams.stage import Change, LogRefused, SourceRecord, Stage, referred
from streams.statistics.keys import SCHEMA as STATISTICS_SCHEMA
from streams.statistics.keys import decode, encode
from streams.statistics.reader import Statistics
from streams.topology import STAGES, StageKind
from streams.worker_roles import kinds_of
from tests.event_factory import START_MS, click, impression
from tests.models.counts.scope_values import ScopeValue
from tests.streams.statistics.statistics_records import (
    NAME,
    counted_record,
    logged,
    logged_row,
    scope_records,
)

SETTINGS = local_settings(
    Settings(
        models={"m": ModelSettings(features=2)},
        experiments={"x": ExperimentSettings(rankers={"a": "", "b": ""})},
    )
)
OTHER = [0, 2, 99, 300, -99]


def with_schema(packed: bytes, number: int, known: int = SCHEMA) -> bytes:
    """The same value, of another schema; its decoder would not see it."""
    assert packed[1] == known
    return packed[:1] + msgspec.msgpack.encode(number) + packed[2:]


def record_of(topic: str, value: bytes, offset: int = 7) -> SourceRecord:
    """As a stage is given it."""
    return SourceRecord(topic, 0, offset, START_MS, None, value, ())


def an_impression(**fields: Any) -> Any:
    """Of the model and of the experiment."""
    extra = {
        "experiment": {"id": "x", "epoch": 1, "method": "pairwise-preference"},
        "rankings": {"a": ["d0", "d1"], "b": ["d1", "d0"]},
        "candidate_features": base64.b64encode(bytes(8)).decode(),
        "features_hash": "0123456789abcdef",
    }
    items = ["d0", "d1"]
    packed = msgspec.msgpack.encode(extra)
    return impression(items=items, shown=items, extra=packed, **fields)


def events() -> bytes:
    """A record of `events`."""
    return encode_record([SCHEMA, 0, 1, [an_impression(), click()]])


def interactions() -> bytes:
    """A record of `interactions`."""
    marks = [ClickMark(1, START_MS, "click")]
    return encode_record([SCHEMA, 0, 1, [Interaction(an_impression(), marks)]])


def refusal(attempt: Callable[[], object]) -> str:
    """What is said; the worker ends with the status that says not to start again."""
    with pytest.raises(SchemaRefused) as refused:
        attempt()
    assert isinstance(refused.value, LogRefused)
    return str(refused.value)


@pytest.mark.parametrize("number", OTHER)
@pytest.mark.parametrize(
    ("topic", "make", "stage"),
    [
        (EVENTS, events, lambda: partition_fold(0, SETTINGS)),
        (INTERACTIONS, interactions, lambda: Learn(0, SETTINGS)),
        (INTERACTIONS, interactions, lambda: Learn(0, Settings())),
    ],
)
def test_records_of_another_schema_are_not_folded(
    topic: str, make: Callable[[], bytes], stage: Callable[[], Stage], number: int
) -> None:
    """With the topic, the place and the remedy; nothing of it is taken."""
    folding, untouched = stage(), stage().fingerprint()
    told = refusal(lambda: folding.fold(record_of(topic, with_schema(make(), number))))

    assert f"a record of {topic} must have schema 1; got {number}" in told
    assert f"at {topic}[0]@7: " in told
    assert ("a later" if number > 1 else "an earlier") + " release wrote it" in told
    assert "--namespace" in told
    assert folding.fingerprint() == untouched
    folding.fold(record_of(topic, make()))
    assert folding.fingerprint() != untouched


def records_of(source: str) -> list[SourceRecord]:
    """What makes a stage write every kind of its state.

    Of `events`: an impression that closed, and was counted and compared, with an
    exposure row; another is open. What ingestion is given is counted by nobody, so it
    needs nothing.
    """
    if source == INTERACTIONS:
        return [record_of(INTERACTIONS, interactions())]
    if source != EVENTS:
        return []
    window_ms = SETTINGS.time.click_window_ms + SETTINGS.time.disorder_ms
    drawn = np.full((2, 2), 0.5, np.float32)
    closing = an_impression(policy=LOGGED, exposures=pack_exposures(drawn))
    later = impression("later", START_MS + window_ms)
    frontiers = [[3, 0, 1, START_MS + window_ms, 0]]
    return [
        record_of(EVENTS, encode_record([SCHEMA, 0, number, elements]), number)
        for number, elements in enumerate(([closing], frontiers, [later]), 1)
    ]


def folded(kind: StageKind) -> Stage:
    """A stage that has taken all of them."""
    stage = kind.build(SETTINGS, 0)
    for record in records_of(kind.source):
        stage.fold(record)
    stage.outputs()
    return stage


def of_fold() -> list[Change]:
    """What the fold writes."""
    (kind,) = kinds_of("fold")
    return kept(folded(kind).changes())


def kept(changes: Iterable[Change]) -> list[Change]:
    """State that is no tombstone."""
    return [change for change in changes if change.value is not None]


def is_numbered(change: Change) -> bool:
    """Segments have no number of their own: that of `state` is theirs."""
    return change.topic != "fold-state" or change.key == b"state"


def test_every_piece_of_state_is_refused_in_another_schema() -> None:
    """One after another, in front of all the others as they should be."""
    refused = set()
    for kind in STAGES:
        make = partial(kind.build, SETTINGS, 0)
        changes = kept(folded(kind).changes())
        referred_to = [
            referred(kind.source, record.offset, record.value or b"")
            for record in records_of(kind.source)
            if kind.name == "fold"
        ]
        make().restore([*changes, *referred_to])
        for i, change in enumerate(changes):
            if not is_numbered(change):
                continue
            known = STATISTICS_SCHEMA if change.topic == STATISTICS else SCHEMA
            value = with_schema(change.value or b"", 99, known)
            other = [*changes[:i], change._replace(value=value), *changes[i + 1 :]]
            told = refusal(partial(make().restore, other))
            assert f"must have schema {known}; got 99, at {change.topic}" in told
            assert "a later release wrote it" in told
            piece = change.key[2:5] if change.topic == STATISTICS else b""
            refused.add((change.topic, piece))

    states = {name for kind in STAGES for name in kind.state_topics}
    assert {topic for topic, _ in refused} == states
    pieces = {piece for topic, piece in refused if topic == STATISTICS}
    assert pieces == {b"sco", b"set", b"row", b"cou"}


def test_readers_of_statistics_refuse_too_and_the_monitor_says_so() -> None:
    """Before anything is counted from it; what the monitor leaves out, it tells."""
    log = [ClosedImpression(0, [0]), logged([1], [1], [[0.5], [0.5]], b"r" * 16)]
    log.append(ClosedImpression(0, [1]))
    value = ScopeValue(("a", "b"), most_lists=1, pieces=(0,), piece_lists=1).take(log)
    rows = {b"r" * 16: logged_row([[0.5], [0.5]])}
    records = [*scope_records(NAME, value, rows), counted_record()]
    assert [decode(key)[0] for key, _ in records] == [
        "scope",
        "piece",
        "lists",
        "set",
        "row",
        "counted",
    ]
    assert len(Statistics(records)) == 1
    for i, (key, packed) in enumerate(records):
        pairs = [*records]
        pairs[i] = key, with_schema(packed or b"", 99, STATISTICS_SCHEMA)
        assert "at statistics, key " in refusal(partial(Statistics, pairs))
        bias = PositionBias()
        bias.take([Record(0, n, 0, *pair, ()) for n, pair in enumerate(pairs)])
        assert ("got 99" in bias.refused) == (i < 3)
    bias = PositionBias()
    bias.take([Record(0, 0, 0, encode(["cell", "q", b"", "m", 1]), b"\x01", ())])
    assert "run `rankstream statistics convert`" in bias.refused


def test_the_evaluator_gives_an_alarm_and_judges_the_others() -> None:
    """Sums of another schema are refused by name; counts of one are no silence."""
    changes = [c for c in of_fold() if c.topic == PREFERENCES]
    good = {change.key: change.value or b"" for change in changes}
    other = {key: with_schema(value, 99) for key, value in good.items()}
    (comparison,) = read_records(good).comparisons
    records = read_records(other)

    assert records.comparisons == []
    assert "must have schema 1; got 99" in records.refused["x", 1]
    assert read_outcomes(other)["unread"] == 1
    assert "unread" not in read_outcomes(good)
    lights = {c.name: c.state for c in health_of(comparison, read_outcomes(other))}
    assert lights["partitions unread"] == "alarm"
    lights = {c.name: c.state for c in health_of(comparison, read_outcomes(good))}
    assert "partitions unread" not in lights


def test_the_recount_and_dumped_logs_refuse_too(tmp_path: Path) -> None:
    """Events and interactions; a dump names the file and the record."""
    nothing = NoStatistics(set(), lambda _: {})

    def counted(log: bytes, written: bytes) -> object:
        pairs = [(0, 3, log)], [(0, written)]
        return recount(pairs[0], {}, nothing, pairs[1], rules_of(SETTINGS))

    assert "at events[0]@3" in refusal(
        lambda: counted(with_schema(events(), 99), interactions())
    )
    assert "at interactions[0]" in refusal(
        lambda: counted(events(), with_schema(interactions(), 99))
    )
    file = tmp_path / "events.dump"
    write_dump(file, Header(EVENTS, 1), [(0, events()), (0, with_schema(events(), 99))])
    assert f"at {file}, record 1: " in refusal(lambda: list(read_dumped_events(file)))


def test_a_log_of_another_schema_is_not_dumped() -> None:
    """The file could not be read back; only the broker is left out here."""
    values = [events(), with_schema(events(), 99)]
    records = [Record(0, n, 0, None, value, ()) for n, value in enumerate(values)]
    reader: Any = SimpleNamespace(records=lambda _: records)
    with ProgressLine("dumping", total=2) as line, Stop() as stop:
        given = dump._records(reader, EVENTS, line, stop)
        assert next(given) == (0, values[0])
        assert "at events[0]@1: " in refusal(partial(next, given))


def test_a_dump_file_of_another_schema_says_what_it_has(tmp_path: Path) -> None:
    """The file's own number, in its header."""
    file = tmp_path / "events.dump"
    body = msgspec.msgpack.encode([99, EVENTS, 1])
    head = len(body).to_bytes(4, "little")
    file.write_bytes(
        canonical_dump.MAGIC + zlib.crc32(body).to_bytes(4, "little") + head + body
    )
    with pytest.raises(FileUnreadable, match="must have schema 1; got 99"):
        canonical_dump.read_header(file)


def test_what_has_no_number_is_left_to_its_decoder() -> None:
    """Nothing, no array, an empty one, or one that is cut off."""
    for packed in (b"", b"\x01", b"\x91", b"\xdc\x00"):
        assert schema_of(packed) is None
    for number in (0, 127, 128, 300, 70_000, 2**40, -1, -99, -(2**40)):
        assert schema_of(msgspec.msgpack.encode([number, "x"])) == number
        assert schema_of(msgspec.msgpack.encode([number] * 20)) == number
        assert schema_of(msgspec.msgpack.encode([number] * 70_000)) == number
    with pytest.raises(msgspec.DecodeError):
        decode_interaction_record(b"\x91\x01")


@pytest.mark.parametrize("other", ["99", 99.0, None, [1]])
def test_what_begins_with_no_integer_is_of_no_schema(other: object) -> None:
    """Fields of another layout may well decode."""
    packed = msgspec.msgpack.encode([other, 1])
    assert schema_of(packed) == -1
    with pytest.raises(SchemaRefused, match="must have schema 1"):
        check_schema(packed, 1, "a state", "somewhere")
