"""Numbers of things and times, as people say them."""

import datetime


def counted(number: int, thing: str, things: str = "") -> str:
    """`1 list`, `2 lists`, `1,000 queries`.

    Examples
    --------
    >>> counted(1, "list"), counted(2_000, "query", "queries")
    ('1 list', '2,000 queries')
    """
    return f"{number:,} {thing if number == 1 else things or thing + 's'}"


def moment(at_ms: int) -> str:
    """A time as people read it.

    Examples
    --------
    >>> moment(1_750_000_000_000)
    '2025-06-15 15:06:40'
    """
    try:
        at = datetime.datetime.fromtimestamp(at_ms / 1_000.0, datetime.UTC)
    except (OverflowError, ValueError, OSError):  # after the year 9999
        return f"{at_ms:,} ms"
    return at.strftime("%Y-%m-%d %H:%M:%S")
