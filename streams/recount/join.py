"""The join, written a second time: dictionaries and heaps, one event after another."""

import heapq
from collections.abc import Callable, Iterable, Mapping

import msgspec

from rankstream.wire.events import (
    ACTIVE,
    Click,
    ClickEvent,
    ClickMark,
    Element,
    Frontier,
    Impression,
    Interaction,
    decode_items,
    encode_record,
)
from rankstream.wire.routing import route_of_click, route_of_query
from streams.recount.rules import Rules

OUTCOMES = (
    "consumed",
    "applied_impressions",
    "applied_clicks",
    "duplicate",
    "late",
    "orphan",
    "dead_letter",
    "pending",
)
"""What every event ends as; the last seven add up to the first."""


class Open:
    """An impression whose window is open, and what was clicked so far."""

    def __init__(self, impression: Impression) -> None:
        self.impression = impression
        self.identities = [impression.identity]
        self.marks: list[tuple[int, int, int, str]] = []
        self.sizes: list[int] = []


Place = Callable[[int | None], int]
"""Gives the partition that a route leads to; the divided one where there is none."""


class SlowJoin:
    """One partition of the log.

    Parameters
    ----------
    on_closed
        Is given every interaction, in closing order.
    on_moved
        Is given the watermark each time it moved, after all that it closed.
    """

    def __init__(
        self,
        rules: Rules,
        on_closed: Callable[[Interaction], None],
        on_moved: Callable[[int], None],
    ) -> None:
        self.watermark_ms = -1
        self.outcomes = dict.fromkeys(OUTCOMES, 0)
        self.excluded = {"excluded_impressions": 0, "excluded_clicks": 0}
        self._rules = rules
        self._on_closed = on_closed
        self._on_moved = on_moved
        self._frontiers: dict[int, Frontier] = {}
        self._arrival = 0
        self._known: set[bytes] = set()
        self._open: dict[bytes, Open] = {}
        self._waiting: dict[bytes, list[tuple[int, Click]]] = {}
        self._closing: list[tuple[int, int, bytes]] = []
        self._expiring: list[tuple[int, int, Click]] = []
        self._forgetting: list[tuple[int, int, list[bytes]]] = []

    def take(self, elements: Iterable[Element]) -> None:
        """Take elements of the log."""
        for element in elements:
            self._arrival += 1
            if isinstance(element, Frontier):
                self._hear(element)
                continue
            self.outcomes["consumed"] += 1
            self.outcomes["pending"] += 1
            if isinstance(element, Impression):
                self._take_impression(element)
            else:
                self._take_click(element)

    def hand_over(self, children: Mapping[int, "SlowJoin"], place: Place) -> None:
        """Give what is pending to the joins of other partitions, by its route.

        They know all that this one knows to have closed, and what time it is.
        """
        opened = {
            identity: place(route_of_query(each.impression.query_id))
            for identity, each in self._open.items()
        }
        waiting = {
            arrival: place(_route_of(click))
            for clicks in self._waiting.values()
            for arrival, click in clicks
        }
        for number, child in children.items():
            child.inherit(self, number, opened, waiting)
        gone = children.keys()
        n_gone = self._leave(
            {identity for identity, number in opened.items() if number in gone},
            {arrival for arrival, number in waiting.items() if number in gone},
        )
        for name in ("consumed", "pending"):
            self.outcomes[name] -= n_gone

    def inherit(
        self,
        other: "SlowJoin",
        own: int,
        opened: Mapping[bytes, int],
        waiting: Mapping[int, int],
    ) -> None:
        """Begin with all that another join knows, but for what goes elsewhere.

        Parameters
        ----------
        opened, waiting
            Where each open impression goes, by identity, and each click that waits,
            by its arrival; `own` is here.
        """
        for name in ("watermark_ms", "_arrival"):
            setattr(self, name, getattr(other, name))
        for name in ("_frontiers", "_known", "_open", "_closing", "_expiring"):
            setattr(self, name, getattr(other, name).copy())
        self._forgetting = other._forgetting.copy()  # noqa: SLF001  one of these too
        clicks_of = other._waiting.items()  # noqa: SLF001
        self._waiting = {name: clicks.copy() for name, clicks in clicks_of}
        self._leave(
            {identity for identity, number in opened.items() if number != own},
            {arrival for arrival, number in waiting.items() if number != own},
        )
        n_pending = sum(1 + len(each.marks) for each in self._open.values())
        n_pending += sum(map(len, self._waiting.values()))
        self.outcomes["consumed"] = self.outcomes["pending"] = n_pending

    def _leave(self, opened: set[bytes], waiting: set[int]) -> int:
        """Let impressions and arrivals of clicks go; says how many events they are."""
        n_gone = len(waiting)
        for identity in opened:
            one = self._open.pop(identity)
            self._known.difference_update(one.identities)
            n_gone += 1 + len(one.marks)
        self._closing = [each for each in self._closing if each[2] not in opened]
        heapq.heapify(self._closing)
        for name, clicks in list(self._waiting.items()):
            gone = [click for arrival, click in clicks if arrival in waiting]
            self._known.difference_update(click.identity for click in gone)
            kept = [each for each in clicks if each[0] not in waiting]
            self._waiting[name] = kept
            if not kept:
                del self._waiting[name]
        return n_gone

    def _end(self, outcome: str) -> None:
        self.outcomes["pending"] -= 1
        self.outcomes[outcome] += 1

    def _take_impression(self, impression: Impression) -> None:
        identity = impression.identity
        close_ms = impression.at_ms + self._rules.window_ms
        if identity in self._known:
            self._end("duplicate")
        elif self.watermark_ms >= close_ms:
            self._end("late")
        else:
            self._known.add(identity)
            opened = self._open[identity] = Open(impression)
            heapq.heappush(self._closing, (close_ms, self._arrival, identity))
            for arrival, click in self._waiting.pop(identity, []):
                self._attach(opened, click, arrival)

    def _take_click(self, click: Click) -> None:
        expires_ms = click.at_ms + self._rules.disorder_ms
        if click.identity in self._known:
            self._end("duplicate")
        elif click.impression in self._open:
            self._attach(self._open[click.impression], click, self._arrival)
        elif click.impression in self._known:
            self._end("late")
        elif self.watermark_ms >= expires_ms:
            self._end("orphan")
        elif not self._may_wait(click):
            self._end("dead_letter")
        else:
            self._known.add(click.identity)
            waiting = self._waiting.setdefault(click.impression, [])
            waiting.append((self._arrival, click))
            heapq.heappush(self._expiring, (expires_ms, self._arrival, click))

    def _attach(self, opened: Open, click: Click, arrival: int) -> None:
        if click.at_ms > opened.impression.at_ms + self._rules.window_ms:
            self._known.discard(click.identity)
            self._end("late")
            return
        if not self._fits(opened.sizes, click):
            self._known.discard(click.identity)
            self._end("dead_letter")
            return
        opened.sizes.append(size_of(click))
        self._known.add(click.identity)
        opened.identities.append(click.identity)
        position = position_on(opened.impression, click)
        if position is None:
            self._end("dead_letter")
        else:
            opened.marks.append((click.at_ms, position, arrival, click.action))

    def _may_wait(self, click: Click) -> bool:
        waiting = self._waiting.get(click.impression, [])
        return len(waiting) < self._rules.clicks and self._fits(
            [size_of(each) for _, each in waiting], click
        )

    def _fits(self, sizes: list[int], click: Click) -> bool:
        """Whether an impression that has clicks of these sizes may have another."""
        rules = self._rules
        return (
            len(sizes) < rules.clicks
            and sum(sizes) + size_of(click) <= rules.click_bytes
        )

    def _hear(self, frontier: Frontier) -> None:
        self._frontiers[frontier.source] = frontier
        spoken = self._frontiers.values()
        if len(spoken) < frontier.n_sources:
            return
        active = [each.at_ms for each in spoken if each.state == ACTIVE]
        reached = min(active) if active else max(each.at_ms for each in spoken)
        if reached > self.watermark_ms:
            self.watermark_ms = reached
            self._move()

    def _move(self) -> None:
        now_ms = self.watermark_ms
        while self._closing and self._closing[0][0] <= now_ms:
            close_ms, arrival, identity = heapq.heappop(self._closing)
            closed = self._open.pop(identity)
            forget_ms = close_ms + self._rules.remember_ms
            heapq.heappush(self._forgetting, (forget_ms, arrival, closed.identities))
            self._end("applied_impressions")
            marks = sorted(closed.marks)
            for _ in marks:
                self._end("applied_clicks")
            clicks = [ClickMark(rank, at, action) for at, rank, _, action in marks]
            if is_excluded(closed.impression):
                self.excluded["excluded_impressions"] += 1
                self.excluded["excluded_clicks"] += len(clicks)
            else:
                self._on_closed(Interaction(closed.impression, clicks))
        while self._expiring and self._expiring[0][0] <= now_ms:
            _, arrival, click = heapq.heappop(self._expiring)
            self._expire(arrival, click)
        while self._forgetting and self._forgetting[0][0] <= now_ms:
            _, _, identities = heapq.heappop(self._forgetting)
            self._known.difference_update(identities)
        self._on_moved(now_ms)

    def _expire(self, arrival: int, click: Click) -> None:
        waiting = self._waiting.get(click.impression, [])
        if (arrival, click) not in waiting:
            return
        waiting.remove((arrival, click))
        if not waiting:
            del self._waiting[click.impression]
        self._known.discard(click.identity)
        self._end("orphan")


def is_excluded(impression: Impression) -> bool:
    """Whether ingestion wrote that this list enters no sum."""
    if not impression.extra:
        return False
    return msgspec.msgpack.decode(impression.extra).get("excluded") is True


def _route_of(click: Click) -> int | None:
    try:
        event = msgspec.json.decode(click.raw, type=ClickEvent)
    except (ValueError, RecursionError):
        return None
    return route_of_click(event.query_id, event.impression_id)


def size_of(click: Click) -> int:
    """Bytes of a click in the log."""
    return len(encode_record(click))


def position_on(impression: Impression, click: Click) -> int | None:
    """Where on the list the click was, None if the list has no such place."""
    items = decode_items(impression.candidates)
    rows = memoryview(impression.shown).cast("H").tolist()
    shown = [items[row] for row in rows]
    if click.position and click.position > len(shown):
        return None
    if not click.item_id:
        return click.position
    if click.item_id not in shown:
        return None
    position = shown.index(click.item_id) + 1
    return position if click.position in (0, position) else None
