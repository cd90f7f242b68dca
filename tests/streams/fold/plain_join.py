"""The rules of the join in plain Python: what the one with tables must give."""

from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from operator import itemgetter

import msgspec

from rankstream.settings import LimitSettings, TimeSettings
from rankstream.wire.events import (
    Click,
    ClickMark,
    Element,
    Frontier,
    Impression,
    Interaction,
    decode_items,
    encode_record,
)
from streams.event_time import Watermark
from tests.streams.fold.plain_schedule import Schedule

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

Attached = tuple[int, int, Click]
"""Time, 1-based position, click."""

NO_CLICKS: list[ClickMark] = []
"""Shared by all interactions without a click; nobody changes it."""

WITHDRAWN = -1
"""Position of a click that was waiting and proved late when its impression came."""

Remembered = tuple[list[int], list[bytes]]
"""When impressions closed, in order, and what is known until some time after."""

_by_time_and_position = itemgetter(0, 1)


class PlainJoin:
    """Open impressions, waiting clicks, known identities, and the watermark.

    `on_moved` is called each time the watermark has moved, after all that it closed
    is in `closed`: what follows must see every move, wherever records end.
    After `take`, the lists `closed`, `set_aside`, `not_shown` and `beyond` hold what
    came of it, in order; `accepted` and `remembered` hold what a commit needs.
    Whoever calls empties them.
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
        self.closed: list[Interaction] = []
        self.set_aside: list[tuple[str, Impression | Click]] = []
        self.not_shown: list[Click] = []
        self.beyond: list[Click] = []
        self._limits = limits or LimitSettings()
        self.accepted: list[tuple[int, Impression | Click]] = []
        self.remembered: list[Remembered] = []
        self._window_ms = time.click_window_ms
        self._disorder_ms = time.disorder_ms
        self._remember_ms = time.remember_ms
        # An open impression by its identity; None: known, and not an open one.
        self._known: dict[bytes, Impression | None] = {}
        self._n_open = 0
        self._attached: dict[bytes, list[Attached]] = {}
        self._n_attached = 0
        self._waiting: dict[bytes, list[Click]] = {}
        self._n_waiting = 0
        self._closing: Schedule[Impression] = Schedule()
        self._expiring: Schedule[Click] = Schedule()
        self._forgetting: deque[Remembered] = deque()

    @property
    def pending(self) -> int:
        """Events whose outcome is still open."""
        return self._n_open + self._n_attached + self._n_waiting

    @property
    def n_open(self) -> int:
        """Impressions whose window is open."""
        return self._n_open

    @property
    def n_known(self) -> int:
        """Identities that are remembered."""
        return len(self._known)

    def take(self, elements: list[Element]) -> None:
        """Take elements of the log in their order."""
        known, window_ms = self._known, self._window_ms
        open_until, accept = self._closing.add, self.accepted.append
        n_opened, n_frontiers = 0, 0
        for element in elements:
            if type(element) is Impression:
                close_ms = element.at_ms + window_ms
                identity = element.identity
                if identity in known or close_ms <= self.watermark.at_ms:
                    self._refuse(element)
                    continue
                known[identity] = element
                n_opened += 1
                entry = (close_ms, element)
                open_until(entry)
                accept(entry)
                if self._waiting and identity in self._waiting:
                    self._meet(element)
            elif type(element) is Click:
                self._click(element)
            else:
                self._n_open += n_opened
                n_opened = 0
                n_frontiers += 1
                self._frontier(element)  # type: ignore[arg-type]
        self._n_open += n_opened
        self.counts["consumed"] += len(elements) - n_frontiers

    def _refuse(self, impression: Impression) -> None:
        if impression.identity in self._known:
            self.counts["duplicate"] += 1
        else:
            self.counts["late"] += 1
            self.set_aside.append(("late", impression))

    def _meet(self, impression: Impression) -> None:
        for click in self._waiting.pop(impression.identity):
            self._n_waiting -= 1
            if click.at_ms > impression.at_ms + self._window_ms:
                # It was accepted as waiting: say that it no longer is.
                withdrawn = msgspec.structs.replace(click, position=WITHDRAWN)
                self.accepted.append((click.at_ms + self._disorder_ms, withdrawn))
            self._attach(impression, click)

    def _click(self, click: Click) -> None:
        known = self._known
        if click.identity in known:
            self.counts["duplicate"] += 1
            return
        impression = known.get(click.impression)
        if impression is not None:
            self._attach(impression, click)
        elif click.impression in known:
            self._put_aside("late", click)
        elif click.at_ms + self._disorder_ms <= self.watermark.at_ms:
            self._put_aside("orphan", click)
        elif self._has_room(self._waiting.get(click.impression, []), click):
            self._wait(click)
        else:
            self._put_beyond(click)

    def _has_room(self, others: list[Click], click: Click) -> bool:
        """Whether clicks of one impression may have another among them."""
        all_of_them = [*others, click]
        return len(all_of_them) <= self._limits.clicks and (
            sum(len(encode_record(each)) for each in all_of_them)
            <= self._limits.click_bytes
        )

    def _put_beyond(self, click: Click) -> None:
        self.counts["dead_letter"] += 1
        self.beyond.append(click)

    def _wait(self, click: Click) -> None:
        self._known[click.identity] = None
        self._waiting.setdefault(click.impression, []).append(click)
        self._n_waiting += 1
        entry = (click.at_ms + self._disorder_ms, click)
        self._expiring.add(entry)
        self.accepted.append(entry)

    def _attach(self, impression: Impression, click: Click) -> None:
        close_ms = impression.at_ms + self._window_ms
        if click.at_ms > close_ms:
            self._known.pop(click.identity, None)
            self._put_aside("late", click)
            return
        attached = self._attached.get(impression.identity, [])
        if not self._has_room([each for _, _, each in attached], click):
            self._known.pop(click.identity, None)
            self._put_beyond(click)
            return
        if not self._place(impression, click):
            self.counts["dead_letter"] += 1
            self.not_shown.append(click)
        self.accepted.append((close_ms, click))

    def _place(self, impression: Impression, click: Click) -> bool:
        """Remember a click with its impression; False if it is on no place of it."""
        position = position_of(impression, click)
        self._known[click.identity] = None
        place = (click.at_ms, position, click)
        attached = self._attached.get(impression.identity)
        if attached is None:
            self._attached[impression.identity] = [place]
        else:
            attached.append(place)
        if position:
            self._n_attached += 1
        return position > 0

    def _put_aside(self, outcome: str, click: Click) -> None:
        self.counts[outcome] += 1
        self.set_aside.append((outcome, click))

    def _frontier(self, frontier: Frontier) -> None:
        if not self.watermark.take(frontier):
            return
        now_ms = self.watermark.at_ms
        closing = self._closing.due(now_ms)
        if closing:
            self._close(closing)
        for click in self._expiring.due(now_ms):
            self._expire(click)
        if self._forgetting:
            self._forget(now_ms - self._remember_ms)
        self._on_moved()

    def _close(self, impressions: list[Impression]) -> None:
        """Close in the order of time; identities are forgotten in the same order."""
        times: list[int] = []
        identities: list[bytes] = []
        window_ms, attached = self._window_ms, self._attached
        for impression in impressions:
            identity = impression.identity
            times.append(impression.at_ms + window_ms)
            identities.append(identity)
            if identity in attached:
                marks = self._marks(identity, times, identities)
                self.closed.append(Interaction(impression, marks))
            else:
                self.closed.append(Interaction(impression, NO_CLICKS))
        self._known.update(dict.fromkeys(identities))
        self._n_open -= len(impressions)
        self.counts["applied_impressions"] += len(impressions)
        self._forgetting.append((times, identities))
        self.remembered.append((times, identities))

    def _marks(
        self, identity: bytes, times: list[int], identities: list[bytes]
    ) -> list[ClickMark]:
        attached = self._attached.pop(identity)
        attached.sort(key=_by_time_and_position)
        times += [times[-1]] * len(attached)
        identities += [click.identity for _, _, click in attached]
        marks = [
            ClickMark(rank, at, click.action) for at, rank, click in attached if rank
        ]
        self._n_attached -= len(marks)
        self.counts["applied_clicks"] += len(marks)
        return marks

    def _expire(self, click: Click) -> None:
        waiting = self._waiting.get(click.impression)
        if waiting is None or not any(other is click for other in waiting):
            return
        waiting.remove(click)
        if not waiting:
            del self._waiting[click.impression]
        self._n_waiting -= 1
        del self._known[click.identity]
        self._put_aside("orphan", click)

    def _forget(self, closed_ms: int) -> None:
        """Forget what closed at or before a time."""
        while self._forgetting and self._forgetting[0][0][0] <= closed_ms:
            times, identities = self._forgetting.popleft()
            n_due = bisect_right(times, closed_ms)
            for identity in identities[:n_due]:
                del self._known[identity]
            if n_due < len(times):
                self._forgetting.appendleft((times[n_due:], identities[n_due:]))
                return


def position_of(impression: Impression, click: Click) -> int:
    """The 1-based position that a click is about, 0 if the list has no such place."""
    n_shown = len(impression.shown) // 2
    if click.position > n_shown:
        return 0
    if not click.item_id:
        return click.position
    try:
        row = decode_items(impression.candidates).index(click.item_id)
    except ValueError:
        return 0
    place = row.to_bytes(2, "little")
    shown = impression.shown
    for position in range(1, n_shown + 1):
        if shown[2 * position - 2 : 2 * position] == place:
            return position if click.position in (0, position) else 0
    return 0
