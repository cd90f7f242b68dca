"""How often a client may ask: a bucket each, of as many clients as memory allows."""

import time
from collections import OrderedDict

MOST_CLIENTS = 20_000
"""Clients that are remembered; the one that was silent for longest goes first."""


class Rates:
    """Token buckets by client: so many requests a second, twice as many at once.

    Parameters
    ----------
    per_second
        0: no limit.
    """

    def __init__(self, per_second: float) -> None:
        self._per_second = per_second
        self._most = max(1.0, 2.0 * per_second)
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait_s(self, client: str) -> float:
        """Count a request: 0 where it may pass, else the seconds to wait."""
        if not self._per_second:
            return 0.0
        now_s = time.monotonic()
        left, at_s = self._buckets.get(client, (self._most, now_s))
        left = min(self._most, left + (now_s - at_s) * self._per_second)
        passes = left >= 1.0
        self._buckets[client] = (left - 1.0 if passes else left, now_s)
        self._buckets.move_to_end(client)
        if len(self._buckets) > MOST_CLIENTS:
            self._buckets.popitem(last=False)
        return 0.0 if passes else (1.0 - left) / self._per_second
