"""The join's common cases in C, as `streams.fold.join` calls them.

Identities are 16 bytes, elements are encoded and whole. What is open is named by a
reference larger than AWAITED.
"""

import ctypes
import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.native.closed_impressions import Closed
from streams.native.core_library import core
from streams.native.elements import Elements

ABSENT, KNOWN, AWAITED = range(3)
"""What an identity may be that is not that of an open impression."""

LATE, BEYOND, NO_MEMORY, NOT_WHOLE = range(-1, -5, -1)
"""What came of a click that was not attached, and of what could not be done."""

NOWHERE = -1
"""Origin of what stands nowhere in the log as it is."""

HAS_EXTRA = 1
"""What is said of a closed impression; beyond, that it is excluded."""

Int64 = NDArray[np.int64]
Limits = tuple[int, int]

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64
Sizes = ctypes.c_int64 * 6
"""Where sizes are written: each call has its own, as calls let other threads run."""

_SIZES = ctypes.POINTER(Sizes)
"""Takes no array of fewer: the core would write behind its end."""

_ANSWERS = {
    "join_take": (_PLACE, _PLACE, _PLACE, _PLACE, *[_NUMBER] * 5),
    "join_open": (_PLACE, _PLACE, _NUMBER, _NUMBER),
    "join_attach": (_PLACE, _NUMBER, _PLACE, *[_NUMBER] * 4),
    "join_note": (_PLACE, _NUMBER, _PLACE, _NUMBER),
    "join_find": (_PLACE, _PLACE),
    "join_wait": (_PLACE, _PLACE, *[_NUMBER] * 4),
    "join_stop_waiting": (_PLACE, _PLACE, _PLACE),
    "join_fall_due": (_PLACE, _NUMBER, _SIZES),
    "join_close": (_PLACE, *[_PLACE] * 4),
    "join_restore_known": (_PLACE, _PLACE, _PLACE, _NUMBER),
}
_SAYS_NOTHING = {
    "join_free": (_PLACE,),
    "join_no_longer_waiting": (*[_PLACE] * 4, _SIZES),
    "join_orphans": (_PLACE, _PLACE, _PLACE),
    "join_accepted": (*[_PLACE] * 5, _SIZES),
    "join_remembered": (_PLACE, _PLACE, _PLACE),
    "join_restore_time": (_PLACE, _NUMBER),
    "join_restored": (_PLACE,),
    "join_sizes": (_PLACE, _SIZES),
}
for _name, _types in (_ANSWERS | _SAYS_NOTHING).items():
    _function = getattr(core, _name)
    _function.argtypes = _types
    _function.restype = _NUMBER if _name in _ANSWERS else None
core.join_new.argtypes, core.join_new.restype = (_NUMBER,) * 3, _PLACE


class Accepted(NamedTuple):
    """What was accepted and is not due, in the order in which it was.

    That is the order of the log, but for clicks that waited: they come a second time
    behind their impression.

    Parameters
    ----------
    due_ms : [n]
        When each is due, in event time.
    origins : [n]
        Which element of the log each is, or NOWHERE.
    raw
        The bytes of each that is NOWHERE.
    """

    due_ms: Int64
    origins: Int64
    raw: list[bytes]


class Due(NamedTuple):
    """What a move of the watermark decided.

    Parameters
    ----------
    closed
        Impressions with their clicks; None where there are none.
    n_clicks
        On places of these.
    is_excluded : [n_closed]
        Which of them enters no sum.
    orphans
        Clicks that waited in vain, encoded, by time, then arrival.
    """

    closed: Closed | None
    n_clicks: int
    is_excluded: NDArray[np.bool_]
    orphans: list[bytes]


