"""Columns of statistics: what the reader of single cells finds, to the last bit."""

import tempfile
from collections import defaultdict

import numpy as np
import pytest

from models.counts.scope_record import CONVERTED
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.schemas import SchemaRefused
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics import columns, keys, value_spool
from streams.statistics.reader import Statistics
from streams.statistics.value_spool import ValueSpool
from tests.session.cases import n_cases
from tests.streams.fold.scope_schedules import (
    ACTIONS,
    KEEP_MS,
    N_GROUPS,
    draw_interaction,
)

SEEDS = range(8)


def drawn_records(seed, n=400):
    """What the fold writes of drawn impressions of all policies."""
    rng = np.random.default_rng(seed)
    kept = StatisticsSettings(groups=N_GROUPS, actions=ACTIONS)
    limits = LimitSettings(lists=4, exposure_rows=3, candidate_sets=3)
    fold = StatisticsFold(limits, kept, KEEP_MS, 0)
    found: dict[bytes, bytes | None] = {}
    for _ in range(3):
        some = [draw_interaction(rng, int(rng.integers(3_000))) for _ in range(n // 3)]
        fold.take(closed_of(some))
        found |= {key: value for _, key, value in fold.changes({})}
    return [(key, value) for key, value in found.items() if value]


def cell_by_cell(statistics, queries=(None,)):
    """Rows by scope, group, item and rank; classes of which is what, and expected."""
    rows = {}
    classes = statistics.counted[0].classes
    reward = classes.index(statistics.counted[0].reward)
    for name in (name for query in queries for name in statistics.scopes(query)):
        is_converted = statistics.scope(name).flags & CONVERTED
        for group, cell in statistics.cells(name).items():
            expected = {}
            if not is_converted:
                expected = statistics.exposures(*name[:3], cell, name.era)
            rewards: dict[tuple[str, int], list[int]] = defaultdict(
                lambda: [0] * len(classes)
            )
            for which, item, rank, n in cell.rewards.tolist():
                rewards[cell.items[item], rank][which] = n
            counts = {
                (cell.items[item], rank): (shown, clicked)
                for item, rank, shown, clicked in cell.pairs[:, :4].tolist()
            }
            for place in counts.keys() | expected.keys() | rewards.keys():
                shown, clicked = counts.get(place, (0, 0))
                by_class = rewards[place]
                by_class[reward] = clicked
                sums = shown, tuple(by_class), expected.get(place, 0.0)
                rows[name, group, *place] = sums
    return rows


def by_columns(statistics, **which):
    """The same of columns; each row must come once, and in order."""
    rows = {}
    for chunk in statistics.columns(**which):
        for i in range(len(chunk.rank)):
            scope = chunk.scope[i]
            item = chunk.items[scope][chunk.item[i]]
            place = chunk.names[scope], int(chunk.group[i]), item, int(chunk.rank[i])
            assert place not in rows
            by_class = tuple(chunk.by_class[:, i].tolist())
            rows[place] = int(chunk.shown[i]), by_class, float(chunk.expected[i])
    assert list(rows) == sorted(rows)
    return rows


@pytest.mark.parametrize("seed", SEEDS)
def test_columns_are_the_cells_to_the_last_bit(seed):
    """All policies, growing sets, pieces, limits, classes of rewards."""
    statistics = Statistics(drawn_records(seed))
    assert by_columns(statistics) == cell_by_cell(statistics)


@pytest.mark.parametrize("seed", SEEDS[:3])
def test_columns_do_not_depend_on_where_chunks_end(seed, monkeypatch):
    """Nor on whether rows are found in a table or by sorting."""
    records = drawn_records(seed)
    whole = by_columns(Statistics(records))
    monkeypatch.setattr(columns, "PLACES_AT_ONCE", 3)
    monkeypatch.setattr(columns, "LARGEST_TABLE", 0)
    monkeypatch.setattr("streams.statistics.scopes.BATCH_BYTES", 100)
    assert by_columns(Statistics(records)) == whole


def test_chosen_eras_and_queries_alone_are_read():
    """What is not asked for is not in the columns."""
    statistics = Statistics(drawn_records(1))
    rows = by_columns(statistics)
    era = max(name.era for name, *_ in rows)
    query = min(name.query for name, *_ in rows)
    found = by_columns(
        statistics, queries=[query], is_wanted=lambda name: name.era == era
    )
    wanted = {
        place: row
        for place, row in rows.items()
        if (place[0].query, place[0].era) == (query, era)
    }
    assert found == wanted
    assert found


def test_totals_of_cells_are_those_of_the_cells():
    """But clipped clicks, of which lists say nothing here."""
    statistics = Statistics(drawn_records(2))
    found = {}
    for chunk in statistics.columns():
        for scope, group, *totals in chunk.cells.tolist():
            found[chunk.names[scope], group] = totals[:5]
    assert found == {
        (name, group): cell.totals.tolist()[:5]
        for name in statistics.scopes()
        for group, cell in statistics.cells(name).items()
    }


def test_values_in_a_file_are_those_in_memory(monkeypatch):
    """The last of each key, with tombstones, in parts, wherever they lie."""
    records = drawn_records(3)
    whole = by_columns(Statistics(records))
    opened: list[int] = []
    monkeypatch.setattr(value_spool, "MEMORY_BYTES", 500)
    monkeypatch.setattr(value_spool, "WRITE_BYTES", 300)
    monkeypatch.setattr(ValueSpool.__init__, "__defaults__", (500,))
    nameless = tempfile.TemporaryFile

    def counting(**options):
        opened.append(1)
        return nameless(**options)

    monkeypatch.setattr(tempfile, "TemporaryFile", counting)
    monkeypatch.setattr("streams.statistics.index.MOST_HELD", 0)
    gone = keys.scope_key(keys.ScopeName("gone", b"s" * 16, "m", 1))
    before = [(key, value[:-1]) for key, value in records]
    some = [(gone, records[0][1]), *before, *records, (gone, None)]
    assert by_columns(Statistics(some)) == whole
    assert opened


def test_a_full_folder_is_told_of(monkeypatch):
    """With its name, and what to do."""

    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    spool = ValueSpool(10)
    with pytest.raises(RuntimeError, match="No space left on device: name another"):
        spool.add("q", b"key", b"value and more")


def spoilt(records, kind, change):
    """The records with one of a kind changed."""
    number = next(i for i, one in enumerate(records) if keys.decode(one[0])[0] == kind)
    key, value = records[number]
    changed = keys.encode(change(keys.decode(value)))
    return [*records[:number], (key, changed), *records[number + 1 :]]


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("scope", lambda v: v[:-1]),
        ("scope", lambda v: [*v[:3], [b"short"], *v[4:]]),
        ("scope", lambda v: [*v[:7], [3, 0, 0, 1]]),
        ("scope", lambda v: [*v[:6], [1, 1], v[7]]),
        ("scope", lambda v: [*v[:6], [*v[6], 3], v[7]]),
        ("scope", lambda v: [*v[:5], [0, "cell"], *v[6:]]),
        ("scope", lambda v: [*v[:4], [-2, [0], [0, 1, []]], *v[5:]]),
        ("scope", lambda v: [*v[:4], [-3, [0, 99], [0, 1, []]], *v[5:]]),
        ("scope", lambda v: [*v[:4], [-3, [0], [0, 1, [2, 1]]], *v[5:]]),
        ("scope", lambda v: [*v[:4], [-3, [0], [0, 1, [1, 2]]], *v[5:]]),
        ("scope", lambda v: [*v[:4], [-3, [0], [1, 1, [], 0, 1, []]], *v[5:]]),
        ("set", lambda v: [v[0], v[1][:0]]),
    ],
)
def test_a_spoilt_record_is_refused_in_words(kind, change):
    """As the reader of one scope refuses it, with the scope."""
    records = drawn_records(4)
    with pytest.raises(ValueError, match=r"scope.*at scope ScopeName"):
        list(Statistics(spoilt(records, kind, change)).columns())


