"""Discounts of ranks, and of ranks that items are apart."""

import numpy as np
import pytest

from models.losses.discounts import discounts, pair_discounts


@pytest.mark.parametrize("cutoff", [1, 3, 5, 8])
def test_ranks_beyond_the_cutoff_weigh_nothing(cutoff: int) -> None:
    """Those above weigh what they do without one."""
    found, whole = discounts(5, cutoff), discounts(5)

    assert found[:cutoff].tolist() == whole[:cutoff].tolist()
    assert found[cutoff:].tolist() == [0.0] * max(5 - cutoff, 0)
    assert (np.diff(whole) < 0.0).all()


@pytest.mark.parametrize("cutoff", [None, 1, 3])
def test_falls_from_rank_to_rank_add_up(cutoff: int | None) -> None:
    """To what the first rank weighs above a lower one."""
    ranks = discounts(6, cutoff)

    assert np.cumsum(pair_discounts(6, cutoff)) == pytest.approx(ranks[0] - ranks)