class NativeJoin:
    """Open impressions with their clicks, clicks that wait, and identities.

    All are of one partition.

    An *origin* says which element of the log something is, by a number that the caller
    gives and gets back; what is NOWHERE there is kept as bytes.

    Raises
    ------
    MemoryError
        By all that adds something.
    """

    def __init__(self, window_ms: int, disorder_ms: int, remember_ms: int) -> None:
        self._join = core.join_new(window_ms, disorder_ms, remember_ms)
        if not self._join:
            raise MemoryError("no memory for a join")

    def __del__(self) -> None:
        core.join_free(self._join)

    def take(
        self, elements: Elements, first: int, limits: Limits, origin: int = NOWHERE
    ) -> int:
        """Take elements from one on, up to the first that is not plain: its number.

        Plain are new impressions, where all clicks that wait for one are on its places;
        clicks on a place of an open impression; and clicks that wait, where there is
        room for them. `origin` is that of the first element of all; it rises by one
        from each to the next.
        """
        at = elements.addresses
        n = len(elements)
        return _checked(core.join_take(self._join, *at, first, n, *limits, origin))

    def open(self, raw: bytes, origin: int = NOWHERE) -> int:
        """Make an impression, which is absent, one that is open; its reference."""
        return _checked(core.join_open(self._join, raw, len(raw), origin))

    def attach(
        self, impression: int, raw: bytes, limits: Limits, origin: int = NOWHERE
    ) -> int:
        """Attach a click to an open impression, unless it is LATE or BEYOND limits.

        Returns
        -------
        int
            The position that it is about, 0 if that was not shown, LATE or BEYOND.
        """
        return _checked(
            core.join_attach(self._join, impression, raw, len(raw), *limits, origin)
        )

    def wait(self, raw: bytes, limits: Limits, origin: int = NOWHERE) -> int:
        """Let a click wait for its impression; 0, or BEYOND limits: it does not."""
        return _checked(core.join_wait(self._join, raw, len(raw), *limits, origin))

    def no_longer_waiting(self, impression: bytes) -> list[bytes]:
        """Take out what waits for an impression, in the order of arrival."""
        sizes = Sizes()
        core.join_no_longer_waiting(self._join, impression, None, None, sizes)
        take = functools.partial(core.join_no_longer_waiting, self._join, impression)
        return _pieces(lambda out, ends: take(out, ends, sizes), *sizes[:2])

    def stop_waiting(self, impression: bytes, click: bytes) -> None:
        """Let the click of an identity be absent, if it waits for an impression."""
        core.join_stop_waiting(self._join, impression, click)

    def note(self, due_ms: int, raw: bytes) -> None:
        """Keep a click for the next checkpoint, unless it is due by then."""
        _checked(core.join_note(self._join, due_ms, raw, len(raw)))

    def find(self, identity: bytes) -> int:
        """What an identity is: ABSENT, KNOWN, AWAITED or that of an open impression."""
        return int(core.join_find(self._join, identity))

    def close(self, now_ms: int) -> Due:
        """Close what is due, take out who waited in vain, and forget what is old."""
        sizes = Sizes()
        _checked(core.join_fall_due(self._join, now_ms, sizes))
        n_due, n_bytes, _, *of_orphans = sizes[:5]
        take_orphans = functools.partial(core.join_orphans, self._join)
        orphans = _pieces(take_orphans, *of_orphans) if of_orphans[0] else []
        if not n_due:
            core.join_close(self._join, None, None, None, None)
            return Due(None, 0, np.empty(0, np.bool_), orphans)
        flags = np.empty(n_due, np.uint8)
        closed = Closed(
            np.empty(n_bytes, np.uint8),
            np.empty(n_due, np.int64),
            np.empty((n_due, 2), np.uint64),
            np.empty(n_due, np.bool_),
        )
        arrays = (closed.encoded, closed.ends, closed.models, flags)
        places = [array.ctypes.data for array in arrays]
        n_applied = _checked(core.join_close(self._join, *places))
        np.greater(flags, 0, out=closed.extras)
        return Due(closed, n_applied, flags > HAS_EXTRA, orphans)

    def accepted(self) -> Accepted:
        """What was accepted since the last call and is not due."""
        sizes = Sizes()
        core.join_accepted(self._join, None, None, None, None, sizes)
        n, n_bytes = sizes[:2]
        # One more, so that it is an array where nothing was accepted.
        out = np.empty(n_bytes + 1, np.uint8)
        ends, due, origins = (np.empty(n, np.int64) for _ in range(3))
        places = (one.ctypes.data for one in (out, ends, due, origins))
        core.join_accepted(self._join, *places, sizes)
        packed, bounds = out.tobytes(), [0, *ends[origins == NOWHERE].tolist()]
        raw = [packed[i:j] for i, j in itertools.pairwise(bounds)]
        return Accepted(due, origins, raw)

    def remembered(self) -> tuple[Int64, NDArray[np.uint64]]:
        """What became known since the last call and still is: due times, names."""
        n = self.sizes()[3]
        times, names = np.empty(n, np.int64), np.empty((n, 2), np.uint64)
        core.join_remembered(self._join, times.ctypes.data, names.ctypes.data)
        return times, names

    def restore_time(self, now_ms: int) -> None:
        """Take back the watermark."""
        core.join_restore_time(self._join, now_ms)

    def restore_known(self, times: Int64, names: NDArray[np.uint64]) -> None:
        """Take back what is known: `times` [n] due, rising, and `names` [n, 2]."""
        times, names = np.ascontiguousarray(times), np.ascontiguousarray(names)
        places = times.ctypes.data, names.ctypes.data
        _checked(core.join_restore_known(self._join, *places, len(times)))

    def restored(self) -> None:
        """Hear that all that was taken came from the state, which has it."""
        core.join_restored(self._join)

    def sizes(self) -> list[int]:
        """Open impressions, clicks on a place of one, known and newly known, bytes.

        And clicks that wait.
        """
        sizes = Sizes()
        core.join_sizes(self._join, sizes)
        return sizes[:]


def _pieces(take: Callable[[int, int], object], n: int, n_bytes: int) -> list[bytes]:
    """Bytes that are written to an address, and their ends to another."""
    # One more, so that it is an array where there is nothing.
    out, ends = np.empty(n_bytes + 1, np.uint8), np.empty(n, np.int64)
    take(out.ctypes.data, ends.ctypes.data)
    packed, bounds = out.tobytes(), [0, *ends.tolist()]
    return [packed[i:j] for i, j in itertools.pairwise(bounds)]


def _checked(result: int) -> int:
    if result == NO_MEMORY:
        raise MemoryError("no memory for what a join must keep")
    if result == NOT_WHOLE:
        raise ValueError("an element must be whole, new and of a possible time")
    return result
