"""The events in records of an input topic: in each one, or an array of them."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from rankstream.wire.bounds import LETTER_BYTES, LETTERS_FACTOR, carried_bytes
from rankstream.wire.input_events import REFUSED_HEADER, refusal_in
from rankstream.wire.refusal_codes import Code
from rankstream.wire.topics import MAX_ELEMENTS
from streams.ingest.refusal import Refused, refuse
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

    `raws` [n] are their bytes, `records` [n] what they came in, `indexes` [n] their
    places in it. `refused` says by number why a record as a whole is none; its element
    has no bytes.
    """

    raws: list[bytes]
    records: list[SourceRecord]
    indexes: list[int]
    refused: dict[int, Refused]

    def selected(self, which: list[int]) -> "Unpacked":
        """Those with these numbers, none of which is refused."""
        return Unpacked(
            [self.raws[number] for number in which],
            [self.records[number] for number in which],
            [self.indexes[number] for number in which],
            {},
        )


def unpacked(records: list[SourceRecord]) -> Iterator[Unpacked]:
    """All elements of records, about `TOGETHER` at a time."""
    for first in range(0, len(records), TOGETHER):
        some = records[first : first + TOGETHER]
        raws = [record.value or b"" for record in some]
        is_single = {raw[:1] for raw in raws} == {b"{"}
        names = {name for record in some for name, _ in record.headers}
        if is_single and REFUSED_HEADER not in names:
            yield Unpacked(raws, some, [0] * len(raws), {})
        else:
            yield from _unpacked_each(some)


def _unpacked_each(records: list[SourceRecord]) -> Iterator[Unpacked]:
    found = Unpacked([], [], [], {})
    for record in records:
        number = len(found.raws)
        try:
            elements = _elements_in(record)
        except Refused as refusal:
            found.refused[number] = refusal
            elements = [b""]
        found.raws.extend(elements)
        found.records.extend([record] * len(elements))
        found.indexes.extend(range(len(elements)))
        if len(found.raws) >= TOGETHER:
            yield found
            found = Unpacked([], [], [], {})
    if found.raws:
        yield found


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
