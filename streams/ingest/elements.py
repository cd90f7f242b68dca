"""The events in records of an input topic: in each one, or an array of them."""

from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from rankstream.wire.bounds import LETTER_BYTES, LETTERS_FACTOR, carried_bytes
from rankstream.wire.input_events import REFUSED_HEADER, refusal_in
from rankstream.wire.refusal_codes import Code
from rankstream.wire.topics import MAX_ELEMENTS
from streams.ingest.refusal import Refused, refuse
from streams.source_records import SourceRecords
from streams.stage import SourceRecord

TOGETHER = 2_048
"""Elements that are taken together, unless a record holds more."""

UNREADABLE = (
    msgspec.DecodeError,
    RecursionError,
    UnicodeError,
    ValueError,
    OverflowError,
)
"""What a decoder raises on bytes that are no JSON."""

_first_byte = itemgetter(0)
_decode_batch = msgspec.json.Decoder(list[msgspec.Raw]).decode


def elements_of(value: bytes, n_carried: int = 0) -> list[bytes]:
    """The raw elements of an input record: itself, or those of its array.

    Parameters
    ----------
    n_carried
        Bytes of key and headers, which a dead letter of each element repeats.

    Raises
    ------
    Refused
        Where the record is no JSON at all, or holds no event or too many.
    """
    start = value.lstrip()[:1]
    if not start:
        refuse(Code.EMPTY, "a record must hold an event; got none")
    if start != b"[":
        return [value]
    try:
        elements = _decode_batch(value)
    except UNREADABLE as error:
        raise Refused(Code.NOT_JSON, reason_of(error)) from error
    if not elements:
        refuse(Code.EMPTY_BATCH, "a batch must hold an event; got none")
    if (n := len(elements)) > MAX_ELEMENTS:
        refuse(Code.BATCH, f"a batch must hold at most {MAX_ELEMENTS} events; got {n}")
    n_bytes = LETTER_BYTES + n_carried
    if n * n_bytes > LETTERS_FACTOR * (n_bytes + len(value)):
        refuse(
            Code.BATCH_LETTERS,
            f"dead letters of a batch must take at most {LETTERS_FACTOR} times its "
            f"bytes; {n} events of {len(value) // n} bytes with {n_carried} of key "
            "and headers could take more: send fewer in a record, or shorter keys",
        )
    return [bytes(element) for element in elements]


class Unpacked(NamedTuple):
    """Elements of records, in their order.

    `raws` [n] are their bytes, `rows` [n] say which of the records each came in,
    `indexes` [n] are their places in it. `refused` says by number why a record as a
    whole is none; its element has no bytes.
    """

    records: SourceRecords
    raws: list[bytes]
    rows: NDArray[np.int64]
    indexes: NDArray[np.int64]
    refused: dict[int, Refused]

    @property
    def times_ms(self) -> NDArray[np.int64]:
        """When the record of each was appended; [n]."""
        return self.records.times_ms[self.rows]

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offset of the record of each; [n]."""
        return self.records.offsets[self.rows]

    def selected(self, which: NDArray[np.int64]) -> "Unpacked":
        """Those with the numbers `which` [m], none of which is refused."""
        raws = [self.raws[number] for number in which.tolist()]
        return Unpacked(self.records, raws, self.rows[which], self.indexes[which], {})


def unpacked(records: SourceRecords) -> Iterator[Unpacked]:
    """All elements of records, about `TOGETHER` at a time."""
    for first in range(0, len(records), TOGETHER):
        some = records[first : first + TOGETHER]
        raws = [value or b"" for value in some.values]
        is_single = all(raws) and set(map(_first_byte, raws)) == {ord("{")}
        names = {name for each in filter(None, some.headers) for name, _ in each}
        if is_single and REFUSED_HEADER not in names:
            n = len(raws)
            yield Unpacked(some, raws, np.arange(n), np.zeros(n, np.int64), {})
        else:
            yield from _unpacked_each(some)


def _unpacked_each(records: SourceRecords) -> Iterator[Unpacked]:
    raws: list[bytes] = []
    rows: list[int] = []
    indexes: list[int] = []
    refused: dict[int, Refused] = {}
    for row, record in enumerate(records):
        try:
            elements = _elements_in(record)
        except Refused as refusal:
            refused[len(raws)] = refusal
            elements = [b""]
        raws.extend(elements)
        rows.extend([row] * len(elements))
        indexes.extend(range(len(elements)))
        if len(raws) >= TOGETHER or row == len(records) - 1:
            places, numbers = np.array([rows, indexes], np.int64)
            yield Unpacked(records, raws, places, numbers, refused)
            raws, rows, indexes, refused = [], [], [], {}


def _elements_in(record: SourceRecord) -> list[bytes]:
    words = refusal_in(record.headers)
    if words is not None:
        refuse(Code.NOT_ADAPTED, words)
    value = record.value or b""
    if value[:1] == b"{":
        return [value]
    return elements_of(value, carried_bytes(record.key, record.headers))


def reason_of(error: Exception) -> str:
    """What a decoder says, in the words of a refusal."""
    return f"a record must be JSON; {error}"[:1024]
