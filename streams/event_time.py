"""Event time: the frontier of each source, and the watermark over all of them.

A source is one partition of the input topics. Its *frontier* is its largest
plausible event time minus the allowed disorder; it is written into the canonical
log, so that every reader of the log sees the same time at the same place.
"""

from collections import deque
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankstream.wire.events import ACTIVE, ENDED, IDLE, Frontier

RECENT = 64
"""Event times of a source that are remembered to judge the next."""

QUORUM = 3 / 8
"""Share of the recent times that must agree before time jumps."""

FEWEST = 2
"""Times that must agree however few there are: one clock may be wrong."""

OUTAGE_MS = 5_000
"""So long without an answer the broker was away; what is shorter is disorder."""

GIVEN_UP_MS = 30_000
"""A request under way when its broker went is given up after so long, by default."""

LONGEST_HOLD_MS = 90_000
"""Then clients try again, after 36 s at the latest by default (kafka-python)."""


class PlausibleTime:
    """The largest event time of a source that is not out of line with the others.

    A time is taken at once where it is ahead by no more than `step_ms` and the time
    that has passed since the largest one came. A larger jump is taken when 3/8 of the
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
        """Take one more event, appended `elapsed_ms` after that of the largest time."""
        self._recent.append(at_ms)
        if self.largest_ms >= 0:
            if at_ms <= self.largest_ms + self._step_ms + elapsed_ms:
                self.largest_ms = max(self.largest_ms, at_ms)
            else:
                self._agree()
        elif len(self._recent) >= RECENT * QUORUM:
            self._agree()

    def follows(self, at_ms: NDArray[np.int64]) -> bool:
        """Whether each time is believed at once, whenever it came; `at_ms` [n]."""
        if self.largest_ms < 0:
            return False
        largest = np.maximum.accumulate(np.concatenate(([self.largest_ms], at_ms)))
        return bool((at_ms <= largest[:-1] + self._step_ms).all())

    def see_together(self, at_ms: NDArray[np.int64]) -> None:
        """Take times that it follows; `at_ms` [n]."""
        self._recent.extend(at_ms[-RECENT:].tolist())
        self.largest_ms = max(self.largest_ms, int(at_ms.max()))

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

    It hears no clock: records carry the time at which the broker appended them, and
    the shell says for how long the broker has had nothing more.

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
        self._seen_ms = 0
        self._largest_came_ms = 0
        self._largest_seen_ms = -1
        self._appended_ms = 0
        self._held_until_ms = 0
        self._at_end_ms = 0
        self._silent_ms = 0
        self._is_on_a_broker = False

    def see(self, at_ms: int, appended_ms: int) -> None:
        """Take an accepted event of a record that was appended at a time."""
        came_ms = self._largest_came_ms
        elapsed_ms = max(0, appended_ms - came_ms) if came_ms else 0
        before_ms = self.plausible.largest_ms
        self.plausible.see(at_ms, elapsed_ms=elapsed_ms)
        # What is old or not believed says nothing of how much time has passed.
        if self.plausible.largest_ms > before_ms or at_ms == before_ms:
            self._largest_came_ms = appended_ms
        self._seen_ms = appended_ms
        self._largest_seen_ms = max(self._largest_seen_ms, at_ms)
        self.hear(appended_ms)

    def see_together(
        self,
        at_ms: NDArray[np.int64],
        appended_ms: NDArray[np.int64],
        *,
        is_accepted: NDArray[np.bool_],
    ) -> None:
        """Take events in their order, as `see` does and, of refused ones, `hear`.

        Parameters
        ----------
        at_ms, appended_ms, is_accepted : [n]
            The time of each event, when its record was appended, and whether it was
            accepted.
        """
        accepted = at_ms[is_accepted]
        if (
            len(accepted)
            and self.plausible.follows(accepted)
            and self._is_steady(appended_ms)
        ):
            before_ms = self.plausible.largest_ms
            self.plausible.see_together(accepted)
            came_ms = appended_ms[is_accepted]
            self._seen_ms = int(came_ms[-1])
            if (largest := int(accepted.max())) >= before_ms:
                last = int(np.flatnonzero(accepted == largest)[-1])
                self._largest_came_ms = int(came_ms[last])
            self._largest_seen_ms = max(self._largest_seen_ms, largest)
            self.hear(int(appended_ms[0]))
            self._appended_ms = int(appended_ms[-1])
            if self._is_on_a_broker:  # behind the first no hold begins
                self._held_until_ms = max(self._held_until_ms, self._appended_ms)
            return
        for at, appended, is_one in zip(
            at_ms.tolist(), appended_ms.tolist(), is_accepted.tolist(), strict=True
        ):
            if is_one:
                self.see(at, appended)
            else:
                self.hear(appended)

    def _is_steady(self, appended_ms: NDArray[np.int64]) -> bool:
        """Whether times never go back and leave no outage; `appended_ms` [n]."""
        steps = np.diff(appended_ms)
        return bool(((steps >= 0) & (steps <= OUTAGE_MS)).all())

    def hear(self, appended_ms: int) -> None:
        """Take a record, whatever it held."""
        if self._is_on_a_broker:
            self._hold(appended_ms)
        self._appended_ms = appended_ms
        self._silent_ms = 0
        self._state = ACTIVE

    def end(self) -> None:
        """Take an end record: the frontier passes every window of what was seen.

        Nothing more comes, so windows of times that were not believed are closed too.
        """
        self._conclude()
        self._state = ENDED
        if self._largest_seen_ms >= 0:
            self._at_ms = max(self._at_ms, self._largest_seen_ms + self._closing_ms)

    def tick(self, at_end_ms: int) -> None:
        """Hear for how long the broker has been saying 'at the end'.

        0 where it has more or does not answer: then the source is not idle, whatever
        it was before. Idle sources let event time pass at the pace of the answers.
        """
        self._is_on_a_broker = True
        more_ms = at_end_ms - self._at_end_ms
        self._silent_ms += more_ms if more_ms >= 0 else at_end_ms
        self._at_end_ms = at_end_ms
        if self._state == ENDED:
            return
        # What was said before the last record, and is heard after it, counts nothing.
        if min(at_end_ms, self._silent_ms) >= self._idle_ms and not self.is_held:
            self._fall_idle()
        else:
            self._state = ACTIVE

    @property
    def is_held(self) -> bool:
        """Whether the frontier stands still, as an outage was a short while ago."""
        return self._appended_ms + self._silent_ms < self._held_until_ms

    def frontier(self) -> tuple[int, int]:
        """`(at_ms, state)` as it is to be written; `at_ms` never goes back."""
        largest = self.plausible.largest_ms
        if self._state == ACTIVE and largest >= 0 and not self.is_held:
            self._at_ms = max(self._at_ms, 0, largest - self._disorder_ms)
        return self._at_ms, self._state

    def state(self) -> list[Any]:
        """What `restore` takes; how long the source was silent starts anew."""
        return [
            self.plausible.state(), self._at_ms, self._state, self._largest_seen_ms,
            self._seen_ms, self._held_until_ms, self._largest_came_ms,
        ]  # fmt: skip

    def restore(self, state: list[Any]) -> None:
        """Take back a state."""
        plausible, self._at_ms, self._state, self._largest_seen_ms, *times = state
        # Earlier layouts lack the last of these.
        self._seen_ms, self._held_until_ms = (*times, 0, 0)[:2]
        self._largest_came_ms = times[2] if len(times) > 2 else self._seen_ms
        self._appended_ms = self._seen_ms
        # What came meanwhile may be read of another source first, with its end, which
        # must not make late what this one has: it holds time until it is heard.
        self._state = ACTIVE
        self.plausible.restore(plausible)

    def _hold(self, appended_ms: int) -> None:
        """Hold the frontier where the broker was away between two records.

        Senders come back one after another, with what they kept meanwhile: the first
        one must not make what the others bring late. A sender may take its request for
        under way until it gives it up. Then it waits about as long as it has tried
        before it tries again, some a fifth longer, up to a bound.
        """
        told_ms = self._appended_ms + self._silent_ms
        away_ms = appended_ms - told_ms if self._appended_ms else 0
        held_ms = GIVEN_UP_MS + away_ms * 3 // 2 if away_ms > OUTAGE_MS else 0
        # Where the broker's clock is put back, no hold lasts longer for it.
        self._held_until_ms = min(
            max(self._held_until_ms, appended_ms + held_ms),
            appended_ms + LONGEST_HOLD_MS,
        )

    def _conclude(self) -> None:
        before_ms = self.plausible.largest_ms
        self.plausible.conclude()
        if self.plausible.largest_ms > before_ms:
            self._largest_came_ms = self._seen_ms

    def _fall_idle(self) -> None:
        # A single event may be wrong: others can contradict it until its window ends.
        is_closing = self._silent_ms >= self._closing_ms
        if is_closing or (self._state == ACTIVE and not self.plausible.is_uncertain):
            self._conclude()
        self._state = IDLE
        largest = self.plausible.largest_ms
        if largest >= 0:
            passed = min(
                largest - self._disorder_ms + self._silent_ms,
                largest + self._closing_ms,
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
