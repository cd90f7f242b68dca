"""Statistics of one partition in C, as `streams.fold.statistics_fold` calls them."""

import ctypes
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from streams.native.core_library import core

Int64 = NDArray[np.int64]
Record = tuple[bytes, bytes]
"""Key and value; the value of a tombstone is empty."""

NAME_BYTES = 16
"""Of the name of a candidate set."""

NOT_WHOLE, TOO_MANY = -4, -5

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_ANSWERS = {
    "statistics_map": (_PLACE, _PLACE, _NUMBER, _NUMBER),
    "statistics_count": (_PLACE, _PLACE, _PLACE, _NUMBER),
    "statistics_leave": (_PLACE, _NUMBER),
    "statistics_changes": (_PLACE, _PLACE),
    "statistics_restore": (_PLACE, _PLACE, _PLACE, _NUMBER),
    "statistics_restored": (_PLACE,),
    "statistics_bytes": (_PLACE,),
    "statistics_has_set": (_PLACE, _PLACE, _NUMBER, _PLACE),
}
_SAYS_NOTHING = {
    "statistics_free": (_PLACE,),
    "statistics_take": (_PLACE, _PLACE, _PLACE),
    "statistics_numbers": (_PLACE, _PLACE),
    "statistics_set_numbers": (_PLACE, _PLACE),
    "statistics_name_set": (_PLACE, _NUMBER, _PLACE),
}
for _name, _types in (_ANSWERS | _SAYS_NOTHING).items():
    _function = getattr(core, _name)
    _function.argtypes = _types
    _function.restype = _NUMBER if _name in _ANSWERS else None
core.statistics_new.argtypes, core.statistics_new.restype = (_PLACE,), _PLACE


class Apart(NamedTuple):
    """What is kept apart, and how much of it.

    `sets` and `interventions` are those of a query in an era, `rows` (of exposures)
    and `lists` those of a scope; `reward` is the number of the class of clicks. Lists
    of more than `head_bytes` have records of their own, of `piece_lists` each.
    """

    groups: int
    keep_ms: int
    sets: int
    interventions: int
    rows: int
    lists: int
    reward: int
    head_bytes: int
    piece_lists: int


class Numbers(NamedTuple):
    """Of impressions: taken, of eras that left, beyond limits, without exposure.

    `clipped` are clicks whose probability was raised; `scopes`, `lists` and `rows` are
    what is kept now, `oldest` its least era, if `has_era`.
    """

    taken: int
    left: int
    capped: int
    clipped: int
    without_exposure: int
    scopes: int
    lists: int
    rows: int
    has_era: int
    oldest: int


N_KEPT = 5
"""So many of the numbers come back from a state."""


class NativeCounts:
    """Scopes of one partition.

    Raises
    ------
    MemoryError
        By all that adds something.
    """

    def __init__(self, apart: Apart, actions: Mapping[str, int]) -> None:
        settings = np.array(apart, np.int64)
        self._counts = core.statistics_new(settings.ctypes.data)
        if not self._counts:
            raise MemoryError("no memory for statistics")
        for action, number in actions.items():
            name = action.encode()
            _checked(core.statistics_map(self._counts, name, len(name), number))

    def __del__(self) -> None:
        core.statistics_free(self._counts)

    def count(self, encoded: NDArray[np.uint8], ends: Int64) -> None:
        """Count interactions: `encoded` [n_bytes], and `ends` [n] of each in it.

        Raises
        ------
        ValueError
            Where one is not whole.
        OverflowError
            Where a counter would overflow.
        """
        places = encoded.ctypes.data, ends.ctypes.data
        _checked(core.statistics_count(self._counts, *places, len(ends)))

    def leave(self, watermark_ms: int) -> None:
        """Let go of the eras whose time is over."""
        _checked(core.statistics_leave(self._counts, watermark_ms))

    def changes(self) -> list[Record]:
        """Records that changed since the last call, tombstones of what left first."""
        sizes = np.zeros(2, np.int64)
        _checked(core.statistics_changes(self._counts, sizes.ctypes.data))
        n, n_bytes = sizes.tolist()
        out, ends = np.empty(n_bytes + 1, np.uint8), np.empty(2 * n + 1, np.int64)
        core.statistics_take(self._counts, out.ctypes.data, ends.ctypes.data)
        packed, bounds = out.tobytes(), ends.tolist()
        starts = [0, *bounds[1 : 2 * n : 2]]
        return [
            (packed[start:key_end], packed[key_end:end])
            for start, key_end, end in zip(
                starts, bounds[0 : 2 * n : 2], bounds[1 : 2 * n : 2], strict=False
            )
        ]

    def restore(self, records: Sequence[Record]) -> None:
        """Take back records of one kind; sets first, then rows, scopes, pieces, lists.

        Those of lists come in the order of their numbers.

        Raises
        ------
        ValueError
            Where one is not whole.
        """
        lengths = [len(part) for record in records for part in record]
        ends = np.cumsum(lengths, dtype=np.int64)
        packed = b"".join(part for record in records for part in record)
        _checked(
            core.statistics_restore(
                self._counts, packed, ends.ctypes.data, len(records)
            )
        )

    def restored(self) -> None:
        """Hear that all records and numbers were taken back.

        Raises
        ------
        ValueError
            Where some are missing.
        """
        _checked(core.statistics_restored(self._counts))

    def numbers(self) -> Numbers:
        """What was counted since the beginning of the log, and what is kept."""
        numbers = np.zeros(len(Numbers._fields), np.int64)
        core.statistics_numbers(self._counts, numbers.ctypes.data)
        return Numbers(*numbers.tolist())

    def n_bytes(self) -> int:
        """Bytes of memory of what is kept."""
        return _checked(core.statistics_bytes(self._counts))

    def has_set(self, query: str, name: bytes) -> bool:
        """Whether a living era keeps the set of a name apart for a query.

        `name` is one of `name_of_set`.
        """
        text = query.encode()
        return bool(core.statistics_has_set(self._counts, text, len(text), name))

    def set_numbers(self, kept: Sequence[int]) -> None:
        """Take back the first of the numbers."""
        numbers = np.array(kept[:N_KEPT], np.int64)
        core.statistics_set_numbers(self._counts, numbers.ctypes.data)


def name_of_set(candidates: bytes) -> bytes:
    """The name of a closed set, of its sorted items as MessagePack."""
    name = ctypes.create_string_buffer(NAME_BYTES)
    core.statistics_name_set(candidates, len(candidates), name)
    return name.raw


def _checked(result: int) -> int:
    if result == NOT_WHOLE:
        raise ValueError("what statistics are made of must be whole")
    if result == TOO_MANY:
        raise OverflowError(
            "a group must count fewer than 2^31 impressions, and inverse sums below "
            "2^62; a counter would overflow"
        )
    if result < 0:
        raise MemoryError("no memory for statistics")
    return result
