"""Units of times: seconds to nanoseconds, told from how large a number is."""

LEAST_SECONDS = 100_000_000
"""March 1973 in seconds; in milliseconds, 2 January 1970."""

LEAST_MS = 100_000_000_000
"""March 1973 in milliseconds; in seconds, the year 5138."""

LEAST_US = 100_000_000_000_000
"""March 1973 in microseconds; in milliseconds, the year 5138."""

LEAST_NS = 100_000_000_000_000_000
"""March 1973 in nanoseconds; in microseconds, the year 5138."""

WORDS = {
    "s": "seconds",
    "ms": "milliseconds",
    "us": "microseconds",
    "ns": "nanoseconds",
}
"""Units as the option `time_unit` takes them, and their names."""


def unit_of(number: int) -> str:
    """`s`, `ms`, `us` or `ns` of a time that is plausible in no other; else empty."""
    if number < LEAST_SECONDS:
        return ""
    if number < LEAST_MS:
        return "s"
    if number < LEAST_US:
        return "ms"
    return "us" if number < LEAST_NS else "ns"
