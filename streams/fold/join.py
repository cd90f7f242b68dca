"""The join of clicks with their impressions, and what becomes of every event.

Every event of the canonical log ends as exactly one of: applied, duplicate, late,
orphan, dead letter, or is still pending; the counts say so at any moment. What
time it is comes from the frontiers in the log, so that the same log gives the
same outcomes however it is cut into records and whenever it is read.

What is plain is done in C (`native/join.c`): new impressions, clicks on a place of
an open one, those that wait for theirs, and closing. All other rules stand here.
"""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from rankstream.configuration.counting import LimitSettings, TimeSettings
from rankstream.wire.events import Click, Impression, encode_record
from streams.event_time import Watermark
from streams.native import elements as e
from streams.native.closed_impressions import Closed, Int64, Names
from streams.native.elements import (
    Elements,
    decode_click,
    decode_frontier,
    decode_impression,
)
from streams.native.joining import (
    ABSENT,
    AWAITED,
    BEYOND,
    KNOWN,
    LATE,
    NOWHERE,
    Accepted,
    NativeJoin,
)

OUTCOMES = (
    "consumed",
    "applied_impressions",
    "applied_clicks",
    "duplicate",
    "late",
    "orphan",
    "dead_letter",
)
"""What is counted; with `pending` the later ones add up to the first."""

EXCLUDED = ("excluded_impressions", "excluded_clicks")
"""Counted once there are any: those among the applied that enter no sum."""

WITHDRAWN = -1
"""Position of a click that was waiting and proved late when its impression came."""

FARTHEST_MS = 1 << 61
"""No time lies farther from 1970, as the core in C has it."""

NO_LIMITS = (1 << 62, 1 << 62)
"""For what was accepted before."""


