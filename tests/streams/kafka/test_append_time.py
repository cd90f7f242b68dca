"""Append times of the broker, and a worker whose own clock is wrong."""

import logging
from types import SimpleNamespace
from typing import Any

import pytest
from faust.types import TP

from streams.kafka.append_time import (
    DIFFERS_MS,
    LOG_APPEND_TIME,
    AppendTimes,
    ClockDifference,
    wall_ms,
)

PLACE = TP("shop.queries", 2)
NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def appended(at_ms: int) -> Any:
    """A record as the client has it."""
    return SimpleNamespace(timestamp=at_ms, timestamp_type=LOG_APPEND_TIME)


def timed(at_ms: int | None, timestamp_type: int) -> Any:
    """A record as the client gives it."""
    return SimpleNamespace(timestamp=at_ms, timestamp_type=timestamp_type, offset=5)


def test_the_brokers_time_is_taken_as_it_is() -> None:
    """To the millisecond."""
    records = [timed(NOW_MS + one, LOG_APPEND_TIME) for one in (1, 0)]
    assert AppendTimes().of(PLACE, records) == [NOW_MS + 1, NOW_MS]


def test_a_clients_time_is_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    """When it is read stands for it, and that is said once, with the remedy."""
    times, before_ms = AppendTimes(), wall_ms()
    with caplog.at_level(logging.WARNING):
        first = [timed(1, 0), timed(NOW_MS, LOG_APPEND_TIME)]
        at_ms, told = times.of(PLACE, first)
        found = [at_ms, *times.of(PLACE, [timed(None, 0)])]

    assert told == NOW_MS
    assert all(before_ms <= at_ms <= wall_ms() for at_ms in found)
    (line,) = caplog.messages
    assert "event=no-append-time place=shop.queries[2]@5" in line
    assert "rankstream topics create --alter" in line


@pytest.mark.parametrize(
    ("ahead_ms", "words"),
    [(HOUR_MS, "3600 s ahead"), (-HOUR_MS, "3600 s behind")],
)
def test_a_clock_that_differs_is_told_once(
    ahead_ms: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """By how much, and what to do; the figure goes on."""
    clocks = ClockDifference()
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            own_ms = NOW_MS + ahead_ms + number
            record = appended(NOW_MS + number)
            clocks.see(PLACE, record, told_ms=own_ms, now_ms=own_ms)

    (line,) = caplog.messages
    assert "event=clock-differs partition=shop.queries[2]" in line
    assert words in line
    assert "NTP" in line
    assert clocks.seconds(PLACE) == ahead_ms / 1_000


def test_clocks_that_agree_are_not_spoken_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """However long the broker had said that there is nothing more."""
    clocks = ClockDifference()
    with caplog.at_level(logging.WARNING):
        for told_ms in (NOW_MS - HOUR_MS, NOW_MS - 1, NOW_MS + DIFFERS_MS):
            now_ms = max(told_ms, NOW_MS) + 100
            clocks.see(PLACE, appended(NOW_MS), told_ms=told_ms, now_ms=now_ms)

    assert caplog.messages == []


def test_what_waited_in_the_log_says_nothing_of_clocks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It may be old; nor do clients' own times say anything."""
    clocks = ClockDifference()
    of_a_client = SimpleNamespace(timestamp=NOW_MS + HOUR_MS, timestamp_type=0)
    with caplog.at_level(logging.WARNING):
        clocks.see(PLACE, appended(NOW_MS - HOUR_MS), told_ms=None, now_ms=NOW_MS)
        clocks.see(PLACE, of_a_client, told_ms=NOW_MS, now_ms=NOW_MS)

    assert (caplog.messages, clocks.seconds(PLACE)) == ([], None)
