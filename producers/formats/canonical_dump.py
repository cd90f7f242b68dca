"""A log dumped into a file: the records of `events` or `interactions`, as they are.

The file is a magic, then frames: a checksum and a length (two little-endian
uint32: CRC-32 of the body, bytes of the body), then the body in MessagePack. The
first body is the header `[schema, topic, n_partitions]`, each further one a record
`[partition, value]`, the last `[n_records]`. Records of a partition are in order.
The whole may be packed with gzip or zstd.
"""

import base64
import struct
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import msgspec
import numpy as np

from producers.formats.source_file import (
    UNPACKING_ERRORS,
    FileUnreadable,
    created,
    opened,
)
from rankstream.wire.events import (
    POLICIES,
    Click,
    Impression,
    decode_event_record,
    decode_items,
    encode_event,
)
from rankstream.wire.events import SCHEMA as EVENT_SCHEMA
from rankstream.wire.exposures import unpack_exposures
from rankstream.wire.input_events import Event
from rankstream.wire.routing import SEGMENT_MARK
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import CLICKS, EVENTS, MAX_RECORD_BYTES, QUERIES

MAGIC = b"rankstream-log\x01\n"

SCHEMA = 1

_frame = struct.Struct("<II")
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


class Header(NamedTuple):
    """What a dump holds: the records of a topic that has so many partitions."""

    topic: str
    n_partitions: int


class LoggedRecord(Protocol):
    """A record as a reader of topics gives it."""

    @property
    def partition(self) -> int:
        """Where it stands."""

    @property
    def offset(self) -> int:
        """And at which place."""

    @property
    def value(self) -> bytes | None:
        """What it holds."""


def is_dump(path: Path) -> bool:
    """Whether the file begins as a dump does."""
    with opened(path) as file:
        try:
            return file.read(len(MAGIC)) == MAGIC
        except UNPACKING_ERRORS:
            return False


def write_dump(path: Path, header: Header, records: Iterable[tuple[int, bytes]]) -> int:
    """Write (partition, value) records; the file appears when it is complete.

    Returns
    -------
    int
        How many records were written.
    """
    n_records = 0
    with created(path) as file:
        file.write(MAGIC)
        _write(file, [SCHEMA, *header])
        for partition, value in records:
            _write(file, [partition, value])
            n_records += 1
        _write(file, [n_records])
    return n_records


def checked_records(
    records: Iterable[LoggedRecord], topic: str
) -> Iterator[tuple[int, bytes]]:
    """Partitions and values of a log, each of which this release can read back.

    Raises
    ------
    SchemaRefused
        Where another release wrote one.
    """
    for record in records:
        value = record.value or b""
        where = f"{topic}[{record.partition}]@{record.offset}"
        check_schema(value, EVENT_SCHEMA, f"a record of {topic}", where)
        yield record.partition, value


def read_header(path: Path) -> Header:
    """What the dump holds.

    Raises
    ------
    FileUnreadable
        Where the file is no dump of this schema.
    """
    with opened(path) as file:
        return _header(path, _bodies(path, file))


def read_dump(path: Path) -> Iterator[tuple[int, bytes]]:
    """The (partition, value) records of a dump.

    Raises
    ------
    FileUnreadable
        Where the file is no dump, or is damaged or cut off; records before the
        damage were handed on.
    """
    with opened(path) as file:
        bodies = _bodies(path, file)
        _header(path, bodies)
        number = 0
        for number, body in enumerate(bodies):
            if len(body) == 2:
                yield body[0], body[1]
            elif body == [number]:
                return
            else:
                raise FileUnreadable(path, 0, f"record {number} must be a record")
        raise FileUnreadable(path, 0, "a dump must have its end; it is cut off")


def read_dumped_events(path: Path) -> Iterator[Event]:
    """The events of a dump of `events`, as ingestion would take them again.

    Queries are normalised and candidates sorted already; clicks are as they came. A
    segment is left to the attributes that it came from: ingestion adds it again.

    Raises
    ------
    FileUnreadable
        Where the file is no dump of `events`, or is damaged.
    SchemaRefused
        Where another release wrote a record.
    """
    if (topic := read_header(path).topic) != EVENTS:
        raise FileUnreadable(path, 0, f"a dump must be of {EVENTS}; got {topic}")
    for number, (_, value) in enumerate(read_dump(path)):
        try:
            elements = decode_event_record(value, f"{path}, record {number}").elements
        except msgspec.DecodeError as error:
            reason = f"record {number} must be canonical; {error}"
            raise FileUnreadable(path, 0, reason) from error
        for element in elements:
            if isinstance(element, Click):
                yield Event(element.at_ms, CLICKS, element.raw)
            elif isinstance(element, Impression):
                yield Event(element.at_ms, QUERIES, query_event(element))


def query_event(impression: Impression) -> bytes:
    """The input event of a canonical impression."""
    items = decode_items(impression.candidates)
    rows = np.frombuffer(impression.shown, "<u2").tolist()
    event: dict[str, Any] = {
        "impression_id": impression.impression_id,
        "query_id": impression.query_id.partition(SEGMENT_MARK)[0],
        "at_ms": impression.at_ms,
        "model": impression.model,
        "version": impression.version,
        "intervention": impression.intervention,
        "seed": impression.seed,
        "policy": POLICIES[impression.policy],
        "shown": [items[row] for row in rows],
    }
    if not impression.is_open_set:
        event["candidates"] = items
    vectors = {"scores": impression.scores, "features": impression.features}
    if impression.exposures:
        exposures = unpack_exposures(impression.exposures, len(items), len(rows))
        vectors["exposures"] = exposures.astype("<f4").tobytes()
    for name, vector in vectors.items():
        if vector:
            event[name] = base64.b64encode(vector).decode()
    if impression.extra:
        event |= _decode(impression.extra)
        # Ingestion decides it again, by the settings of then.
        event.pop("excluded", None)
    return encode_event(event)


def _write(file: IO[bytes], body: list[Any]) -> None:
    packed = _encode(body)
    file.write(_frame.pack(zlib.crc32(packed), len(packed)))
    file.write(packed)


def _bodies(path: Path, file: IO[bytes]) -> Iterator[list[Any]]:
    try:
        if file.read(len(MAGIC)) != MAGIC:
            raise FileUnreadable(
                path,
                0,
                "a file must be a dump: `rankstream dump` makes one; correct --format",
            )
        while head := file.read(_frame.size):
            if len(head) < _frame.size:
                raise EOFError("the last frame is cut off")
            checksum, length = _frame.unpack(head)
            if length > 2 * MAX_RECORD_BYTES:
                raise EOFError("a frame is damaged")
            packed = file.read(length)
            if len(packed) < length or zlib.crc32(packed) != checksum:
                raise EOFError("a frame is damaged or cut off")
            yield _decode(packed)
    except UNPACKING_ERRORS as error:
        raise FileUnreadable(
            path, 0, f"a dump must be readable to its end; {error}"
        ) from error


def _header(path: Path, bodies: Iterator[list[Any]]) -> Header:
    header = next(bodies, None)
    if header is None or len(header) != 3 or header[0] != SCHEMA:
        got = header[0] if header else "nothing"
        raise FileUnreadable(
            path, 0, f"a dump must have schema {SCHEMA}; got {got!r:.20}: read it with "
            "the release that wrote it",
        )  # fmt: skip
    return Header(header[1], header[2])
