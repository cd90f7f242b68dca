"""Sums of items by split: those of the estimator, whatever chunks columns come in."""

import tracemalloc
from collections import defaultdict

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown
from rankstream.operations.relevance import GatheredQuery
from rankstream.wire.events import DETERMINISTIC, Interaction
from streams.statistics.reader import Statistics
from streams.training import query_sums as module
from streams.training.query_sums import (
    APART,
    N_SPLITS,
    SELECTED_ON,
    SUMMED,
    TRAINED_ON,
    QuerySummation,
)
from streams.training.used_cells import counted_scopes, used_cells
from tests.event_factory import impression
from tests.streams.training.counted_lists import GROUPS, lists, records_of

CURVE = BiasCurve(np.array([0.6, 0.35]), np.array([0.3, 0.1]))
SPLIT_OF = np.array([TRAINED_ON] * 4 + [APART] * 2 + [SELECTED_ON] * 2)


def statistics_of(seed, n=1_500, **how):
    """Of random lists."""
    log = [*lists(n, np.random.default_rng(seed), **how)]
    return Statistics(records_of(log))


def summed(chunks, curve=CURVE):
    """Sums of each query."""
    return [*QuerySummation(curve, SPLIT_OF).of(chunks)]


def cut(chunks, rng):
    """The same columns in other chunks: cut between any two cells."""
    for chunk in counted_scopes(chunks):
        first = 0
        while first < len(chunk.cells):
            end = first + int(rng.integers(1, 40))
            cells = chunk.cells[first:end]
            key = chunk.scope * 1_000 + chunk.group
            wanted = cells[:, 0] * 1_000 + cells[:, 1]
            rows = np.flatnonzero(np.isin(key, wanted))
            columns = {
                name: getattr(chunk, name)[rows]
                for name in ("scope", "group", "item", "rank", "shown", "expected")
            }
            by_class = chunk.by_class[:, rows]
            yield chunk._replace(cells=cells, by_class=by_class, **columns)
            first = end


@pytest.mark.parametrize(
    ("seed", "unknown"), [(1, Unknown.LEFT_OUT), (2, Unknown.AS_SHOWN)]
)
def test_sums_are_those_of_the_estimator(seed, unknown):
    """Query by query, as relevance gathers them, groups added up by split."""
    statistics = statistics_of(seed)
    found = [*QuerySummation(CURVE, SPLIT_OF, unknown).of(statistics.columns())]
    assert [each.query for each in found] == [*statistics.queries()]
    left_out = 0
    for each in found:
        gathered = GatheredQuery(GROUPS, unknown=unknown)
        for chunk in statistics.columns([each.query]):
            gathered.take(chunk)
        expected = gathered.sums(CURVE)
        places = [gathered.numbers[item] for item in each.items]
        assert sorted(gathered.numbers) == [*each.items]
        for split in range(N_SPLITS):
            groups = np.flatnonzero(split == SPLIT_OF)
            for table, name in zip(each.sums, SUMMED, strict=True):
                of_groups = getattr(expected, name)[groups][:, places].sum(axis=0)
                assert table[split] == pytest.approx(of_groups, rel=1e-12, abs=1e-12)
        assert each.n_left_out == gathered.n_left_out
        left_out += each.n_left_out
    assert (left_out > 0) == (unknown is Unknown.LEFT_OUT)
    clicked = sum(each.sums[3].sum() for each in found)
    assert clicked > 300
    assert all(len(each.sets) > 1 for each in found)


@pytest.mark.parametrize("seed", [3, 4])
def test_chunks_do_not_change_a_bit(seed):
    """However columns are cut, between cells of one scope too."""
    statistics = statistics_of(seed)
    whole = summed(statistics.columns())
    for again in range(3):
        rng = np.random.default_rng(again)
        pieces = summed(cut(statistics.columns(), rng))
        for one, other in zip(whole, pieces, strict=True):
            assert one.sums.tobytes() == other.sums.tobytes()
            assert one.n_impressions.tolist() == other.n_impressions.tolist()
            assert (one.query, one.sets, one.items, one.n_left_out) == (
                other.query, other.sets, other.items, other.n_left_out,
            )  # fmt: skip


def test_lists_are_counted_by_query_and_split():
    """Those of known policies; together with what is left out it is all of them."""
    statistics = statistics_of(5)
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for chunk in counted_scopes(statistics.columns()):
        for scope, group, n, *_ in chunk.cells[used_cells(chunk)].tolist():
            counts[chunk.names[scope].query, int(SPLIT_OF[group])] += n
    found = summed(statistics.columns())
    for each in found:
        expected = [counts[each.query, split] for split in range(N_SPLITS)]
        assert each.n_impressions.tolist() == expected
    n_lists = sum(shown for shown, _ in statistics.queries().values())
    n_left_out = sum(each.n_left_out for each in found)
    assert sum(counts.values()) + n_left_out == n_lists == 1_500


def test_nothing_is_made_of_nothing():
    """As of a model without lists."""
    assert summed([]) == []


def test_large_sets_take_bounded_memory(monkeypatch):
    """Items that were hardly ever shown are those of a few scopes at a time."""
    rng, n_items = np.random.default_rng(4), 2_000
    items = sorted(f"item {number}" for number in range(n_items))
    log = [
        Interaction(
            impression(
                items=items,
                shown=items[:2],
                query_id=f"q{number % 20:02}",
                unit=int(rng.integers(GROUPS)),
                policy=DETERMINISTIC,
            ),
            [],
        )
        for number in range(400)
    ]
    statistics = Statistics(records_of(log))
    chunks = [*statistics.columns()]
    assert len(chunks) == 1
    whole = summed(chunks)
    peaks = []
    for most in (1 << 30, 4 * GROUPS * n_items):
        monkeypatch.setattr(module, "PAIRS_AT_ONCE", most)
        tracemalloc.start()
        for place, each in enumerate(QuerySummation(CURVE, SPLIT_OF).of(chunks)):
            assert each.sums.tobytes() == whole[place].sums.tobytes()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert place == 19
    assert peaks[1] < peaks[0] / 3
