"""Records of scopes: what is read of them, and what is refused."""

from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression
from models.counts.placements import DETERMINISTIC, LOGGED
from models.counts.scope_record import (
    CAPPED,
    OVERFLOWED,
    TRUNCATED,
    decode_scope,
)
from models.counts.scope_summaries import groups_of_scope, summary_of_scope
from tests.models.counts.scope_values import ScopeValue

CELL = [[2, 1, 1, 1, 0, 0], [0, 2], [3, 1, 2, 1, 1, 2, 1, 0], [3, 1, 0, 5, 6, 7], []]
CELL_2 = [[1, 1, 0, 0, 0, 0], [], [0, 1, 1, 1, 1, 1, 1, 0, 3, 2, 1, 1, 0, 1, 1, 0], []]
CELL_2.append([0, 1, 1])

HEAD: list[Any] = [
    2,
    OVERFLOWED,
    777,
    [b"r" * 16],
    [0, [4, 5], [1, 3, [1, 1, 3, 2], 7, 1, []], -1 - DETERMINISTIC, [6], [1, 9, []]],
    [1, CELL, 3, CELL_2],
    [8],
    [1, 2, 4, 1, 5],
]
PIECE = [2, CELL]

pack = msgspec.msgpack.encode


def changed(path, value):
    """The head with one element changed; None takes it away."""
    head = msgspec.msgpack.decode(pack(HEAD))
    *outer, last = path
    place = head
    for step in outer:
        place = place[step]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return pack(head)


def read(value):
    """A scope whose head is this."""
    return decode_scope(value, {7: pack(PIECE), 8: pack(PIECE)}, {})


def pairs_of(scope, items):
    """Pairs without exposures, all groups together, by the number of the item."""
    cell = summary_of_scope(scope, items, {}, is_growing=False)
    rows = cell.pairs[:, :7].tolist()
    return sorted([items.index(cell.items[item]), *rest] for item, *rest in rows)


def test_a_scope_is_read_whole():
    """Every number stands where the layout says."""
    scope = decode_scope(pack(HEAD), {8: pack(PIECE), 9: b"not its own"}, {})
    assert (scope.flags, scope.last_ms, scope.rows) == (2, 777, (b"r" * 16,))
    lists = [column.tolist() for column in scope.lists]
    assert lists == [
        [0, -1 - DETERMINISTIC],
        [0, 2, 3],
        [4, 5, 6],
        [0, 0, 1],
        [1, 7, 1],
        [3, 1, 9],
        [0, 0],
        [1, 3],
        [1, 2],
    ]
    general = [table.tolist() for table in scope.general]
    assert general == [
        [[1, *CELL[0]], [3, *CELL_2[0]], [8, *CELL[0]]],
        [[1, 0, 2], [8, 0, 2]],
        [[1, *CELL[2]], [3, *CELL_2[2][:8]], [3, *CELL_2[2][8:]], [8, *CELL[2]]],
        [[1, *CELL[3]], [8, *CELL[3]]],
        [[3, 0, 1, 3, 2, 1]],
        [[1, 2, 4, 1, 5]],
    ]
    assert scope.pieces == (8,)
    assert groups_of_scope(scope) == [1, 3, 7, 8]


def test_a_scope_without_a_piece_that_it_names_is_refused():
    """Part of a scope is no scope."""
    with pytest.raises(ValueError, match=r"those of groups \[8\] are missing"):
        decode_scope(pack(HEAD), {7: pack(PIECE)}, {})


def test_lists_that_lie_apart_are_read_one_behind_the_other():
    """By the number of their piece."""
    pieces = {1: pack([2, HEAD[4][3:]]), 0: pack([2, HEAD[4][:3]]), 2: b"not its own"}
    whole = decode_scope(pack(HEAD), {8: pack(PIECE)}, {})
    scope = decode_scope(changed((4,), 2), {8: pack(PIECE)}, pieces)
    assert (whole.n_list_pieces, scope.n_list_pieces) == (0, 2)
    for column, other in zip(whole.lists, scope.lists, strict=True):
        assert column.tolist() == other.tolist()
    assert scope.pieces == (8,)
    del pieces[1]
    with pytest.raises(ValueError, match=r"all 2 pieces of its lists; piece 1 is miss"):
        decode_scope(changed((4,), 2), {8: pack(PIECE)}, pieces)
    with pytest.raises(ValueError, match="piece of statistics must be whole"):
        decode_scope(changed((4,), 3), {8: pack(PIECE)}, {1: b"", **pieces})
    with pytest.raises(ValueError, match="schema of a piece must be 2; got 1"):
        decode_scope(changed((4,), 1), {8: pack(PIECE)}, {0: pack([1, []])})


