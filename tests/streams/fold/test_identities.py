"""The table of names against a dictionary."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.kernels.compilation import compiled
from streams.fold.identities import (
    ABSENT,
    LARGEST_LOAD,
    Identities,
    drop,
    no_identities,
    number_of,
    put,
    with_room,
)

Name = tuple[int, int]

SLOTS = 16

NAMES = st.tuples(
    # Few slots, at the end of the table too, so that chains meet and wrap.
    st.sampled_from((0, 1, 2, SLOTS - 2, SLOTS - 1, 5 * SLOTS - 1, 2**64 - 1)),
    st.integers(0, 2),
)
STEPS = st.lists(st.tuples(st.booleans(), NAMES, st.integers(-2, 9)), max_size=60)


@compiled
def find(table, first, second):
    """The number of a name, from outside of compiled loops."""
    return number_of(table, first, second)


@compiled
def give(table, first, second, number):
    """As `put`."""
    put(table, first, second, number)


@compiled
def remove(table, first, second):
    """As `drop`."""
    drop(table, first, second)


def found(table: Identities, name: Name) -> int:
    """The number of a name."""
    return int(find(table, np.uint64(name[0]), np.uint64(name[1])))


@given(STEPS)
def test_names_are_found_whatever_was_removed_between(
    steps: list[tuple[bool, Name, int]],
) -> None:
    """No chain is parted by a gap, and none leads to a name that is gone."""
    table, known, asked = no_identities(SLOTS), dict[Name, int](), set[Name]()
    for is_given, name, number in steps:
        first, second = np.uint64(name[0]), np.uint64(name[1])
        asked.add(name)
        if not is_given:
            remove(table, first, second)
            known.pop(name, None)
        elif len(known) < SLOTS - 1 or name in known:
            give(table, first, second, number)
            known[name] = number

        assert table.size[0] == len(known)
        for one in asked:
            assert found(table, one) == known.get(one, ABSENT)


def test_a_larger_table_knows_the_same_names() -> None:
    """And is larger before it is as full as is allowed."""
    table, names = no_identities(SLOTS), [(n * SLOTS, n) for n in range(40)]
    for n, (first, second) in enumerate(names):
        table = with_room(table, 1)
        give(table, np.uint64(first), np.uint64(second), n)

        assert n + 1 <= LARGEST_LOAD * len(table.numbers)

    assert [found(table, name) for name in names] == list(range(40))
    assert with_room(table, 0) is table
