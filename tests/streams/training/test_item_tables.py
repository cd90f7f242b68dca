"""Tables of items by split: those of the estimator, whatever chunks columns come in."""

import tracemalloc
from collections import defaultdict

import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Unknown, asked_for
from models.estimators.intervention_aware import item_sums
from models.estimators.registry import ESTIMATORS, estimator_of
from rankstream.wire.events import DETERMINISTIC, Interaction
from streams.statistics import query_tables as module
from streams.statistics.columns import counted_scopes
from streams.statistics.logged_queries import QueryGatherer
from streams.statistics.reader import Statistics
from streams.training.item_tables import (
    APART,
    N_SPLITS,
    SELECTED_ON,
    TRAINED_ON,
    EstimatedValues,
    PooledSums,
    query_tables,
)
from tests.event_factory import impression
from tests.streams.training.counted_lists import GROUPS, lists, records_of

CURVE = BiasCurve(np.array([0.6, 0.35]), np.array([0.3, 0.1]))
SPLIT_OF = np.array([TRAINED_ON] * 4 + [APART] * 2 + [SELECTED_ON] * 2)


def statistics_of(seed, n=1_500, **how):
    """Of random lists."""
    log = [*lists(n, np.random.default_rng(seed), **how)]
    return Statistics(records_of(log))


def tables_of(chunks, how):
    """Tables of each query."""
    for found in how.gatherer().of(chunks):
        yield from query_tables(how, found)


def summed(chunks, unknown=Unknown.LEFT_OUT):
    """Sums of each query."""
    return [*tables_of(chunks, PooledSums(CURVE, SPLIT_OF, unknown))]


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
    """Query by query, groups and policies apart and then added up by split."""
    statistics = statistics_of(seed)
    found = summed(statistics.columns(), unknown)
    assert [each.query for each in found] == [*statistics.queries()]
    for each in found:
        apart = QueryGatherer(range(GROUPS), GROUPS, unknown)
        (query,) = apart.of(statistics.columns([each.query]))
        expected = item_sums(query.log, query.impressions, CURVE)
        places = [query.items.index(item) for item in each.items]
        assert sorted(query.items) == [*each.items]
        for split in range(N_SPLITS):
            groups = np.flatnonzero(split == SPLIT_OF)
            for table, by_group in zip(each.tables, expected, strict=True):
                of_groups = by_group[groups][:, places].sum(axis=0)
                assert table[split] == pytest.approx(of_groups, rel=1e-12, abs=1e-12)
    clicked = sum(each.tables[3].sum() for each in found)
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
            assert one.tables.tobytes() == other.tables.tobytes()
            assert one.n_impressions.tolist() == other.n_impressions.tolist()
            assert (one.query, one.sets, one.items) == (
                other.query, other.sets, other.items,
            )  # fmt: skip


def test_lists_are_counted_by_query_and_split():
    """Those of known policies; together with what is left out it is all of them."""
    statistics = statistics_of(5)
    counts: dict[tuple[str, int], int] = defaultdict(int)
    for chunk in counted_scopes(statistics.columns()):
        for scope, group, n, *_ in chunk.cells[chunk.has_policies()].tolist():
            counts[chunk.names[scope].query, int(SPLIT_OF[group])] += n
    found = summed(statistics.columns())
    for each in found:
        expected = [counts[each.query, split] for split in range(N_SPLITS)]
        assert each.n_impressions.tolist() == expected
    n_lists = sum(shown for shown, _ in statistics.queries().values())
    gatherer = PooledSums(CURVE, SPLIT_OF).gatherer()
    n_left_out = sum(each.n_left_out for each in gatherer.of(statistics.columns()))
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
        for place, each in enumerate(tables_of(chunks, PooledSums(CURVE, SPLIT_OF))):
            assert each.tables.tobytes() == whole[place].tables.tobytes()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert place == 19
    assert peaks[1] < peaks[0] / 2


@pytest.mark.parametrize("name", [*ESTIMATORS])
def test_values_are_those_of_any_estimator(name):
    """Of the groups of a split alone, raised by what trainings clip."""
    statistics, n_impressions = statistics_of(7), 900
    how = EstimatedValues(name, CURVE, SPLIT_OF, n_impressions)
    found = [*tables_of(statistics.columns(), how)]
    assert len(found) == len(statistics.queries())
    n_told = 0
    for each in found:
        for split in (TRAINED_ON, SELECTED_ON):
            own = [g if SPLIT_OF[g] == split else -1 for g in range(GROUPS)]
            gatherer = QueryGatherer(own, GROUPS, asked_for(name).unknown)
            (query,) = gatherer.of(statistics.columns([each.query]))
            places = [query.items.index(item) for item in each.items]
            tables = each.tables[:, split]
            for values, least in (
                (how.values(tables), 0.0),
                (how.raised(tables, n_impressions), 10.0 / 30.0),
            ):
                expected = estimator_of(name).estimator(
                    query.log, query.impressions, CURVE, least=least
                )
                np.testing.assert_allclose(
                    values, expected.values[places], rtol=1e-9, atol=1e-12
                )
                np.testing.assert_allclose(
                    how.support(tables), expected.support[places], rtol=1e-9
                )
                n_told += int(np.isfinite(values).sum())
            n_clicks = query.log.clicked[query.log.ranks <= CURVE.n_ranks].sum()
            assert how.clicked(tables).sum() == n_clicks
            assert each.n_impressions[split] == query.lists_of_queries().sum()
    assert n_told > 100