@pytest.mark.parametrize("seed", range(n_cases(2, 4)))
def test_a_byte_that_changed_is_read_as_the_reader_of_cells_reads_it(seed):
    """Or refused: C and Python take the same records, and no other exception comes."""
    rng = np.random.default_rng(seed)
    records = drawn_records(seed, 60)
    kinds = ("scope", "piece", "lists")
    where = [i for i, one in enumerate(records) if keys.decode(one[0])[0] in kinds]
    n_refused = n_read = 0
    for _ in range(60):
        number = int(rng.choice(where))
        key, value = records[number]
        place = int(rng.integers(1, len(value)))
        other = int(rng.choice((rng.integers(256), (value[place] + 1) % 256)))
        changed = value[:place] + bytes([other]) + value[place + 1 :]
        some = [*records[:number], (key, changed), *records[number + 1 :]]
        query = keys.decode(key)[1]
        try:
            expected = cell_by_cell(Statistics(some), [query])
        except IndexError:  # a class that has no name; columns have a number for it
            continue
        except (ValueError, OverflowError, SchemaRefused):
            n_refused += 1
            with pytest.raises((ValueError, OverflowError, SchemaRefused)):
                by_columns(Statistics(some), queries=[query])
        else:
            n_read += 1
            assert by_columns(Statistics(some), queries=[query]) == expected
    assert n_refused
    assert n_read
