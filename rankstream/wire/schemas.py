"""The number that begins each record and each piece of state, compared by all readers.

A value of another schema may well decode: fields that were swapped are numbers still.
So the number is compared before anything else is read.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

Decoded = TypeVar("Decoded")

CONVERT_STATISTICS = (
    "stop all workers and run `rankstream statistics convert`, with `--local DIR` for "
    "a folder (docs/upgrading.md)"
)
"""The remedy where statistics are of the release before scopes."""


class LogRefused(RuntimeError):
    """A log, or a state, that a stage cannot go on from; a new start would not help."""


class SchemaRefused(LogRefused):
    """A record, or a piece of state, of a schema that this release does not know.

    Operator action: run the release that wrote it or a later one, or begin anew in
    another namespace.
    """


def decoded(decode: Callable[[bytes], Decoded], packed: bytes) -> Decoded:
    """What a decoder makes of bytes, with one error for whatever they may be.

    Text that is not UTF-8 and what is nested too deep have errors of their own in the
    library.

    Raises
    ------
    msgspec.DecodeError
        Where it makes nothing of them.
    """
    try:
        return decode(packed)
    except (UnicodeError, RecursionError) as error:
        raise msgspec.DecodeError(str(error)) from error


def decoding(decode: Callable[[bytes], Decoded]) -> Callable[[bytes], Decoded]:
    """`decoded`, by one decoder."""
    return partial(decoded, decode)


def schema_of(packed: bytes) -> int | None:
    """The integer that begins a MessagePack array; None where no array begins.

    -1, which is no schema, where the array begins with something else. Nothing else is
    decoded, so that it costs the same for a record of any size.

    Examples
    --------
    >>> schema_of(bytes([0x92, 1, 0xC0])), schema_of(bytes([0x91, 0xCC, 200]))
    (1, 200)
    >>> schema_of(bytes([0x91, 0xC0])), schema_of(b"") is None
    (-1, True)
    """
    first = packed[0] if packed else 0
    if first & 0xF0 == 0x90:
        at = 1
    elif first in (0xDC, 0xDD):
        at = 3 if first == 0xDC else 5
    else:
        return None
    if at >= len(packed):
        return None
    number = packed[at]
    if number < 0x80:
        return number
    if number >= 0xE0:
        return number - 256
    if 0xCC <= number <= 0xD3:
        is_signed = number >= 0xD0
        end = at + 1 + (1 << (number & 3))
        return int.from_bytes(packed[at + 1 : end], "big", signed=is_signed)
    return -1


def check_schema(packed: bytes, known: int, what: str, where: str) -> None:
    """Compare the number of a packed record or state; what has none is left to decode.

    Parameters
    ----------
    known
        The schema that the reader decodes.
    what, where
        What it is, and where it lies: topic, partition and offset, or topic and key.

    Raises
    ------
    SchemaRefused
        Where it is another.
    """
    found = schema_of(packed)
    if found is not None and found != known:
        raise SchemaRefused(schema_refusal(found, known, what, where))


def schema_refusal(
    found: int, known: int, what: str, where: str, remedy: str = ""
) -> str:
    """Why a schema is refused, and what to do about it.

    Parameters
    ----------
    remedy
        Instead of running the release that wrote it.

    Examples
    --------
    >>> print(schema_refusal(2, 1, "a record of events", "events[0]@7"))
    ... # doctest: +NORMALIZE_WHITESPACE
    a record of events must have schema 1; got 2, at events[0]@7: a later release
    wrote it: run that one, or begin anew in another --namespace
    """
    age = "a later" if found > known else "an earlier"
    return (
        f"{what} must have schema {known}; got {found}, at {where}: {age} release "
        f"wrote it: {remedy or 'run that one'}, or begin anew in another --namespace"
    )
