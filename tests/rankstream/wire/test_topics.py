"""What topics are made with."""

from datetime import timedelta

from rankstream.wire.topics import FORTNIGHT


def test_a_fortnight_is_two_weeks() -> None:
    """To the millisecond."""
    kept = timedelta(milliseconds=int(FORTNIGHT["retention.ms"]))
    assert kept == timedelta(weeks=2)
