"""Event time: the frontier of each source, and the watermark over all of them.

A source is one partition of the input topics. Its *frontier* is its largest
plausible event time minus the allowed disorder; it is written into the canonical
log, so that every reader of the log sees the same time at the same place.
"""

from collections import deque
from typing import Any

from rankstream.wire.events import ACTIVE, ENDED, IDLE, Frontier

RECENT = 64
"""Event times of a source that are remembered to judge the next."""

QUORUM = 3 / 8
"""Share of the recent times that must agree before time jumps."""

FEWEST = 2
"""Times that must agree however few there are: one clock may be wrong."""


class PlausibleTime:
    """The largest event time of a source that is not out of line with the others.

    A time is taken at once where it is ahead by no more than `step_ms` and the wall
    time that has passed since the last event. A larger jump is taken when 3/8 of the
    last 64 times are at or beyond it, and at least two: 24 once 64 are known, fewer
    before. So neither one wrong event nor a client whose clock is hours ahead moves
    it, while a true gap of days is followed after 24 events at most. Before 24 times
    were seen there is no largest time: an active source then has no frontier and
    holds the watermark back. When it becomes idle, 3/8 of the few must agree, and at
    least two if there are two.
    """

    def __init__(self, step_ms: int) -> None:
        self.largest_ms = -1
        self._step_ms = step_ms
        self._recent: deque[int] = deque(maxlen=RECENT)

    def see(self, at_ms: int, *, elapsed_ms: int = 0) -> None:
        """Take the time of one more event, `elapsed_ms` of wall time after the last."""
        self._recent.append(at_ms)
        if self.largest_ms >= 0:
            if at_ms <= self.largest_ms + self._step_ms + elapsed_ms:
                self.largest_ms = max(self.largest_ms, at_ms)
            else:
                self._agree()
        elif len(self._recent) >= RECENT * QUORUM:
            self._agree()

    @property
    def is_uncertain(self) -> bool:
        """Whether all that is known is one event, which nothing confirms."""
        return self.largest_ms < 0 and len(self._recent) < FEWEST

    def conclude(self) -> None:
        """Believe the times that enough others confirm, however few there are."""
        self._agree()

    def _agree(self) -> None:
        if not self._recent:
            return
        newest_first = sorted(self._recent, reverse=True)
        fewest = min(FEWEST, len(newest_first))
        needed = max(fewest, int(len(newest_first) * QUORUM))
        agreed = newest_first[needed - 1]
        believed = next(t for t in newest_first if t <= agreed + self._step_ms)
        self.largest_ms = max(self.largest_ms, believed)

    def state(self) -> list[Any]:
        """What `restore` takes."""
        return [self.largest_ms, list(self._recent)]

    def restore(self, state: list[Any]) -> None:
        """Take back a state."""
        self.largest_ms, recent = state
        self._recent = deque(recent, maxlen=RECENT)


