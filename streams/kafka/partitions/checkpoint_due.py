"""When a partition's state is to be written, beside its resume position."""

import math
import time
from collections.abc import Mapping
from typing import TypeVar

from rankstream.settings import DeliverySettings

Place = TypeVar("Place")

DUE = 0.95
"""Intervals after which state is written: what is missing a moment at a commit would
wait for the next."""

EARLY = 0.1
"""A commit writes state that is due so long before the next one, in intervals. Else it
would be written apart, and the next time again."""

OVERDUE = 2.0
"""Intervals after which state is written, however many others write theirs."""


class CheckpointDue:
    """Counts records and seconds since the last checkpoint of a partition."""

    def __init__(self, delivery: DeliverySettings) -> None:
        self._delivery = delivery
        self._n_records = 0
        self._since_s = time.monotonic()

    def stagger(self, share: float) -> None:
        """Be due earlier by a share of the interval, unlike other partitions."""
        self._since_s = time.monotonic() - self._delivery.state_s * share

    def take(self, n_records: int) -> None:
        """Count records that were folded."""
        self._n_records += n_records

    def written(self) -> None:
        """Begin anew, as there is a checkpoint."""
        self._n_records = 0
        self._since_s = time.monotonic()

    def passed_by(self, apart_s: float) -> float:
        """Intervals that have passed, by records or seconds; written from `DUE` on.

        Parameters
        ----------
        apart_s
            How far apart commits are, in seconds, where one is written in any case.
        """
        state_s = self._delivery.state_s
        passed = max(
            (time.monotonic() - self._since_s) / state_s,
            self._n_records / self._delivery.state_records,
        )
        return passed + max(0.0, apart_s / state_s - EARLY)


class CheckpointTurns:
    """Which partitions of a process write their state in a commit: not all at once.

    A commit lasts as long as what it writes, and what others wait for waits with it.
    """

    def __init__(self, delivery: DeliverySettings) -> None:
        self._state_s = delivery.state_s
        self._last_s = time.monotonic()

    def next(
        self, passed: Mapping[Place, float], *, has_news: bool = True
    ) -> set[Place]:
        """Of partitions those that write: so many that all could in an interval.

        Parameters
        ----------
        passed
            Intervals since each has written, 0 where it has nothing to write.
        has_news
            Whether anything was folded since the last commit. Else there is none but
            for these, and the next one with news has their turns, too.
        """
        now_s = time.monotonic()
        share = min(1.0, (now_s - self._last_s) / self._state_s)
        if has_news:
            self._last_s = now_s
        n_turns = math.ceil(share * len(passed))
        latest_first = sorted(passed, key=lambda place: -passed[place])
        return {
            place
            for turn, place in enumerate(latest_first)
            if passed[place] >= (DUE if turn < n_turns else OVERDUE)
        }
