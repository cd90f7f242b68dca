"""The events in a record of an input topic: one, or an array of them."""

import msgspec

from rankstream.wire.bounds import LETTER_BYTES, LETTERS_FACTOR
from rankstream.wire.refusal_codes import Code
from rankstream.wire.topics import MAX_ELEMENTS
from streams.ingest.refusal import Refused, refuse

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


def reason_of(error: Exception) -> str:
    """What a decoder says, in the words of a refusal."""
    return f"a record must be JSON; {error}"[:1024]
