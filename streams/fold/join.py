"""The join of clicks with their impressions, and what becomes of every event.

Every event of the canonical log ends as exactly one of: applied, duplicate, late,
orphan, dead letter, or is still pending; the counts say so at any moment. What
time it is comes from the frontiers in the log, so that the same log gives the
same outcomes however it is cut into records and whenever it is read.

What is plain is taken by compiled loops over tables (`open_tables`): new impressions,
and clicks on a place of an open one. All other rules stand here.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from models.counts.count_tables import Int64
from rankstream.settings import LimitSettings, TimeSettings
from rankstream.wire.events import Click, Frontier, Impression, encode_record
from streams.event_time import Watermark
from streams.fold import arrivals
from streams.fold import elements as e
from streams.fold import open_tables as t
from streams.fold.closed_impressions import Closed
from streams.fold.elements import Elements, decode_click, decode_impression, located
from streams.fold.identities import (
    ABSENT,
    Names,
    find,
    give,
    give_all,
    name_of,
    remove,
    remove_all,
    with_room,
)
from streams.fold.messagepack import Bytes
from streams.fold.schedule import Schedule
from streams.fold.window_end import close, room_for, take_due

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

WITHDRAWN = -1
"""Position of a click that was waiting and proved late when its impression came."""

NO_LIMITS = (1 << 62, 1 << 62)
"""For what was accepted before."""

Remembered = tuple[Int64, Names]
"""When impressions closed, in order, and what is known until some time after."""


class Awaiting:
    """Clicks that wait for one impression, in the order in which they came."""

    __slots__ = ("clicks", "n_bytes")

    def __init__(self) -> None:
        self.clicks: dict[bytes, Click] = {}
        self.n_bytes = 0


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
        self._tables = t.nothing_open()
        self._waiting: dict[bytes, Awaiting] = {}
        self._n_waiting = 0
        self._expiring: Schedule[Click] = Schedule()
        # Accepted clicks that lie in no table, since the last commit.
        self._objects: list[Click] = []
        self._forgetting: deque[Remembered] = deque()
        self._remembered: deque[Remembered] = deque()

    @property
    def pending(self) -> int:
        """Events whose outcome is still open."""
        return self.n_open + int(self._tables.sizes[t.N_PLACED]) + self._n_waiting

    @property
    def n_open(self) -> int:
        """Impressions whose window is open."""
        return int(self._tables.sizes[t.N_OPEN])

    @property
    def n_known(self) -> int:
        """Identities that are remembered."""
        return int(self._tables.identities.size[0]) - len(self._waiting)

    def take(self, elements: Elements) -> None:
        """Take elements of the log in their order."""
        n_elements, n_frontiers, i = len(elements), 0, 0
        if not n_elements:
            return
        self._make_room(n_elements, len(elements.data))
        given = (elements.data, elements.tags, elements.places)
        while True:
            now_ms = self.watermark.at_ms
            i = arrivals.take_plain(
                self._tables, given, i, self._window_ms, now_ms, self._limits
            )
            if i == n_elements:
                break
            tag = elements.tags[i]
            if tag == e.FRONTIER:
                n_frontiers += 1
                self._frontier(elements, i)
            elif tag == e.IMPRESSION:
                self._impression(elements, i)
                # What waited for it took of the room.
                self._make_room(n_elements - i, len(elements.data))
            else:
                self._click(elements, i)
            i += 1
        self.counts["consumed"] += n_elements - n_frontiers

    def _make_room(self, n_elements: int, n_bytes: int) -> None:
        n_before = int(self._tables.sizes[t.N_ACCEPTED])
        now_ms = self.watermark.at_ms
        self._tables = t.with_space(self._tables, n_elements, n_bytes, now_ms)
        n_accepted = int(self._tables.sizes[t.N_ACCEPTED])
        if n_accepted < n_before:
            accepted = self._tables.accepted[:n_accepted]
            rows = np.flatnonzero(accepted[:, 1] == t.ACCEPTED_OBJECT)
            self._objects = [self._objects[row] for row in accepted[rows, 2]]
            accepted[rows, 2] = np.arange(len(rows))

    def _number(self, identity: bytes) -> int:
        return int(find(self._tables.identities, *name_of(identity)))

    def _give(self, identity: bytes, number: int) -> None:
        give(self._tables.identities, *name_of(identity), number)

    def _remove(self, identity: bytes) -> None:
        remove(self._tables.identities, *name_of(identity))

    def _accept(self, due_ms: int, kind: int, row: int) -> None:
        sizes = self._tables.sizes
        self._tables.accepted[sizes[t.N_ACCEPTED]] = (due_ms, kind, row)
        sizes[t.N_ACCEPTED] += 1

    def _accept_object(self, due_ms: int, click: Click) -> None:
        self._accept(due_ms, t.ACCEPTED_OBJECT, len(self._objects))
        self._objects.append(click)

    def _impression(self, elements: Elements, i: int) -> None:
        impression = decode_impression(elements.raw(i))
        close_ms = impression.at_ms + self._window_ms
        if self._number(impression.identity) not in (ABSENT, t.AWAITED):
            self.counts["duplicate"] += 1
        elif close_ms <= self.watermark.at_ms:
            self.counts["late"] += 1
            self.set_aside.append(("late", impression))
        else:
            row = self._open(elements.data, elements.places[i])
            self._accept(close_ms, t.ACCEPTED_IMPRESSION, row)
            self._meet(impression.identity, row, close_ms)

    def _open(self, data: Bytes, places: Int64) -> int:
        return int(arrivals.open_one(self._tables, data, places, self._window_ms))

    def _meet(self, identity: bytes, row: int, close_ms: int) -> None:
        """Attach what was waiting for an impression."""
        for click in self._no_longer_waiting(identity):
            if click.at_ms > close_ms:
                # It was accepted as waiting: say that it no longer is.
                withdrawn = msgspec.structs.replace(click, position=WITHDRAWN)
                self._accept_object(click.at_ms + self._disorder_ms, withdrawn)
            self._attach(click, row, self._located(click))

    def _located(self, click: Click) -> tuple[Bytes, Int64]:
        """Where a click is that lies in no record, with room for it in the tables."""
        raw = encode_record(click)
        self._make_room(2, len(raw))
        return located(raw)

    def _click(self, elements: Elements, i: int) -> None:
        click = decode_click(elements.raw(i))
        if self._number(click.identity) != ABSENT:
            self.counts["duplicate"] += 1
            return
        number = self._number(click.impression)
        if number >= 0:
            self._attach(click, number, (elements.data, elements.places[i]))
        elif number == t.KNOWN:
            self._put_aside("late", click)
        elif self._is_orphan(click):
            self._put_aside("orphan", click)
        elif not self._may_wait(click):
            self._put_beyond(click)
        else:
            self._wait(click)
            self._accept_object(click.at_ms + self._disorder_ms, click)

    def _is_orphan(self, click: Click) -> bool:
        return click.at_ms + self._disorder_ms <= self.watermark.at_ms

    def _may_wait(self, click: Click) -> bool:
        """As many as may be attached: when their impression comes, all of them fit."""
        waiting = self._waiting.get(click.impression) or Awaiting()
        n_bytes = waiting.n_bytes + len(encode_record(click))
        return len(waiting.clicks) < self._limits[0] and n_bytes <= self._limits[1]

    def _wait(self, click: Click) -> None:
        self._give(click.identity, t.KNOWN)
        waiting = self._waiting.get(click.impression)
        if waiting is None:
            waiting = self._waiting[click.impression] = Awaiting()
            self._give(click.impression, t.AWAITED)
        waiting.clicks[click.identity] = click
        waiting.n_bytes += len(encode_record(click))
        self._n_waiting += 1
        self._expiring.add((click.at_ms + self._disorder_ms, click))

    def _attach(self, click: Click, row: int, place: tuple[Bytes, Int64]) -> None:
        close_ms = int(self._tables.impressions[row, t.AT_MS]) + self._window_ms
        if click.at_ms > close_ms:
            self._remove(click.identity)
            self._put_aside("late", click)
            return
        if not arrivals.has_room_for(self._tables, row, place[1], self._limits):
            self._remove(click.identity)
            self._put_beyond(click)
            return
        position = int(arrivals.place_of_click(self._tables, row, *place))
        if not position:
            self.counts["dead_letter"] += 1
            self.not_shown.append(click)
        attached = arrivals.attach_click(self._tables, row, *place, position)
        self._accept(close_ms, t.ACCEPTED_CLICK, int(attached))

    def _put_aside(self, outcome: str, click: Click) -> None:
        self.counts[outcome] += 1
        self.set_aside.append((outcome, click))

    def _put_beyond(self, click: Click) -> None:
        self.counts["dead_letter"] += 1
        self.beyond.append(click)

    def _frontier(self, elements: Elements, i: int) -> None:
        fields = (e.SOURCE, e.N_SOURCES, e.FRONTIER_MS, e.STATE)
        frontier = Frontier(*(elements.number(i, field) for field in fields))
        if not self.watermark.take(frontier):
            return
        now_ms = self.watermark.at_ms
        self._close(now_ms)
        for click in self._expiring.due(now_ms):
            self._expire(click)
        if self._forgetting:
            self._forget(now_ms - self._remember_ms)
        self._on_moved()

    def _close(self, now_ms: int) -> None:
        """Close in the order of time; identities are forgotten in the same order."""
        tables, n_open = self._tables, self.n_open
        if not n_open or tables.heap[0, t.DUE_MS] > now_ms:
            return
        rows = np.empty(n_open, np.int32)
        n_due, n_bytes, n_clicks = take_due(tables, now_ms, rows)
        closing = room_for(n_due, n_bytes, n_clicks)
        n_applied = close(tables, rows[:n_due], self._window_ms, closing)
        self.closed.append(
            Closed(closing.encoded, closing.ends, closing.models, closing.extras)
        )
        self.counts["applied_impressions"] += n_due
        self.counts["applied_clicks"] += n_applied
        self._forgetting.append((closing.times, closing.names))
        self._remembered.append((closing.times, closing.names))

    def _expire(self, click: Click) -> None:
        waiting = self._waiting.get(click.impression)
        if waiting is None or waiting.clicks.get(click.identity) is not click:
            return  # another click of that identity may wait by now
        if self._stop_waiting(click.impression, click.identity):
            self._put_aside("orphan", click)

    def _stop_waiting(self, impression: bytes, identity: bytes) -> bool:
        """Let a click wait no longer; False if it does not wait."""
        waiting = self._waiting.get(impression)
        click = waiting and waiting.clicks.pop(identity, None)
        if not (waiting and click):
            return False
        waiting.n_bytes -= len(encode_record(click))
        if not waiting.clicks:
            del self._waiting[impression]
            self._remove(impression)
        self._n_waiting -= 1
        self._remove(identity)
        return True

    def _no_longer_waiting(self, impression: bytes) -> list[Click]:
        """The clicks that waited for an impression, in the order of their arrival."""
        waiting = self._waiting.pop(impression, None)
        clicks = list(waiting.clicks.values()) if waiting else []
        self._n_waiting -= len(clicks)
        return clicks

    def _forget(self, closed_ms: int) -> None:
        """Forget what closed at or before a time."""
        while self._forgetting and self._forgetting[0][0][0] <= closed_ms:
            times, names = self._forgetting.popleft()
            n_due = int(np.searchsorted(times, closed_ms, "right"))
            remove_all(self._tables.identities, names[:n_due])
            if n_due < len(times):
                self._forgetting.appendleft((times[n_due:], names[n_due:]))
                break
        while self._remembered and self._remembered[0][0][-1] <= closed_ms:
            self._remembered.popleft()

    def is_remembered(self, closed_ms: Any) -> Any:
        """Whether what closed at a time is still known; or at each of many."""
        return closed_ms > self.watermark.at_ms - self._remember_ms

    def new_accepted(self) -> tuple[list[int], list[bytes]]:
        """What was accepted since the last call and is not decided: due time, bytes."""
        sizes = self._tables.sizes
        n_accepted = int(sizes[t.N_ACCEPTED])
        out = np.empty(int(sizes[t.N_LIVE_BYTES]), np.uint8)
        ends, due = np.empty(n_accepted, np.int64), np.empty(n_accepted, np.int64)
        now_ms = self.watermark.at_ms
        n_kept = t.accepted_bytes(self._tables, now_ms, out, ends, due)
        packed, start, raw = out, 0, []
        for end in ends[:n_kept].tolist():
            if end < 0:
                raw.append(encode_record(self._objects[-1 - end]))
            else:
                raw.append(packed[start:end].tobytes())
                start = end
        self._objects.clear()
        return due[:n_kept].tolist(), raw

    def new_remembered(self) -> tuple[Int64, Names]:
        """What became known since the last call, and still is: closing times, names."""
        pieces = [
            (times[is_kept], names[is_kept])
            for times, names in self._remembered
            for is_kept in [self.is_remembered(times)]
        ]
        self._remembered.clear()
        no_times, no_names = np.empty(0, np.int64), np.empty((0, 2), np.uint64)
        return (
            np.concatenate([no_times, *(times for times, _ in pieces)]),
            np.concatenate([no_names, *(names for _, names in pieces)]),
        )

    def restore_known(self, times: Int64, names: Names) -> None:
        """Take back identities of what closed, in the order in which it closed.

        `times` [n] at which they closed, in ms; `names` [n, 2].
        """
        if not len(times):
            return
        identities = with_room(self._tables.identities, len(times))
        self._tables = self._tables._replace(identities=identities)
        give_all(identities, names, t.KNOWN)
        self._forgetting.append((times, names))

    def restore_elements(self, elements: Elements) -> None:
        """Take back accepted events, after the identities, in the order of the log.

        What was decided before is not decided again: nothing is counted, and what
        is closed, expired or attached already is passed over.
        """
        n_elements, i = len(elements), 0
        self._make_room(n_elements, len(elements.data))
        given = (elements.data, elements.tags, elements.places)
        while True:
            now_ms = self.watermark.at_ms
            i = arrivals.take_plain(
                self._tables, given, i, self._window_ms, now_ms, NO_LIMITS
            )
            # The state that is read back has them.
            self._tables.sizes[t.N_ACCEPTED] = 0
            if i == n_elements:
                break
            if elements.tags[i] == e.IMPRESSION:
                self._restore_impression(elements, i)
            else:
                self._restore_click(decode_click(elements.raw(i)))
            self._make_room(n_elements - i, len(elements.data))
            i += 1

    def _restore_click(self, click: Click) -> None:
        if click.position == WITHDRAWN:
            self._stop_waiting(click.impression, click.identity)
            return
        if self._number(click.identity) != ABSENT:
            return
        row = self._number(click.impression)
        if row >= 0:
            close_ms = int(self._tables.impressions[row, t.AT_MS]) + self._window_ms
            if click.at_ms <= close_ms:
                place = self._located(click)
                position = int(arrivals.place_of_click(self._tables, row, *place))
                arrivals.attach_click(self._tables, row, *place, position)
        elif row != t.KNOWN and not self._is_orphan(click):
            self._wait(click)

    def _restore_impression(self, elements: Elements, i: int) -> None:
        close_ms = elements.number(i, e.AT_MS) + self._window_ms
        if close_ms <= self.watermark.at_ms:
            return
        impression = decode_impression(elements.raw(i))
        self._open(elements.data, elements.places[i])
        for click in self._no_longer_waiting(impression.identity):
            self._remove(click.identity)
            self._restore_click(click)

    def state(self) -> list[Any]:
        """What `restore` takes."""
        return [self.watermark.state(), self.counts]

    def restore(self, state: list[Any]) -> None:
        """Take back the watermark and the counts."""
        watermark, counts = state
        self.watermark.restore(watermark)
        self.counts = dict(counts)
