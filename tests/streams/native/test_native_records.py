"""Records of statistics that the core writes, and takes back as they were."""

import ctypes
import gc
import sys
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.fold.statistics_fold import StatisticsFold, StatisticsRefused
from streams.native.closed_impressions import closed_of
from streams.stage import Change
from tests.event_factory import impression

KEEP_MS = 1_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def new_fold() -> StatisticsFold:
    """Of four groups."""
    return StatisticsFold(LimitSettings(), StatisticsSettings(groups=4), KEEP_MS, 0)


def shown(unit: int, n_items: int, rank: int) -> Interaction:
    """A closed impression of a session, with a click."""
    items = [f"d{i:03}" for i in range(n_items)]
    one = impression("i", 0, items=items, unit=unit)
    return Interaction(one, [ClickMark(rank, 0, "click")])


def restored(state: dict[bytes, bytes]) -> StatisticsFold:
    """A fold that goes on from a state."""
    fold = new_fold()
    fold.restore(Change("statistics", key, value) for key, value in state.items())
    return fold


def records_of(fold: StatisticsFold) -> dict[bytes, bytes]:
    """What it writes."""
    return {one.key: one.value for one in fold.changes() if one.value is not None}


def test_each_group_of_a_large_scope_has_a_record_that_comes_back() -> None:
    """Of a list longer than masks are; a scope that grows writes what changed."""
    fold = new_fold()
    fold.take(closed_of([shown(unit, 300, unit + 1) for unit in range(3)]))
    state = records_of(fold)
    pieces = [_decode(key) for key in state if _decode(key)[0] == "piece"]

    assert sorted(piece[-1] for piece in pieces) == [0, 1, 2]
    again = restored(state)
    assert again.fingerprint() == fold.fingerprint()
    for one in (fold, again):
        one.take(closed_of([shown(1, 300, 7)]))
    changed = records_of(fold)
    assert records_of(again) == changed
    assert [_decode(key)[-1] for key in changed if _decode(key)[0] == "piece"] == [1]


def with_masks(counts: list[Any]) -> dict[bytes, bytes]:
    """The state of two lists, as if their clicks were others."""
    fold = new_fold()
    fold.take(closed_of([shown(0, 3, 1), shown(0, 3, 2)]))
    state = records_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    assert value[4][2] == [0, 2, [1, 1, 2, 1]]
    value[4][2] = counts
    return {**state, key: _encode(value)}


@pytest.mark.parametrize("masks", [[1, 3], [1, 2, 2, 1], [1, 1, 2, 1, 4, 1]])
def test_no_list_was_clicked_more_often_than_shown(masks: list[int]) -> None:
    """Each of its lists has one set of clicked ranks; fewer may have any."""
    assert sum(masks[1::2]) == 3
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored(with_masks([0, 2, masks]))
    restored(with_masks([0, 2, masks[:-2]]))


class Allocated(ctypes.Structure):
    """`struct mallinfo2` of malloc.h."""

    _fields_ = tuple(
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    )


def bytes_in_use() -> int:
    """What the process has asked the C library for, and not given back."""
    count = ctypes.CDLL(None).mallinfo2
    count.restype = Allocated
    gc.collect()
    found = count()
    return int(found.uordblks + found.hblkhd)


@pytest.mark.skipif(
    sys.platform != "linux" or not hasattr(ctypes.CDLL(None), "mallinfo2"),
    reason="this C library does not count",
)
def test_a_fold_that_is_gone_has_given_all_memory_back() -> None:
    """What it counted, what it wrote, and what it took to know that."""
    batch = closed_of([shown(unit, n, 1) for unit in range(4) for n in (3, 300)])

    in_use = []
    for _ in range(6):
        for _ in range(8):
            fold = new_fold()
            fold.take(batch)
            restored(records_of(fold)).advance(2 * KEEP_MS)
            del fold
        in_use.append(bytes_in_use())

    # Each would leave 16 bytes or more behind, and always; others ask now and then.
    assert np.diff(in_use).min() < 8 * 16
