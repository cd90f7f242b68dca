"""Laws of statistics: sums of cells form a commutative monoid, to the last bit."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from models.counts.cells import CellSummary, merge

counts = st.integers(0, 2**55)


@st.composite
def summaries(draw):
    """A summary over some of a few items."""
    items = tuple(draw(st.permutations("abcd"))[: draw(st.integers(1, 4))])
    numbers = st.integers(0, len(items) - 1)
    places = draw(st.sets(st.tuples(numbers, st.integers(1, 3)), max_size=6))
    pairs = [[*place, *(draw(counts) for _ in range(6))] for place in places]
    sums = [
        [item, *(draw(counts) for _ in range(3)), draw(st.integers(0, 2**40 - 1)), 1]
        for item in draw(st.sets(numbers))
    ]
    clicks = draw(
        st.sets(st.tuples(numbers, st.just(1), numbers, st.integers(2, 3)), max_size=3)
    )
    rewards = draw(
        st.sets(st.tuples(st.integers(1, 3), numbers, st.integers(1, 2)), max_size=3)
    )
    names = draw(st.sets(st.sampled_from([bytes([i]) * 16 for i in range(4)])))
    return merge(
        [
            CellSummary(
                items,
                np.array([draw(counts) for _ in range(6)], np.int64),
                np.array(pairs, np.int64).reshape(-1, 8),
                np.array(sums, np.int64).reshape(-1, 6),
                np.array([[*c, 1] for c in clicks], np.int64).reshape(-1, 5),
                tuple(names),
                np.array([draw(counts) for _ in names], np.int64),
                np.array([[*r, draw(counts)] for r in rewards], np.int64).reshape(
                    -1, 4
                ),
            )
        ]
    )


@given(summaries(), summaries())
def test_merging_is_commutative_to_the_last_bit(one, other):
    """merge(a, b) and merge(b, a) have the same bytes."""
    assert merge([one, other]).encode() == merge([other, one]).encode()


@given(summaries(), summaries(), summaries())
def test_merging_is_associative_to_the_last_bit(one, two, three):
    """Any grouping of sums has the same bytes."""
    together = merge([one, two, three]).encode()
    assert merge([merge([one, two]), three]).encode() == together
    assert merge([one, merge([three, two])]).encode() == together


@given(summaries())
def test_merging_one_changes_nothing(one):
    """A merged summary is its own sum."""
    assert merge([one]).encode() == one.encode()


@given(summaries(), summaries())
def test_totals_and_pairs_add(one, other):
    """Every counter of a sum is the sum of the counters."""
    both = merge([one, other])
    assert np.array_equal(both.totals, one.totals + other.totals)
    for column in ("shown", "clicked", "exposure"):
        parts = int(one.column(column).sum()) + int(other.column(column).sum())
        assert int(both.column(column).sum()) == parts
    rewards = int(one.rewards[:, 3].sum()) + int(other.rewards[:, 3].sum())
    assert int(both.rewards[:, 3].sum()) == rewards
