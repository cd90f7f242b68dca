"""What is gathered of a log: that of a plain recount, impression by impression."""

import math
from collections import Counter, defaultdict
from typing import Any

import msgspec
import numpy as np
import pytest

from models.counts.definition import ClosedImpression, placement_of
from models.estimators.choice import Unknown
from models.estimators.click_log import check_places
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    Interaction,
)
from streams.estimation.logged_sets import sets_of
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.logged_queries import (
    CELLS_AT_ONCE,
    LoggedQueries,
    QueryGatherer,
)
from streams.statistics.reader import Statistics
from tests.event_factory import impression
from tests.placed_list import placement_probabilities
from tests.streams.training.counted_lists import GROUPS, KEEP_MS, lists
from tests.streams.training.test_item_tables import cut

EVERYBODY = tuple(range(GROUPS))
SETS = LimitSettings(candidate_sets=1_000)


def counted(log: list[Interaction]) -> Statistics:
    """What the fold counts, no set beyond limits."""
    fold = StatisticsFold(SETS, StatisticsSettings(groups=GROUPS), KEEP_MS, 0)
    fold.take(closed_of(log))
    return Statistics((key, value) for _, key, value in fold.changes({}))


def marked(statistics: Statistics):
    """Its columns."""
    return statistics.columns(marks_mixed=True)


def gathering(groups, unknown, cells_at_once=CELLS_AT_ONCE):
    """What gathers lists of some groups."""
    group_of = [group if group in groups else -1 for group in range(GROUPS)]
    return QueryGatherer(group_of, GROUPS, unknown, cells_at_once=cells_at_once)


def scope_of(one: Interaction) -> tuple[Any, ...]:
    """Query, candidates or nothing, intervention and era."""
    own = one.impression
    candidates = b"" if own.is_open_set else own.candidates
    return own.query_id, candidates, own.intervention, own.at_ms // KEEP_MS


def placed(one: Interaction, items: list[str], shown: list[int]) -> Any:
    """P(item at rank) of one list; None where nobody knows it."""
    own, matrix = one.impression, None
    if own.policy == PLACKETT_LUCE:
        scores = np.frombuffer(own.scores, "<f4").astype(float)
        matrix = placement_probabilities(scores, len(shown))
    if own.policy == LOGGED:
        matrix = np.full((len(items), len(shown)), np.float32(1.0 / len(items)))
    closed = ClosedImpression(0, shown, {}, own.policy, b"row", matrix)
    return placement_of(closed, len(items), is_growing=own.is_open_set)


