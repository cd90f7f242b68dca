"""Pairs of scopes that are followed: those of the definition, in whatever form."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from models.bias.examination import estimate_examination
from models.counts.cells import merge
from models.counts.definition import ClosedImpression, count
from producers.topic_reader import Record
from rankstream.operations.monitoring.position_bias import (
    MOST_SCOPES,
    PositionBias,
    curve_of,
)
from streams.statistics import keys
from streams.statistics.newest_scopes import NewestScopes
from streams.statistics.reader import Statistics
from tests.models.counts.closed_impressions import ITEMS as MANY
from tests.models.counts.closed_impressions import logs
from tests.models.counts.scope_values import ScopeValue
from tests.streams.statistics.statistics_records import (
    NAME,
    counted_record,
    scope_records,
)
from tests.streams.statistics.test_reader import (
    ITEMS,
    ROWS,
    of_era,
    value_of,
)

FORMS: list[dict[str, Any]] = [
    {"most_lists": 0, "pieces": (3, 4)},
    {"piece_lists": 2},
    {"most_lists": 1, "pieces": (3,), "piece_lists": 1},
]


def known(follow):
    """Pairs by scope."""
    return dict(follow.pairs())


def added(pairs):
    """Rows of an item and a rank that were shown, put together."""
    sums: dict[tuple[int, int], tuple[int, int]] = {}
    for item, rank, shown, clicked in pairs[pairs[:, 2] > 0].tolist():
        before = sums.get((item, rank), (0, 0))
        sums[item, rank] = before[0] + shown, before[1] + clicked
    return sums


@given(
    logs,
    st.fixed_dictionaries(
        {
            "most_lists": st.sampled_from((0, 1, 2, 64)),
            "pieces": st.sampled_from(((), (1,), (0, 1, 2, 3))),
            "piece_lists": st.sampled_from((0, 1, 2)),
        }
    ),
)
def test_pairs_are_those_of_the_definition(log, form):
    """All groups together, also of scopes in pieces."""
    follow = NewestScopes()
    value = ScopeValue(MANY, **form).take(log)
    for key, packed in scope_records(NAME, value, {}):
        follow.take(key, packed)
    merged = merge(count(log, MANY).values()) if log else None
    rows: Any = [] if merged is None else merged.pairs[merged.column("shown") > 0, :4]
    expected = {(item, rank): (n, clicks) for item, rank, n, clicks in map(tuple, rows)}
    assert added(known(follow)[NAME]) == expected


@pytest.mark.parametrize("how", FORMS)
def test_pairs_follow_the_records_of_a_scope(how):
    """Head and pieces, in any order; whatever is not whole is left out."""
    records = dict(scope_records(NAME, value_of(**how), ROWS))
    head, *pieces = list(records)[:3]
    follow = NewestScopes()
    for key in (pieces[0], head, pieces[1]):
        assert not known(follow)
        assert follow.take(key, records[key]) == NAME
    assert known(follow)[NAME][:, 2:].sum(axis=0).tolist() == [7, 4]
    for key in list(records)[3:]:
        assert follow.take(key, records[key]) is None
    follow.take(pieces[0], None)
    assert not known(follow)
    follow.take(pieces[0], b"\xc1\x02\x00\x00\x00")
    assert not known(follow)
    assert not follow.refused
    for key in (head, *pieces):
        follow.take(key, None)
    assert len(follow) == 0


def test_only_the_newest_scopes_are_followed():
    """A scope that changes again is new."""
    follow = NewestScopes(2)
    for era in (1, 2, 1, 3):
        follow.take(keys.scope_key(of_era(era)), value_of().head())
    assert list(known(follow)) == [of_era(1), of_era(3)]


def test_a_piece_that_no_head_names_is_not_counted():
    """As readers that are not strict have it; one that is spoilt leaves others be."""
    how = FORMS[0]
    records = dict(scope_records(NAME, value_of(**how), ROWS))
    head, piece, *_ = list(records)
    follow = NewestScopes()
    follow.take(head, value_of().head())
    follow.take(piece, records[piece])
    assert known(follow)[NAME][:, 2:].sum(axis=0).tolist() == [7, 4]
    other = keys.scope_key(of_era(9))
    follow.take(other, value_of().head()[:-1])
    assert list(known(follow)) == [NAME]
    assert "of a scope of statistics must be well formed; at scope" in follow.refused
    follow.take(other, value_of().head())
    assert list(known(follow)) == [NAME, of_era(9)]


def test_what_the_monitor_shows_is_that_of_the_scopes_one_by_one():
    """Bit for bit: sets by number in the order of their scopes, eras together."""
    rng = np.random.default_rng(5)
    eras = NAME.era, NAME.era + 1
    names = [NAME._replace(era=era, query=query) for query in "qr" for era in eras]
    records, tables = [counted_record()], []
    numbers: dict[Any, int] = {}
    for name, how in zip(names, (*FORMS, {}), strict=True):
        log = []
        for group in range(600):
            shown = rng.permutation(3).tolist()
            liked = rng.random(3) < np.array([0.8, 0.5, 0.3]) / np.arange(1, 4)
            log.append(
                ClosedImpression(
                    group % 5, shown, {0: (np.flatnonzero(liked) + 1).tolist()}
                )
            )
        records += scope_records(name, ScopeValue(ITEMS, **how).take(log), {})
    statistics = Statistics(records)
    for name in names:
        pairs = statistics.summary(name).pairs[:, :4].copy()
        place = name.query, name.candidate_set
        pairs[:, 0] += numbers.setdefault(place, len(numbers)) << 32
        tables.append(pairs)
    curve = estimate_examination(*np.concatenate(tables).T, n_ranks=10)
    bias = PositionBias()
    bias.take(Record(0, i, 0, *pair, ()) for i, pair in enumerate(records))
    assert bias.estimate() == curve_of(curve) != []
    assert len(names) < MOST_SCOPES
