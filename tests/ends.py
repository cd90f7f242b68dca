"""Intervals of verdicts, where there must be one."""

from rankstream.wire.verdicts import PairVerdict, RateDifference


def ends_of(found: PairVerdict | RateDifference, kind: str) -> tuple[float, float]:
    """Both ends of an interval, by its name."""
    low, high = getattr(found, kind)
    assert low is not None
    assert high is not None
    return low, high
