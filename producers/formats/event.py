"""A front-door event as it stands in a file: when, which kind, its bytes."""

from typing import NamedTuple

import msgspec

from rankstream.topics import CLICKS, QUERIES


class Event(NamedTuple):
    """One event: epoch milliseconds, `queries` or `clicks`, and its JSON."""

    at_ms: int
    kind: str
    value: bytes


class EventTooLarge(ValueError):
    """An event is larger than the front door accepts; it was not sent.

    Operator action: send fewer candidates or features with it.
    """


class _Sight(msgspec.Struct, gc=False):
    """What must be seen of an event to sort and route it."""

    at_ms: int
    shown: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_see = msgspec.json.Decoder(_Sight).decode


def recognised(value: bytes) -> Event:
    """The event in `value`; a query event is one that has `shown`.

    Whether its fields are sound is for the front door to judge.

    Raises
    ------
    ValueError
        Where `value` is no JSON object with a whole number `at_ms`.
    """
    try:
        sight = _see(value)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError(f"an event must be JSON with at_ms; {error}") from error
    kind = CLICKS if sight.shown is msgspec.UNSET else QUERIES
    return Event(sight.at_ms, kind, value)
