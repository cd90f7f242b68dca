"""Events of a run whose times are the clock's, under default settings of time."""

import heapq
import time
from collections.abc import Callable, Iterator

from rankstream.settings import TimeSettings
from tests.fire.events import CLICK_MS, REMEMBER_MS, WINDOW_MS, Event, Events

TIME = TimeSettings()
if (TIME.click_window_ms, TIME.remember_ms) != (WINDOW_MS, REMEMBER_MS):
    raise RuntimeError("a fire must plant what is late by the default settings")


def now_ms() -> int:
    """The wall clock."""
    return int(time.time() * 1_000)


class LiveEvents(Events):
    """As users would cause them; those that must be late wait for the watermark.

    What must be late comes once a window was over, about seven minutes after the start;
    what must be forgotten, after eleven.

    Attributes
    ----------
    is_open
        Whether events go on beyond the number that was asked for.

    Parameters
    ----------
    rate
        Events a second.
    clock
        Milliseconds; asked once for each event.
    """

    disorder_ms = TIME.disorder_ms

    def __init__(
        self,
        seed: int,
        n_events: int,
        n_partitions: int,
        rate: float,
        clock: Callable[[], int] = now_ms,
    ) -> None:
        started_ms = clock()
        super().__init__(seed, started_ms, started_ms, n_events, n_partitions)
        self._clock = clock
        self.step_ms = max(1, round(1_000 / rate))
        self.is_open = False

    def time_ms(self) -> int:
        """The time at which an event is sent, also after the last one was drawn."""
        return self._clock()

    def __iter__(self) -> Iterator[Event]:
        number = 0
        while self.is_open or number < self._n_events:
            self.now_ms = self._clock()
            yield self._next(number)
            number += 1
        # Clicks without which an impression would be other than it was told to be, a
        # little before their time. What is left would only be late.
        while self._planned and self._planned[0][0] <= self.now_ms + CLICK_MS:
            yield heapq.heappop(self._planned)[2]
