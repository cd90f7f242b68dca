"""Which sets are kept, and why lists of scopes are left out."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from models.counts.scope_record import CAPPED, CONVERTED, OVERFLOWED, TRUNCATED
from streams.decisions.closed_sets import ClosedSets
from streams.decisions.refused import Refused
from streams.decisions.rewrite import newest_first


def test_of_one_era_the_sets_with_more_lists_stay() -> None:
    """A newer era goes before; of equal ones the first stays; numbers rise."""
    eras, lists = np.array([2, 3, 2, 3, 2]), np.array([9, 1, 5, 4, 9])
    kept = [newest_first(eras, lists, most).tolist() for most in range(6)]
    assert kept == [[], [3], [1, 3], [0, 1, 3], [0, 1, 3, 4], [0, 1, 2, 3, 4]]


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (CAPPED, Refused.CAPPED),
        (CAPPED | OVERFLOWED | TRUNCATED, Refused.CAPPED),
        (CAPPED | CONVERTED, Refused.CAPPED),
        (CONVERTED, Refused.CONVERTED),
        (OVERFLOWED | TRUNCATED, None),
    ],
)
def test_lists_are_left_out_by_the_first_reason(
    flags: int, why: Refused | None
) -> None:
    """Whatever else is said of their scope."""
    name = SimpleNamespace(query="shoes", candidate_set=b"set", is_growing=False)
    batch: Any = SimpleNamespace(names=[name], heads=np.array([[flags]]))
    by_id: Any = SimpleNamespace(items=[("a", "b")])
    closed, lists = ClosedSets(), np.array([7])
    numbers = closed.take(batch, by_id)
    closed.refuse(batch, numbers, lists)

    assert numbers.tolist() == ([0] if why is None else [-1])
    assert closed.refused() == ({} if why is None else {why: 7})
