"""On real queries a bound is what users lose at most; without one they lose more."""

import pytest

from tests.falls_on_mq2008 import ARMS, BOUND, PLAIN, PROXIMAL, run_of, world
from tests.mq2008 import ABSENT, is_there


@pytest.mark.skipif(not is_there(), reason=ABSENT)
def test_users_lose_no_more_than_the_bound() -> None:
    """By true labels; `tests/long_run_largest_loss.py` has 25 runs of all queries."""
    runs = [run_of(seed, world(100), 250) for seed in (0, 2)]
    for run in runs:
        for name, (_, bound) in ARMS.items():
            found = run[name]
            assert found.lost <= found.largest_loss + 1e-9
            assert found.largest_loss <= bound
            assert found.step < 1.0 or found.largest_loss <= bound
    assert max(run[PLAIN].lost for run in runs) > 2.0 * BOUND
    assert max(run[PLAIN].largest_loss for run in runs) > 0.5
    # The loss clips what is gained, not what an item can fall.
    assert min(run[PROXIMAL].least_unclicked for run in runs) < 0.1