def recounted(log: list[Interaction], groups, unknown: Unknown):
    """Places and impressions by name, and lists by set, from each list by itself."""
    cells = {
        (scope_of(one), one.impression.unit % GROUPS)
        for one in log
        if one.impression.policy == UNKNOWN
    }
    places: dict[Any, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    impressions: Counter[Any] = Counter()
    sets: Counter[Any] = Counter()
    n_left_out = 0
    # A set that grows has what was shown, under whatever intervention.
    known: dict[Any, set[str]] = defaultdict(set)
    for one in log:
        if not one.impression.is_open_set:
            continue
        items = msgspec.msgpack.decode(one.impression.candidates)
        rows = np.frombuffer(one.impression.shown, "<u2").tolist()
        known[scope_of(one)[::3]] |= {items[row] for row in rows}
    for one in log:
        own, group = one.impression, one.impression.unit % GROUPS
        if group not in groups:
            continue
        is_unknown = (scope_of(one), group) in cells
        if unknown is Unknown.JOINED:
            # Short lists are kept one by one, so that each is told by itself.
            is_unknown = own.policy == UNKNOWN
        if is_unknown and unknown is Unknown.LEFT_OUT:
            n_left_out += 1
            continue
        items = msgspec.msgpack.decode(own.candidates)
        shown = np.frombuffer(own.shown, "<u2").tolist()
        name = own.query_id, group, own.intervention
        sets[own.query_id, scope_of(one)[1], group] += 1
        is_sure = is_unknown and unknown in (Unknown.AS_SHOWN, Unknown.JOINED)
        is_own = own.is_open_set or is_sure
        for item in [items[x] for x in shown] if is_own else items:
            impressions[*name, item] += 1
        clicked = {mark.position for mark in one.clicks}
        for rank, row in enumerate(shown, 1):
            place = places[*name, items[row], rank]
            place[0] += 1
            place[1] += rank in clicked
        if is_unknown:
            for rank, row in enumerate(shown, 1):
                places[*name, items[row], rank][2] += 1.0 if is_sure else math.nan
            continue
        matrix = placed(one, items, shown)
        for row, rank in np.argwhere(matrix > 0).tolist():
            if not own.is_open_set or items[row] in known[scope_of(one)[::3]]:
                places[*name, items[row], rank + 1][2] += float(matrix[row, rank])
    return places, impressions, sets, n_left_out


def gathered(found: list[LoggedQueries]):
    """The same of what is gathered."""
    places: dict[Any, list[float]] = defaultdict(lambda: [0, 0, 0.0])
    impressions: Counter[Any] = Counter()
    sets: Counter[Any] = Counter()
    for one in found:
        check_places(one.log, one.impressions)
        rows = zip(*(column.tolist() for column in one.log[:7]), strict=True)
        for group, policy, item, rank, *counts in rows:
            query = one.queries[one.owners[item]]
            name = query, group, one.interventions[policy], one.items[item], rank
            own = places[name]
            places[name] = [x + y for x, y in zip(own, counts, strict=True)]
        for group, policy, item in np.argwhere(one.impressions > 0).tolist():
            query = one.queries[one.owners[item]]
            where = query, group, one.interventions[policy], one.items[item]
            impressions[where] += int(one.impressions[group, policy, item])
        for each in sets_of(one):
            own_items = sorted(one.items[x] for x in each.items.tolist())
            candidates = b"" if each.is_growing else msgspec.msgpack.encode(own_items)
            for group in np.flatnonzero(each.lists).tolist():
                owner = one.queries[each.query], candidates, group
                sets[owner] += int(each.lists[group])
            ranks = np.full(each.placed.shape[1], each.lists.sum())
            # What is no item of a growing set could stand there too.
            assert each.is_growing or each.placed.sum(axis=0) == pytest.approx(ranks)
    return places, impressions, sets, sum(one.n_left_out for one in found)


@pytest.mark.parametrize("unknown", Unknown)
@pytest.mark.parametrize("groups", [EVERYBODY, (1, 4, 6)])
def test_it_is_what_each_list_says(groups, unknown):
    """Of all policies, sets and eras; unknown lists are NaN, as shown, or left out."""
    log = [*lists(600, np.random.default_rng(8))]
    expected = recounted(log, groups, unknown)
    how = gathering(groups, unknown)
    queries = [*how.of(marked(counted(log)))]
    found = gathered(queries)
    assert found[1:] == expected[1:]
    nothing = [0, 0, 0.0]
    told = {name: row for name, row in found[0].items() if row != nothing}
    assert told.keys() == expected[0].keys()
    for name, row in expected[0].items():
        assert told[name] == pytest.approx(row, abs=1e-6, nan_ok=True), name
    assert (found[3] > 0) == (unknown is Unknown.LEFT_OUT)
    n_as_shown = sum(one.n_as_shown for one in queries)
    assert (n_as_shown > 0) == (unknown in (Unknown.AS_SHOWN, Unknown.JOINED))


@pytest.mark.parametrize("cells_at_once", [1, 2_000, 1 << 20])
def test_chunks_change_nothing(cells_at_once):
    """However columns are cut; how much is taken together alone decides of whom."""
    statistics = counted([*lists(400, np.random.default_rng(9))])
    how = gathering(EVERYBODY, Unknown.LEFT_OUT, cells_at_once)
    whole = gathered([*how.of(marked(statistics))])
    mixed = {name for each in marked(statistics) for name in each.mixed}
    for seed in range(2):
        rng = np.random.default_rng(seed)
        pieces = (
            chunk._replace(mixed=frozenset(mixed))
            for chunk in cut(statistics.columns(), rng)
        )
        again = [*how.of(pieces)]
        found = gathered(again)
        assert found[1:] == whole[1:]
        for name, row in whole[0].items():
            assert found[0][name] == pytest.approx(row, rel=1e-12, nan_ok=True)
    n_queries = [len(one.queries) for one in again]
    assert sum(n_queries) == 7
    assert (cells_at_once > 1) == (max(n_queries) > 1)


def shown(items: str, **how: Any) -> Interaction:
    """A list of a query."""
    return Interaction(impression(items=[*"abc"], shown=[*items], **how), [])


@pytest.mark.parametrize(
    ("log", "mixed"),
    [
        ([shown("ab"), shown("ab", unit=5)], False),
        ([shown("ab"), shown("ba")], True),
        ([shown("ab", policy=TAIL_SHUFFLE), shown("ac", policy=TAIL_SHUFFLE)], False),
        ([shown("ab", policy=TAIL_SHUFFLE), shown("ca", policy=TAIL_SHUFFLE)], True),
        ([shown("ab", policy=TAIL_SHUFFLE), shown("ab", policy=DETERMINISTIC)], True),
        ([shown("ab"), shown("ab", is_open_set=True)], True),
        ([shown("ab"), shown("ba", intervention="other")], False),
        ([shown("ab"), shown("ba", query_id="other")], False),
        ([shown("ab"), shown("ba", policy=UNKNOWN)], False),
    ],
)
def test_a_policy_is_mixed_where_a_query_had_several_placements(log, mixed):
    """By themselves the clicks of each cannot be told."""
    how = gathering(EVERYBODY, Unknown.KEPT)
    (found,) = how.of(marked(counted(log)))
    assert bool(found.log.mixed) == mixed
    names = {found.interventions[policy] for policy in found.log.mixed}
    assert names <= {"m"}


def test_exposure_rows_are_placements():
    """Two vectors of scores are two, one that comes again is one."""
    one, other = (np.array(x, "<f4").tobytes() for x in ([1, 0, 0], [0, 1, 0]))
    how = gathering(EVERYBODY, Unknown.LEFT_OUT)
    drawn = {"policy": PLACKETT_LUCE}
    same = [shown("ab", scores=one, **drawn), shown("ba", scores=one, **drawn)]
    (found,) = how.of(marked(counted(same)))
    assert not found.log.mixed
    (found,) = how.of(marked(counted([*same, shown("ab", scores=other, **drawn)])))
    assert found.log.mixed


def test_beyond_what_is_kept_apart_placements_are_several():
    """Exposures of lists beyond the limit are added up."""
    rng = np.random.default_rng(3)
    vectors = rng.normal(size=(20, 3)).astype("<f4")
    log = [
        shown("ab", scores=each.tobytes(), policy=PLACKETT_LUCE, query_id=f"q{n % 2}")
        for n, each in enumerate(vectors)
    ]
    fold = StatisticsFold(
        LimitSettings(exposure_rows=1), StatisticsSettings(groups=GROUPS), KEEP_MS, 0
    )
    fold.take(closed_of(log))
    statistics = Statistics((key, value) for _, key, value in fold.changes({}))
    how = gathering(EVERYBODY, Unknown.LEFT_OUT)
    (found,) = how.of(marked(statistics))
    assert found.log.mixed


def test_a_group_that_there_is_not_is_told_of():
    """A damaged record has one, and the recount must end in words."""
    how = QueryGatherer([0], 1, Unknown.LEFT_OUT)
    log = [shown("ab", unit=unit) for unit in range(20)]
    with pytest.raises(ValueError, match="no group is"):
        [*how.of(marked(counted(log)))]


def test_nothing_is_made_of_nothing():
    """As of an empty log."""
    assert [*gathering(EVERYBODY, Unknown.LEFT_OUT).of([])] == []
