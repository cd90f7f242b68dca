"""Which unit a number must have to be a time that people log."""

LEAST_SECONDS = 100_000_000
"""March 1973 in seconds; in milliseconds, 2 January 1970."""

LEAST_MS = 100_000_000_000
"""March 1973 in milliseconds; in seconds, the year 5138."""

LEAST_US = 100_000_000_000_000
"""March 1973 in microseconds; in milliseconds, the year 5138."""


def unit_of(number: int) -> str:
    """`s`, `ms` or `us` of a time that is plausible in no other unit; else empty.

    Nanoseconds are said to be `us`: to be divided, at any rate.
    """
    if number < LEAST_SECONDS:
        return ""
    if number < LEAST_MS:
        return "s"
    return "ms" if number < LEAST_US else "us"
