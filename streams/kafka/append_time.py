"""Append times: when the broker took a record, and how far our own clock is from it.

The broker's clock judges whether the time of an event is plausible, so a worker whose
clock is wrong folds what the others fold. It says that it differs, as certificates,
logs and what it writes depend on its clock.
"""

import logging
import time
from collections.abc import Sequence
from typing import Any

LOG_APPEND_TIME = 1
"""Kafka's number of timestamps that the broker set; clients' are 0."""

DIFFERS_MS = 30_000
"""A larger difference is spoken of: a replica that lags may explain what is less."""

log = logging.getLogger("rankstream.worker")


class AppendTimes:
    """The append times of what a process reads from input topics.

    Where a topic has none, as it was not altered yet, the time of reading stands for
    it: a client's own word is not to judge what the client says.
    """

    def __init__(self) -> None:
        self._is_absence_told = False

    def of(self, place: Any, records: Sequence[Any]) -> list[int]:
        """When records [n] of a partition were appended, epoch milliseconds [n]."""
        told = told_ms(place, records)
        kinds = [record.timestamp_type for record in records]
        if kinds.count(LOG_APPEND_TIME) == len(kinds):
            return told
        if not self._is_absence_told:
            self._is_absence_told = True
            first = next(
                record
                for record, kind in zip(records, kinds, strict=True)
                if kind != LOG_APPEND_TIME
            )
            log.warning(
                "event=no-append-time place=%s[%d]@%d reason=the topic must have "
                "message.timestamp.type=LogAppendTime; this record has its client's "
                "time, so this machine's clock judges such events: run `rankstream "
                "topics create --alter`",
                *place, first.offset,
            )  # fmt: skip
        now_ms = wall_ms()
        return [
            at_ms if kind == LOG_APPEND_TIME else now_ms
            for at_ms, kind in zip(told, kinds, strict=True)
        ]


class ClockDifference:
    """How far this machine's clock is ahead of the brokers', by partition.

    What came after a broker had said 'at the end' was appended between that answer and
    its own. So the difference is told without a request, and never too large.
    """

    def __init__(self) -> None:
        self._ahead_ms: dict[Any, int] = {}
        self._is_told = False

    def see(self, place: Any, record: Any, *, told_ms: int | None, now_ms: int) -> None:
        """Take a record of a partition as the client has it.

        Parameters
        ----------
        told_ms
            When the broker had last said that there is nothing more, if that was its
            answer before; by this machine's clock, epoch milliseconds.
        now_ms
            This machine's clock.
        """
        if record.timestamp_type != LOG_APPEND_TIME:
            return
        appended_ms = record.timestamp
        if appended_ms > now_ms:
            ahead_ms = now_ms - appended_ms
        elif told_ms is not None:
            ahead_ms = max(0, told_ms - appended_ms)
        else:
            return  # It may have waited for long.
        self._ahead_ms[place] = ahead_ms
        if abs(ahead_ms) > DIFFERS_MS and not self._is_told:
            self._is_told = True
            log.warning(
                "event=clock-differs partition=%s[%d] seconds=%+d reason=the clock of "
                "this machine must agree with the broker's, by which events are "
                "judged; it is %d s %s: set both by NTP",
                *place, round(ahead_ms / 1_000), abs(round(ahead_ms / 1_000)),
                "ahead" if ahead_ms > 0 else "behind",
            )  # fmt: skip

    def seconds(self, place: Any) -> float | None:
        """How far ahead it was of a partition's broker at last; None if unknown."""
        ahead_ms = self._ahead_ms.get(place)
        return None if ahead_ms is None else ahead_ms / 1_000


def told_ms(_: Any, records: Sequence[Any]) -> list[int]:
    """What records [n] say of their times [n], whoever set them; 0 for nothing."""
    return [record.timestamp or 0 for record in records]


def wall_ms() -> int:
    """The clock of this machine, epoch milliseconds."""
    return time.time_ns() // 1_000_000
