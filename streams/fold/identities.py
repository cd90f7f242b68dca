"""A table of 128-bit names and the number of each, for compiled loops.

Names are digests, so that their own bits say where a search begins.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from models.counts.count_tables import Int32
from models.kernels.compilation import Number, compiled, inlined

ABSENT = -(1 << 31)
"""No number: the name is not in the table."""

LARGEST_LOAD = 0.6

Names = NDArray[np.uint64]


class Identities(NamedTuple):
    """Open addressing with linear probing; `names` [slots, 2], `size` [1] their number.

    A slot is free where `numbers` [slots] is ABSENT. 24 bytes a slot.
    """

    names: Names
    numbers: Int32
    size: NDArray[np.int64]


def no_identities(n_slots: int = 256) -> Identities:
    """An empty table."""
    return Identities(
        np.zeros((n_slots, 2), np.uint64),
        np.full(n_slots, ABSENT, np.int32),
        np.zeros(1, np.int64),
    )


@inlined
def slot_in(table: Identities, first: Number, second: Number) -> Number:
    """The slot of a name, or the free one that it would take."""
    mask = np.uint64(table.numbers.shape[0] - 1)
    slot = np.uint64(first) & mask
    while table.numbers[slot] != ABSENT:
        if table.names[slot, 0] == first and table.names[slot, 1] == second:
            break
        slot = (slot + np.uint64(1)) & mask
    return slot


@inlined
def number_of(table: Identities, first: Number, second: Number) -> Number:
    """The number of a name, or ABSENT."""
    return table.numbers[slot_in(table, first, second)]


@inlined
def put_at(
    table: Identities, slot: Number, first: Number, second: Number, number: Number
) -> None:
    """Give a name its number at the slot where a search for it ended."""
    if table.numbers[slot] == ABSENT:
        table.names[slot, 0] = first
        table.names[slot, 1] = second
        table.size[0] += 1
    table.numbers[slot] = number


@inlined
def put(table: Identities, first: Number, second: Number, number: Number) -> None:
    """Give a name a number; the table must have room."""
    put_at(table, slot_in(table, first, second), first, second, number)


@inlined
def drop(table: Identities, first: Number, second: Number) -> None:
    """Remove a name; those behind it move up, so that no gap parts a chain."""
    names, numbers = table.names, table.numbers
    mask = np.uint64(numbers.shape[0] - 1)
    gap = slot_in(table, first, second)
    if numbers[gap] == ABSENT:
        return
    table.size[0] -= 1
    slot = (gap + np.uint64(1)) & mask
    while numbers[slot] != ABSENT:
        home = names[slot, 0] & mask
        if ((slot - home) & mask) >= ((slot - gap) & mask):
            names[gap, 0], names[gap, 1] = names[slot, 0], names[slot, 1]
            numbers[gap] = numbers[slot]
            gap = slot
        slot = (slot + np.uint64(1)) & mask
    numbers[gap] = ABSENT


@compiled
def _move(table: Identities, larger: Identities) -> None:
    for slot in range(table.numbers.shape[0]):
        if table.numbers[slot] != ABSENT:
            put(larger, table.names[slot, 0], table.names[slot, 1], table.numbers[slot])


def with_room(table: Identities, n_more: int) -> Identities:
    """The table itself if it takes so many more names, else a larger one."""
    n_slots = len(table.numbers)
    n_needed = int(table.size[0]) + n_more
    if n_needed <= LARGEST_LOAD * n_slots:
        return table
    while n_needed > LARGEST_LOAD / 2 * n_slots:
        n_slots *= 2
    larger = no_identities(n_slots)
    _move(table, larger)
    return larger