class Join:
    """Open impressions, waiting clicks, known identities, and the watermark.

    `on_moved` is called each time the watermark has moved, after all that it closed
    is in `closed`: what follows must see every move, wherever records end.
    After `take`, the lists `closed`, `set_aside`, `not_shown` and `beyond` hold what
    came of it, in order. Whoever calls empties them. Clicks beyond the limits of an
    impression are not remembered: what comes again is beyond them again.
    """

    def __init__(
        self,
        time: TimeSettings,
        on_moved: Callable[[], None] = lambda: None,
        limits: LimitSettings | None = None,
    ) -> None:
        self._on_moved = on_moved
        self.watermark = Watermark()
        self.counts = dict.fromkeys(OUTCOMES, 0)
        self.closed: list[Closed] = []
        self.set_aside: list[tuple[str, Impression | Click]] = []
        self.not_shown: list[Click] = []
        self.beyond: list[Click] = []
        limits = limits or LimitSettings()
        self._limits = (limits.clicks, limits.click_bytes)
        self._window_ms = time.click_window_ms
        self._disorder_ms = time.disorder_ms
        self._remember_ms = time.remember_ms
        self._native = NativeJoin(
            time.click_window_ms, time.disorder_ms, time.remember_ms
        )

    @property
    def pending(self) -> int:
        """Events whose outcome is still open."""
        n_open, n_placed, *_, n_waiting = self._native.sizes()
        return n_open + n_placed + n_waiting

    @property
    def n_open(self) -> int:
        """Impressions whose window is open."""
        return self._native.sizes()[0]

    @property
    def n_waiting(self) -> int:
        """Clicks that wait for their impression."""
        return self._native.sizes()[5]

    @property
    def n_known(self) -> int:
        """Identities that are remembered."""
        return self._native.sizes()[2]

    def take(self, elements: Elements, origin: int = NOWHERE) -> None:
        """Take elements of the log in their order.

        `origin` is that of the first of them, and rises by one from each to the next:
        what a later call of `new_accepted` says of what it accepts. NOWHERE says that
        bytes are to be kept.
        """
        n_elements, n_frontiers, i = len(elements), 0, 0
        take, limits = self._native.take, self._limits
        while (i := take(elements, i, limits, origin)) < n_elements:
            tag, raw = elements.tags[i], elements.raw(i)
            own = NOWHERE if origin == NOWHERE else origin + i
            if tag == e.FRONTIER:
                n_frontiers += 1
                self._frontier(raw)
            elif tag == e.IMPRESSION:
                self._impression(raw, own)
            else:
                self._click(raw, own)
            i += 1
        self.counts["consumed"] += n_elements - n_frontiers

    def _impression(self, raw: bytes, origin: int) -> None:
        impression = decode_impression(raw)
        close_ms = impression.at_ms + self._window_ms
        if self._native.find(impression.identity) not in (ABSENT, AWAITED):
            self.counts["duplicate"] += 1
        elif close_ms <= self.watermark.at_ms:
            self.counts["late"] += 1
            self.set_aside.append(("late", impression))
        else:
            waited = self._native.no_longer_waiting(impression.identity)
            opened = self._native.open(raw, origin)
            for one in waited:
                self._meet(one, opened, close_ms)

    def _meet(self, raw: bytes, opened: int, close_ms: int) -> None:
        """Attach a click that waited for its impression."""
        click = decode_click(raw)
        if click.at_ms > close_ms:
            # It was accepted as waiting: say that it no longer is.
            withdrawn = msgspec.structs.replace(click, position=WITHDRAWN)
            due_ms = click.at_ms + self._disorder_ms
            self._native.note(due_ms, encode_record(withdrawn))
        self._attach(click, opened, raw, NOWHERE)

    def _click(self, raw: bytes, origin: int) -> None:
        click = decode_click(raw)
        if click.identity == click.impression:
            raise ValueError("a click must have another identity than its impression")
        if self._native.find(click.identity) != ABSENT:
            self.counts["duplicate"] += 1
            return
        found = self._native.find(click.impression)
        if found > AWAITED:
            self._attach(click, found, raw, origin)
        elif found == KNOWN:
            self._put_aside("late", click)
        elif self._is_orphan(click):
            self._put_aside("orphan", click)
        elif self._native.wait(raw, self._limits, origin) == BEYOND:
            self._put_beyond(click)

    def _is_orphan(self, click: Click) -> bool:
        return click.at_ms + self._disorder_ms <= self.watermark.at_ms

    def _attach(self, click: Click, opened: int, raw: bytes, origin: int) -> None:
        position = self._native.attach(opened, raw, self._limits, origin)
        if position == LATE:
            self._put_aside("late", click)
        elif position == BEYOND:
            self._put_beyond(click)
        elif not position:
            self.counts["dead_letter"] += 1
            self.not_shown.append(click)

    def _put_aside(self, outcome: str, click: Click) -> None:
        self.counts[outcome] += 1
        self.set_aside.append((outcome, click))

    def _put_beyond(self, click: Click) -> None:
        self.counts["dead_letter"] += 1
        self.beyond.append(click)

    def _frontier(self, raw: bytes) -> None:
        frontier = decode_frontier(raw)
        if abs(frontier.at_ms) > FARTHEST_MS:
            raise ValueError(f"a frontier must be a time; got {frontier.at_ms}")
        if not self.watermark.take(frontier):
            return
        now_ms = self.watermark.at_ms
        closed, n_applied, are_excluded, orphans = self._native.close(now_ms)
        if closed is not None:
            self.counts["applied_impressions"] += len(closed)
            self.counts["applied_clicks"] += n_applied
            if are_excluded.any():
                self._exclude(closed, np.flatnonzero(are_excluded))
                closed = closed.select(np.flatnonzero(~are_excluded))
            if len(closed):
                self.closed.append(closed)
        for raw_orphan in orphans:
            self._put_aside("orphan", decode_click(raw_orphan))
        self._on_moved()

    def _exclude(self, closed: Closed, which: Int64) -> None:
        """Count what is applied and passed on to nobody."""
        n_clicks = sum(len(closed[i].clicks) for i in which.tolist())
        for name, n in zip(EXCLUDED, (len(which), n_clicks), strict=True):
            self.counts[name] = self.counts.get(name, 0) + n

    def is_remembered(self, closed_ms: Any) -> Any:
        """Whether what closed at a time is still known; or at each of many."""
        return closed_ms > self.watermark.at_ms - self._remember_ms

    def new_accepted(self) -> Accepted:
        """What was accepted since the last call and is not decided."""
        return self._native.accepted()

    def new_remembered(self) -> tuple[Int64, Names]:
        """What became known since the last call, and still is: closing times, names."""
        return self._native.remembered()

    def restore_known(self, times: Int64, names: Names) -> None:
        """Take back identities of what closed, in the order in which it closed.

        `times` [n] at which they closed, in ms; `names` [n, 2].
        """
        self._native.restore_known(times, names)

    def restore_elements(self, elements: Elements) -> None:
        """Take back accepted events, after the identities, in the order of the log.

        What was decided before is not decided again: nothing is counted, and what
        is closed, expired or attached already is passed over.
        """
        n_elements, i = len(elements), 0
        while (i := self._native.take(elements, i, NO_LIMITS)) < n_elements:
            if elements.tags[i] == e.IMPRESSION:
                self._restore_impression(elements.raw(i))
            else:
                self._restore_click(elements.raw(i))
            i += 1
        self._native.restored()

    def _restore_click(self, raw: bytes) -> None:
        click = decode_click(raw)
        if click.position == WITHDRAWN:
            self._native.stop_waiting(click.impression, click.identity)
            return
        if self._native.find(click.identity) != ABSENT:
            return
        found = self._native.find(click.impression)
        if found > AWAITED:
            # Not if it is late.
            self._native.attach(found, raw, NO_LIMITS)
        elif found != KNOWN and not self._is_orphan(click):
            self._native.wait(raw, NO_LIMITS)

    def _restore_impression(self, raw: bytes) -> None:
        impression = decode_impression(raw)
        if impression.at_ms + self._window_ms <= self.watermark.at_ms:
            return
        waited = self._native.no_longer_waiting(impression.identity)
        self._native.open(raw)
        for one in waited:
            self._restore_click(one)

    def state(self) -> list[Any]:
        """What `restore` takes."""
        return [self.watermark.state(), self.counts]

    def restore(self, state: list[Any]) -> None:
        """Take back the watermark and the counts."""
        watermark, counts = state
        self.watermark.restore(watermark)
        self._native.restore_time(self.watermark.at_ms)
        self.counts = dict(counts)
