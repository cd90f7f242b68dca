"""Times of other systems as epoch milliseconds.

A number says nothing of its unit. Milliseconds are what it must be; what can only be
seconds, or only micro- or nanoseconds, is refused with the option that converts it.
"""

import re
from datetime import UTC, datetime, timedelta
from typing import Any

from rankstream.adapters.adapter import NotAdapted
from rankstream.wire.bounds import LAST_MS
from rankstream.wire.units_of_time import WORDS, unit_of

CODE = "time"

LAST_NS = LAST_MS * 1_000_000
"""Nobody logs a smaller unit."""

IN_NO_YEAR = -1
"""Of the years that a time may have."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_NUMBER = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?")
_MS_OF = {"s": 1_000, "ms": 1}
_OF_MS = {"us": 1_000, "ns": 1_000_000}


def at_ms_of(value: Any, unit: str, name: str = "timestamp", *, kind: str) -> int:
    """Milliseconds since 1970.

    Parameters
    ----------
    value
        A number, a number as text, or ISO 8601 with a zone.
    unit
        `s`, `ms`, `us` or `ns` where numbers are such; empty where they must be
        milliseconds.
    name
        Of the field, for who must be told.
    kind
        The topic whose letters take a document that is refused.

    Raises
    ------
    NotAdapted
    """
    if isinstance(value, str):
        text = value.strip()
        at_ms = (
            _of_number(float(text) if "." in text else int(text), unit, name, kind)
            if _NUMBER.fullmatch(text)
            else _of_iso(text, name, kind)
        )
    elif isinstance(value, int | float) and not isinstance(value, bool):
        at_ms = _of_number(value, unit, name, kind)
    elif value is None:
        raise NotAdapted(CODE, f"{name} must be there", kind=kind)
    else:
        got = type(value).__name__
        raise NotAdapted(CODE, f"{name} must be a time; got a {got}", kind=kind)
    if not 0 <= at_ms <= LAST_MS:
        raise NotAdapted(
            CODE, f"{name} must lie from 1970 to 9999; got {value!r:.60}", kind=kind
        )
    return at_ms


def _of_number(value: float, unit: str, name: str, kind: str) -> int:
    # Such as not-a-number, or whole numbers for which a float has no room.
    if not abs(value) <= LAST_NS:
        return IN_NO_YEAR
    found = unit_of(int(value))
    if unit and found in ("", unit):
        return in_ms(value, unit)
    if found in ("", "ms") and not unit:
        return int(value)
    raise NotAdapted(
        CODE,
        f"{name} must be in {WORDS[unit or 'ms']}; {value} is in {WORDS[found]}: set "
        f'time_unit = "{found}"',
        kind=kind,
        unit=found,
        number=value,
    )


def in_ms(value: float, unit: str) -> int:
    """Milliseconds of a number in a unit."""
    if unit in _OF_MS:
        return int(value) // _OF_MS[unit]
    return int(value * _MS_OF[unit])


def _of_iso(text: str, name: str, kind: str) -> int:
    try:
        # Fractions beyond microseconds are cut; RFC 3339 allows small letters.
        time = datetime.fromisoformat(text.upper())
        if time.tzinfo is None:
            raise NotAdapted(
                CODE,
                f"{name} must have a zone, such as Z or +01:00; got {text!r:.60}",
                kind=kind,
            )
        return (time - _EPOCH) // _MS
    except (ValueError, OverflowError) as error:
        if isinstance(error, NotAdapted):
            raise
        raise NotAdapted(
            CODE,
            f"{name} must be ISO 8601 or epoch milliseconds; got {text!r:.60}",
            kind=kind,
        ) from error
