"""Parts of what closed are the interactions that they name, whatever the bytes."""

import numpy as np
import pytest

from rankstream.wire.events import ClickMark, Interaction, encode_record
from rankstream.wire.topics import BATCH_BYTES
from streams.native.closed_impressions import (
    INTERACTIONS_AT_ONCE,
    Closed,
    closed_of,
)
from tests.event_factory import impression

INTERACTIONS = [
    Interaction(
        impression(f"i{number}", model="m" * (1 + number)),
        [ClickMark(1, number, "click")] * (number % 3),
    )
    for number in range(6)
]
"""Each of another length."""


@pytest.fixture
def closed() -> Closed:
    """All of them, with digests and extras that tell them apart."""
    found = closed_of(INTERACTIONS)
    models = np.arange(12, dtype=np.uint64).reshape(6, 2)
    return Closed(found.encoded, found.ends, models, np.arange(6) % 2 == 0)


@pytest.mark.parametrize("which", [[], [0], [5], [1, 3, 4], [4, 0, 2], range(6)])
def test_those_that_are_selected_come_in_that_order(
    closed: Closed, which: list[int]
) -> None:
    """Whole, with nothing between them, and with what is said of each."""
    numbers = np.array(which, np.int64)
    found = closed.select(numbers)

    assert found.interactions() == [INTERACTIONS[number] for number in which]
    assert len(found.encoded) == (found.ends[-1] if len(found) else 0)
    assert np.array_equal(found.models, closed.models[numbers])
    assert np.array_equal(found.extras, closed.extras[numbers])


@pytest.mark.parametrize("first", range(7))
def test_a_slice_is_that_of_the_list(closed: Closed, first: int) -> None:
    """To each end, and to none."""
    for last in range(first, 7):
        found = closed.slice(first, last)

        assert found.interactions() == INTERACTIONS[first:last]
        assert np.array_equal(found.models, closed.models[first:last])
        assert np.array_equal(found.extras, closed.extras[first:last])


@pytest.mark.parametrize(
    ("n", "n_bytes", "counts"),
    [
        (0, 0, []),
        (INTERACTIONS_AT_ONCE + 1, 0, [INTERACTIONS_AT_ONCE, 1]),
        (3, BATCH_BYTES // 2, [1, 1, 1]),
        (3, 2 * BATCH_BYTES, [1, 1, 1]),
        (3, BATCH_BYTES // 3, [2, 1]),
    ],
)
def test_parts_are_all_of_it_cut_between_interactions(
    n: int, n_bytes: int, counts: list[int]
) -> None:
    """Each fits a record, or is one interaction that is larger than a record."""
    one = Interaction(impression(features=b"f" * n_bytes), [])
    closed = closed_of([one] * n)
    found = list(closed.parts())

    assert [count for count, _ in found] == counts
    assert b"".join(packed for _, packed in found) == closed.encoded.tobytes()
    assert all(
        len(packed) == count * len(encode_record(one)) for count, packed in found
    )