class SourceClock:
    """The frontier of one source, as ingest writes it.

    Parameters
    ----------
    disorder_ms
        How far behind its source's largest time an event may be.
    idle_ms
        How long the broker must have said 'at the end' before the source is idle.
    step_ms
        How far ahead of its source an event may be and be believed alone: too
        little to make anything late.
    closing_ms
        Event time after the last event until every window of it is closed.
    """

    def __init__(
        self, *, disorder_ms: int, step_ms: int, idle_ms: int, closing_ms: int
    ) -> None:
        self.plausible = PlausibleTime(step_ms)
        self._disorder_ms = disorder_ms
        self._idle_ms = idle_ms
        self._closing_ms = closing_ms
        self._at_ms = -1
        self._state = ACTIVE
        self._end_since_ms: int | None = None
        self._now_ms = 0
        self._seen_ms = 0
        self._largest_seen_ms = -1

    def see(self, at_ms: int) -> None:
        """Take an accepted event."""
        elapsed_ms = max(0, self._now_ms - self._seen_ms) if self._seen_ms else 0
        self.plausible.see(at_ms, elapsed_ms=elapsed_ms)
        self._seen_ms = self._now_ms
        self._largest_seen_ms = max(self._largest_seen_ms, at_ms)
        self._wake()

    def hear(self) -> None:
        """Take a record that held no accepted event."""
        self._wake()

    def end(self) -> None:
        """Take an end record: the frontier passes every window of what was seen.

        Nothing more comes, so windows of times that were not believed are closed too.
        """
        self.plausible.conclude()
        self._state = ENDED
        if self._largest_seen_ms >= 0:
            self._at_ms = max(self._at_ms, self._largest_seen_ms + self._closing_ms)

    def tick(self, now_ms: int, *, at_end: bool) -> None:
        """Hear the wall clock: idle sources let event time pass at its pace."""
        self._now_ms = now_ms
        if not at_end or self._state == ENDED:
            self._end_since_ms = None
            return
        if self._end_since_ms is None or now_ms < self._end_since_ms:
            self._end_since_ms = now_ms
        silent_ms = now_ms - self._end_since_ms
        if silent_ms >= self._idle_ms:
            self._fall_idle(silent_ms)

    def frontier(self) -> tuple[int, int]:
        """`(at_ms, state)` as it is to be written; `at_ms` never goes back."""
        if self._state == ACTIVE and self.plausible.largest_ms >= 0:
            reached = max(0, self.plausible.largest_ms - self._disorder_ms)
            self._at_ms = max(self._at_ms, reached)
        return self._at_ms, self._state

    def state(self) -> list[Any]:
        """What `restore` takes; how long the source was silent starts anew."""
        return [
            self.plausible.state(), self._at_ms, self._state, self._largest_seen_ms,
            self._seen_ms,
        ]  # fmt: skip

    def restore(self, state: list[Any]) -> None:
        """Take back a state."""
        plausible, self._at_ms, self._state, self._largest_seen_ms, *seen = state
        # Earlier layouts did not say when the last event was seen.
        self._seen_ms = seen[0] if seen else 0
        self.plausible.restore(plausible)

    def _wake(self) -> None:
        self._state = ACTIVE
        self._end_since_ms = None

    def _fall_idle(self, silent_ms: int) -> None:
        # A single event may be wrong: others can contradict it until its window ends.
        is_closing = silent_ms >= self._closing_ms
        if is_closing or (self._state == ACTIVE and not self.plausible.is_uncertain):
            self.plausible.conclude()
        self._state = IDLE
        largest = self.plausible.largest_ms
        if largest >= 0:
            passed = min(
                largest - self._disorder_ms + silent_ms, largest + self._closing_ms
            )
            self._at_ms = max(self._at_ms, passed)


class Watermark:
    """The time that all sources have passed, from the frontiers in the log.

    -1 before every source has written a frontier. Then the least frontier of the
    active sources or, where all are idle or ended, the largest. It never goes back.
    """

    def __init__(self) -> None:
        self.at_ms = -1
        self._frontiers: dict[int, tuple[int, int]] = {}

    def take(self, frontier: Frontier) -> bool:
        """Take one frontier; True if the watermark moved."""
        self._frontiers[frontier.source] = (frontier.at_ms, frontier.state)
        if len(self._frontiers) < frontier.n_sources:
            return False
        active = [at for at, state in self._frontiers.values() if state == ACTIVE]
        if active:
            reached = min(active)
        else:
            reached = max(at for at, _ in self._frontiers.values())
        if reached <= self.at_ms:
            return False
        self.at_ms = reached
        return True

    def state(self) -> list[Any]:
        """What `restore` takes."""
        known = [[s, *self._frontiers[s]] for s in sorted(self._frontiers)]
        return [self.at_ms, known]

    def restore(self, state: list[Any]) -> None:
        """Take back a state."""
        self.at_ms, known = state
        self._frontiers = {source: (at, kind) for source, at, kind in known}
