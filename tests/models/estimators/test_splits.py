"""Groups and queries on the sides of a split."""

import pytest

from models.estimators.splits import Shares, split_groups


@pytest.mark.parametrize("n_groups", [6, 7, 10, 20, 64, 256])
def test_each_group_is_in_one_split_and_none_is_too_small(n_groups):
    """And each split is as large as its share, within what rounding leaves."""
    splits = split_groups(n_groups)
    parts = splits.training, splits.validation, splits.selection
    assert sorted(group for part in parts for group in part) == list(range(n_groups))
    assert min(map(len, parts)) >= 2
    if n_groups >= 20:
        for part, share in zip(parts, Shares()[:3], strict=True):
            assert abs(len(part) - share * n_groups) < 1


def test_too_few_groups_are_refused():
    """Two in each of three is the least."""
    with pytest.raises(ValueError, match=r"at least 6 .*; got 5: raise `statistics"):
        split_groups(5)


@pytest.mark.parametrize("shares", [(0.7, 0.3, 0.0), (0.5, 0.5, 0.5), (1.2, -0.3, 0.1)])
def test_shares_that_are_no_split_are_refused(shares):
    """Positive, with a sum of 1."""
    with pytest.raises(ValueError, match="with a sum of 1; got"):
        split_groups(20, Shares(*shares))


def test_queries_are_held_out_by_their_name():
    """A fifth of them, whoever asks, and no more where the share is 0."""
    splits = split_groups(20)
    held_out = [splits.is_held_out(f"query {i}") for i in range(10_000)]
    assert abs(sum(held_out) - 2_000) < 160
    assert held_out == [
        split_groups(64).is_held_out(f"query {i}") for i in range(10_000)
    ]
    assert not split_groups(20, Shares(held_out=0.0)).is_held_out("query 1")
    with pytest.raises(ValueError, match=r"in \[0, 1\); got 1"):
        split_groups(20, Shares(held_out=1.0))
