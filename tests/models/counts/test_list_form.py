"""The list form at its limits; that it counts as defined is a law of scopes."""

import msgspec
import numpy as np
import pytest

from models.counts import list_form
from models.counts.cells import merge
from models.counts.definition import ClosedImpression, count
from models.counts.fixed_point import inverse_sums
from models.counts.placements import DETERMINISTIC, LOGGED, TAIL_SHUFFLE
from models.counts.scope_record import decode_scope
from models.counts.scope_summaries import summaries_by_group, summary_of_scope
from tests.models.counts.scope_values import ScopeValue

ITEMS = tuple(f"{number:03}" for number in range(40))


def read(value):
    """A scope that is nothing but its head."""
    return decode_scope(value, {}, {})


def head(lists, rows=()):
    """A scope in list form alone."""
    return read(msgspec.msgpack.encode([2, 0, 0, rows, lists, [], [], []]))


def random_log(n_lists, n_shown, rate, policies):
    """Lists with many clicks, in five groups."""
    rng = np.random.default_rng(n_lists)
    shown = [rng.permutation(len(ITEMS))[:n_shown].tolist() for _ in range(7)]
    return [
        ClosedImpression(
            int(rng.integers(5)),
            shown[rng.integers(7)],
            {0: (np.flatnonzero(rng.random(n_shown) < rate) + 1).tolist()},
            int(rng.choice(policies)),
        )
        for _ in range(n_lists)
    ]


def test_long_lists_with_many_clicks_count_as_defined(monkeypatch):
    """Click pairs are worked out block by block; blocks split entries here."""
    monkeypatch.setattr(list_form, "MASKS_AT_ONCE", 7)
    log = random_log(300, 32, 0.3, (DETERMINISTIC, TAIL_SHUFFLE))
    scope = read(ScopeValue(ITEMS).take(log).head())
    found = summaries_by_group(scope, ITEMS, {}, is_growing=False)
    defined = count(log, ITEMS)
    assert len(scope.lists.masks) > 200
    assert not len(scope.general.totals)
    assert {g: c.encode() for g, c in found.items()} == {
        g: c.encode() for g, c in defined.items()
    }


def test_a_short_list_beside_a_long_one_ends_where_it_ends():
    """Of no rank beyond is anything counted, and no item of another list is there."""
    log = [
        ClosedImpression(0, shown, {0: [1]}, DETERMINISTIC)
        for shown in ([3], [4, 5, 6])
    ]
    scope = read(ScopeValue(ITEMS).take(log).head())
    (found,) = summaries_by_group(scope, ITEMS, {}, is_growing=False).values()
    (defined,) = count(log, ITEMS).values()
    assert found.encode() == defined.encode()


def test_items_are_numbered_as_a_growing_set_came():
    """Summaries sort them, in all tables."""
    log = random_log(50, 5, 0.5, (DETERMINISTIC,))
    items = tuple(reversed(ITEMS))
    scope = read(ScopeValue(items, is_growing=True).take(log).head())
    pooled = summary_of_scope(scope, items, {}, is_growing=True)
    assert pooled.items == ITEMS
    assert (
        pooled.encode() == merge(count(log, items, is_growing=True).values()).encode()
    )


def test_inverse_squares_beyond_63_bits_are_exact():
    """Clipped clicks add 2^56 each; no number of them is rounded."""
    n = 2**25 + 3
    scope = head([0, [5], [0, n, [1, n]]], [b"r" * 16])
    matrices = {0: np.full((40, 1), 1e-9)}
    cell = summary_of_scope(scope, ITEMS, matrices, is_growing=False)
    assert cell.squared_inverses() == [n << 56]
    assert cell.sums[0, 3] == n << 36
    assert cell.total("clipped") == n
    clicks = np.array([12_345_678_901, 3])
    sums = inverse_sums(np.array([0.0123, 0.7]), clicks)
    for i, p in enumerate((0.0123, 0.7)):
        squared = (int(sums.squared_high[i]) << 40) + int(sums.squared_low[i])
        assert squared == int(clicks[i]) * round(2**16 / (p * p))


def test_sums_that_do_not_fit_are_refused():
    """Instead of wrapping."""
    n = 2**30
    scope = head([0, [5], [0, n, [1, n]]], [b"r" * 16])
    with pytest.raises(OverflowError, match=r"below 2\^62"):
        summary_of_scope(scope, ITEMS, {0: np.full((40, 1), 1e-9)}, is_growing=False)
    scope = head([-1 - DETERMINISTIC, [5], [0, 2**33, []]])
    with pytest.raises(OverflowError, match=r"below 2\^62"):
        summary_of_scope(scope, ITEMS, {}, is_growing=False)


def test_what_a_list_refers_to_must_be_there():
    """Its exposures, and its items."""
    scope = head([0, [5], [0, 1, []]], [b"r" * 16])
    with pytest.raises(ValueError, match="row 0 is missing"):
        summary_of_scope(scope, ITEMS, {}, is_growing=False)
    with pytest.raises(ValueError, match="got item number 5"):
        summary_of_scope(scope, ITEMS[:5], {0: np.ones((5, 1))}, is_growing=False)


def test_a_click_at_a_rank_that_a_row_does_not_have_has_no_inverse():
    """As it is defined."""
    row = np.full((40, 1), 0.5)
    one = ClosedImpression(0, [3, 4], {0: [1, 2]}, LOGGED, b"r" * 16, row)
    scope = read(ScopeValue(ITEMS).take([one]).head())
    (found,) = summaries_by_group(scope, ITEMS, {0: row}, is_growing=False).values()
    (defined,) = count([one], ITEMS).values()
    assert found.encode() == defined.encode()
    assert found.sums[:, 3].tolist() == [2 << 16]


def test_an_empty_scope_counts_nothing():
    """It has items all the same."""
    cell = summary_of_scope(head([]), ("b", "a"), {}, is_growing=False)
    assert cell.items == ("a", "b")
    assert not cell.totals.any()
    assert summaries_by_group(head([]), ("a",), {}, is_growing=False) == {}