LISTS = 4, 2
BAD = {
    "fewer pieces of lists than none": ((4,), -1),
    "another schema": ((0,), 3),
    "an element too few": ((7,), None),
    "a flag in words": ((1,), "2"),
    "a short name of a row": ((3, 0), b"r"),
    "a list without counts": ((4, 5), None),
    "a row that is not there": ((4, 0), 1),
    "a policy that has rows": ((4, 0), -1 - LOGGED),
    "no policy": ((4, 0), -9),
    "an empty list": ((4, 4), []),
    "a list of 33": ((4, 4), list(range(33))),
    "an item below 0": ((4, 4), [-1]),
    "no number of an item": ((4, 4), [[1]]),
    "counts without masks": ((*LISTS, 5), None),
    "a number as masks": ((*LISTS, 2), 5),
    "masks as a number": ((*LISTS, 0), []),
    "groups that fall": ((*LISTS, 3), 1),
    "a group below 0": ((*LISTS, 0), -1),
    "nothing shown": ((*LISTS, 4), 0),
    "more clicked than shown": ((*LISTS, 1), 2),
    "a mask without a count": ((*LISTS, 2), [1]),
    "two masks without counts": (LISTS, [1, 3, [1], 7, 1, [1]]),
    "masks that fall": ((*LISTS, 2), [3, 1, 1, 1]),
    "an empty mask": ((*LISTS, 2), [0, 1]),
    "a mask beyond the list": ((*LISTS, 2), [4, 1]),
    "a mask never seen": ((*LISTS, 2), [1, 0]),
    "a number too large": ((*LISTS, 1), 1 << 63),
    "a group without a cell": ((5, 3), None),
    "cells that fall": ((5, 2), 0),
    "a cell twice": ((5, 2), 1),
    "a cell in both places": ((5, 2), 8),
    "a number as cell": ((5, 3), 9),
    "a cell as group": ((5, 2), CELL),
    "totals that lack one": ((5, 1, 0), [1] * 5),
    "no totals": ((5, 1, 0), []),
    "totals below 0": ((5, 1, 0), [1, 1, 1, 1, 1, -1]),
    "a row of a cell that is not there": ((5, 1, 1), [1, 2]),
    "pairs that lack one": ((5, 1, 2, 0), None),
    "pairs that fall": ((5, 3, 2, 0), 4),
    "sums that lack one": ((5, 1, 3, 0), None),
    "a click pair of a place that is not there": ((5, 3, 4, 1), 2),
    "a click pair of one place": ((5, 3, 4, 1), 0),
    "a click pair of half": ((5, 3, 4, 2), None),
    "pieces that fall": ((6,), [8, 7]),
    "rewards that lack one": ((7, 0), None),
    "rewards below 0": ((7, 4), -1),
    "rewards that fall": ((7,), [1, 2, 4, 1, 5, 1, 2, 3, 1, 5]),
}


@pytest.mark.parametrize(("path", "value"), BAD.values(), ids=BAD.keys())
def test_what_is_not_of_this_shape_is_refused(path, value):
    """In words that say what, and never with another kind of error."""
    with pytest.raises(ValueError, match=r"scope"):
        read(changed(path, value))


def test_bytes_that_are_no_record_are_refused():
    """Cut off at any place, too."""
    for value in (b"", b"\x01", pack(HEAD)[:-3], pack([2]), pack({})):
        with pytest.raises(ValueError, match="a scope of statistics must be whole"):
            read(value)
    with pytest.raises(ValueError, match="schema of a piece must be 2; got 1"):
        decode_scope(pack(HEAD), {8: pack([1, CELL])}, {})


def test_a_record_says_what_did_not_fit():
    """The encoder of the tests sets the flags that a fold sets."""
    lists = [ClosedImpression(0, [n]) for n in range(3)]
    long = [ClosedImpression(0, list(range(33)), {0: [33]})]
    items = [str(n) for n in range(33)]
    for flags, value in (
        (0, ScopeValue(items).take(lists)),
        (OVERFLOWED, ScopeValue(items, most_lists=2).take(lists)),
        (TRUNCATED, ScopeValue(items).take(long)),
        (CAPPED, ScopeValue(items, is_capped=True).take(lists)),
    ):
        assert read(value.head()).flags == flags
    deep = read(ScopeValue(items).take(long).head())
    assert pairs_of(deep, items)[-1] == [32, 33, 1, 1, 1, 1, 1]


def test_lists_of_thirty_two_use_every_bit():
    """The last rank of the longest list that has masks."""
    shown = np.random.default_rng(0).permutation(32).tolist()
    impressions = [ClosedImpression(0, shown, {0: [1, 32]})] * 2
    items = [str(n) for n in range(32)]
    scope = read(ScopeValue(items).take(impressions).head())
    assert scope.lists.masks.tolist() == [(1 << 31) + 1]
    (row,) = (r for r in pairs_of(scope, items) if r[1] == 32)
    assert row == [shown[-1], 32, 2, 2, 0, 0, 2]
