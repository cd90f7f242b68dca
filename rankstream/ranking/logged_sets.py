"""Which candidate sets a ranker has logged features of, and when."""

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

AGAIN_MS = 3_600_000
"""Features are logged again after so long: what was sent may not have arrived, and
what has left the topic may be asked for again."""

MOST = 65_536
"""Sets that are remembered, about 10 MB; beyond, those not seen for longest are
forgotten, and logged again when they come."""


class LoggedSets:
    """The last sets that were logged, in bounded memory; for several threads."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._at_ms: OrderedDict[bytes, int] = OrderedDict()
        self._lock = threading.Lock()

    def is_due(
        self, query: str, items: Sequence[str], features_hash: bytes, at_ms: int
    ) -> bool:
        """Whether features are to be logged now; if so, they count as logged.

        Parameters
        ----------
        query
            As features are kept by it; see `rankstream.wire.segments`.
        items
            The candidates, in any order.
        at_ms
            Of the list that they are logged with.
        """
        # Ids may have any character, so none of them can part them.
        names = msgspec.msgpack.encode([query, *sorted(items)])
        name = hashlib.blake2b(names, digest_size=16, key=features_hash).digest()
        with self._lock:
            last_ms = self._at_ms.get(name)
            if last_ms is not None:
                self._at_ms.move_to_end(name)
                # Further back, the last one was of a clock that was put right since.
                if -AGAIN_MS <= at_ms - last_ms < AGAIN_MS:
                    return False
            self._at_ms[name] = at_ms
            if len(self._at_ms) > self._most:
                self._at_ms.popitem(last=False)
            return True
