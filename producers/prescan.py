"""Lateness before sending: which events would be late or orphans in this order.

Follows the rules of the join for one input partition of each topic, with the
largest time seen as the source's time. The pipeline writes its time at commits,
so it may be more lenient, never stricter.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES


@dataclass
class Forecasted:
    """What a replay would come to in this order.

    Parameters
    ----------
    disordered
        Events that come after a later one, by up to `furthest_back_ms`.
    first_ms, last_ms
        Event times; None without events.
    """

    queries: int = 0
    clicks: int = 0
    late: int = 0
    orphans: int = 0
    disordered: int = 0
    furthest_back_ms: int = 0
    first_ms: int | None = None
    last_ms: int | None = None


class _Named(msgspec.Struct, gc=False):
    impression_id: str = ""


_name = msgspec.json.Decoder(_Named).decode


class _Outlook:
    """The join without its contents."""

    def __init__(self, disorder_ms: int, window_ms: int) -> None:
        self.forecast = Forecasted()
        self._disorder_ms = disorder_ms
        self._window_ms = window_ms
        self._largest: dict[str, int] = {}
        self._passed_ms = -1
        self._closes: dict[str, int] = {}
        self._closing: list[tuple[int, str]] = []
        self._waiting: dict[str, list[int]] = {}
        self._expiring: list[tuple[int, str]] = []

    def take(self, event: Event) -> None:
        """Count one event; time moves after it. What could not be adapted is none."""
        if event.refusal:
            return
        self._measure(event)
        name = _impression_of(event.value)
        if event.kind == QUERIES:
            self.forecast.queries += 1
            self._show(name, event.at_ms)
        else:
            self.forecast.clicks += 1
            self._click(name, event.at_ms)
        self._advance(event)

    def conclude(self) -> None:
        """Count the clicks whose impression never came."""
        self.forecast.orphans += sum(map(len, self._waiting.values()))

    def _measure(self, event: Event) -> None:
        forecast, at_ms = self.forecast, event.at_ms
        if forecast.first_ms is None or forecast.last_ms is None:
            forecast.first_ms = forecast.last_ms = at_ms
        elif at_ms < forecast.last_ms:
            forecast.disordered += 1
            back_ms = forecast.last_ms - at_ms
            forecast.furthest_back_ms = max(forecast.furthest_back_ms, back_ms)
            forecast.first_ms = min(forecast.first_ms, at_ms)
        else:
            forecast.last_ms = at_ms

    def _show(self, name: str, at_ms: int) -> None:
        close_ms = at_ms + self._window_ms
        if name in self._closes:
            return
        if self._passed_ms >= close_ms:
            self.forecast.late += 1
            return
        self._closes[name] = close_ms
        heapq.heappush(self._closing, (close_ms, name))
        self.forecast.late += sum(at > close_ms for at in self._waiting.pop(name, ()))

    def _click(self, name: str, at_ms: int) -> None:
        close_ms = self._closes.get(name)
        if close_ms is not None:
            self.forecast.late += at_ms > close_ms
        elif self._passed_ms >= at_ms + self._disorder_ms:
            self.forecast.orphans += 1
        else:
            self._waiting.setdefault(name, []).append(at_ms)
            heapq.heappush(self._expiring, (at_ms + self._disorder_ms, name))

    def _advance(self, event: Event) -> None:
        largest = self._largest
        largest[event.kind] = max(largest.get(event.kind, -1), event.at_ms)
        if len(largest) < 2:
            return
        reached = min(largest.values()) - self._disorder_ms
        if reached <= self._passed_ms:
            return
        self._passed_ms = reached
        while self._closing and self._closing[0][0] <= reached:
            del self._closes[heapq.heappop(self._closing)[1]]
        while self._expiring and self._expiring[0][0] <= reached:
            self._give_up(heapq.heappop(self._expiring)[1], reached)

    def _give_up(self, name: str, reached: int) -> None:
        times = self._waiting.get(name)
        if times is None:
            return
        kept = [at for at in times if at + self._disorder_ms > reached]
        self.forecast.orphans += len(times) - len(kept)
        if kept:
            self._waiting[name] = kept
        else:
            del self._waiting[name]


def forecast(
    events: Iterable[Event], *, disorder_ms: int, window_ms: int
) -> Forecasted:
    """What would become of these events, in this order, on an empty pipeline.

    A click on an impression whose window has closed counts as an orphan here, as
    soon as its impression is forgotten; in the pipeline it may be late.
    """
    outlook = _Outlook(disorder_ms, window_ms)
    for event in events:
        outlook.take(event)
    outlook.conclude()
    return outlook.forecast


def _impression_of(value: bytes) -> str:
    try:
        return _name(value).impression_id
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
