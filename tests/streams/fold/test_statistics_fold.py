"""The statistics fold against a recount in plain dictionaries, and against itself."""

from collections import defaultdict

import msgspec
import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.counts.cells import ITEM_NAMES, TOTAL_NAMES, decode_cell, row_names_of
from rankstream.settings import LimitSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures
from streams.fold.closed_impressions import closed_of
from streams.fold.statistics_fold import DAY_MS, StatisticsFold
from streams.stage import Change
from streams.state_pieces import Parts
from tests import event_factory
from tests.streams.fold.plain_statistics import (
    Recount,
    applied,
    expected_of,
    state_of,
)

LIMITS = LimitSettings(candidate_sets=2, interventions=2, exposure_rows=2)
KEEP_MS = 2 * DAY_MS

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

LISTS = (("a", "b", "c"), ("a", "b", "c", "d"), ("b", "d"), ("e", "f", "g"))


EDGES_MS = (0, 1, DAY_MS - 1, DAY_MS, DAY_MS + 1, 2 * DAY_MS)


@st.composite
def interactions(draw, lists=LISTS, queries="qr", interventions="mno", units=(3, 23)):
    """A closed impression of few queries, lists and interventions, with clicks."""
    candidates = draw(st.sampled_from(lists))
    order = draw(st.permutations(range(len(candidates))))
    n_shown = draw(st.integers(1, len(candidates)))
    is_open = draw(st.integers(0, 4)) == 0
    if is_open:
        policy = draw(st.sampled_from((UNKNOWN, DETERMINISTIC)))
        candidates = tuple(sorted(candidates[row] for row in order[:n_shown]))
        order = draw(st.permutations(range(n_shown)))
    else:
        policy = draw(
            st.sampled_from(
                (UNKNOWN, DETERMINISTIC, TAIL_SHUFFLE, PLACKETT_LUCE, LOGGED)
            )
        )
    scores = draw(st.sampled_from((0.0, 1.0, 30.0)))
    n_items = len(candidates)
    exposures = np.full(
        (n_items, n_shown), draw(st.sampled_from((0.1, 1e-8, 0.0))), "<f4"
    )
    exposures[order[0], 0] = draw(st.sampled_from((0.0, 0.4)))
    impression = Impression(
        identity=b"i" * 16,
        impression_id="i",
        query_id=draw(st.sampled_from(queries)),
        at_ms=draw(st.sampled_from(EDGES_MS)),
        model="m",
        version=1,
        intervention=draw(st.sampled_from(interventions)),
        seed=0,
        policy=policy,
        candidates=_encode(list(candidates)),
        shown=np.array(order[:n_shown], "<u2").tobytes(),
        is_open_set=is_open,
        scores=(np.arange(n_items, dtype="<f4") * scores).astype("<f4").tobytes(),
        exposures=pack_exposures(exposures) if policy == LOGGED else b"",
        features=b"",
        n_features=0,
        unit=draw(st.sampled_from(units)),
        extra=b"",
    )
    ranks = draw(st.lists(st.integers(1, n_shown), max_size=4))
    return Interaction(impression, [ClickMark(rank, 5, "click") for rank in ranks])


ONE_CELL = {"lists": LISTS[:1], "queries": "q", "interventions": "m", "units": (5,)}

STEPS = st.one_of(
    st.lists(
        st.one_of(
            interactions(units=(3, 23, 2**64 - 1)), interactions(), st.integers(0, 8)
        ),
        max_size=40,
    ),
    # One cell, so that its rows are counted again, evicted, and come back.
    st.lists(
        st.one_of(*[interactions(**ONE_CELL)] * 6, st.integers(0, 4)), max_size=40
    ),
)
"""Impressions, and days that the watermark enters."""


def actual_of(state):
    """What stands in the topic, in the same form."""
    values = Parts().joined(state)
    by_key = {tuple(_decode(key)): value for key, value in values.items()}
    found = {}
    for (kind, *place), value in by_key.items():
        if kind != "cell":
            continue
        query, name, intervention, _ = place
        items = _decode(by_key["set", query, name])[1]
        cell = decode_cell(value, items)
        names = cell.items
        rows = []
        for row, count in zip(cell.row_names, cell.row_counts.tolist(), strict=True):
            stored = _decode(by_key["row", query, name, intervention, row])
            rows.append((*stored[1:4], count))
        sums = zip(cell.sums.tolist(), cell.squared_inverses(), strict=True)
        assert ITEM_NAMES[:4] == ("item", "plus", "minus", "inverse")
        totals = {n: cell.total(n) for n in TOTAL_NAMES if cell.total(n)}
        found[tuple(place)] = (
            totals,
            {(names[p[0]], p[1]): tuple(p[2:]) for p in cell.pairs.tolist()},
            {names[s[0]]: (*s[1:4], squared) for s, squared in sums},
            {(names[a], r, names[b], s): n for a, r, b, s, n in cell.click_pairs},
            sorted(rows),
        )
    return found


def play(fold, steps):
    """Give steps to a fold."""
    for step in steps:
        if isinstance(step, int):
            fold.advance(step * DAY_MS + 17)
        else:
            fold.take(closed_of([step]))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_every_part_equals_a_recount_in_plain_dictionaries(steps):
    """Parts (a) to (e), caps, overflow and expiry are what their definitions say."""
    fold, recount = StatisticsFold(LIMITS, KEEP_MS), Recount(LIMITS, KEEP_MS)
    play(fold, steps)
    for step in steps:
        recount.take(step)
    state = state_of(fold)
    assert actual_of(state) == expected_of(recount)
    kinds = {_decode(key)[0] for key in state}
    cells = {tuple(_decode(k)[1:3]) for k in state if _decode(k)[0] == "cell"}
    sets = {tuple(_decode(k)[1:3]) for k in state if _decode(k)[0] == "set"}
    assert sets == cells
    assert kinds <= {"cell", "set", "row", "counts"}
    named: dict[tuple[object, ...], list[bytes]] = defaultdict(list)
    for key, value in state.items():
        if _decode(key)[0] == "cell":
            named[tuple(_decode(key)[1:4])] += row_names_of(value)
    rows = {tuple(_decode(k)[1:]) for k in state if _decode(k)[0] == "row"}
    assert rows == {(*place, row) for place, names in named.items() for row in names}


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(STEPS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3)), max_size=8))
def test_cuts_and_restores_change_no_byte(steps, cuts):
    """Flushing, settling, writing or restoring anywhere gives the same state."""
    whole = StatisticsFold(LIMITS, KEEP_MS)
    play(whole, steps)
    fold = StatisticsFold(LIMITS, KEEP_MS)
    state: dict[bytes, bytes] = {}
    at = defaultdict(list)
    for place, action in cuts:
        at[place].append(action)
    for i, step in enumerate([*steps, None]):
        for action in at[i]:
            if action == 0:
                fold.flush()
            elif action == 1:
                fold.settle()
            else:
                state = applied(state, fold.changes())
            if action == 3:
                mark = fold.fingerprint()
                fold = StatisticsFold(LIMITS, KEEP_MS)
                fold.restore(Change("statistics", *item) for item in state.items())
                assert fold.fingerprint() == mark
        if step is not None:
            play(fold, [step])
    assert fold.fingerprint() == whole.fingerprint()
    state = applied(state, fold.changes())
    assert state == state_of(whole)
    assert not fold.changes()
    counters, others = fold.counters(), whole.counters()
    assert counters == others


def test_clicks_that_repeat_take_no_room() -> None:
    """Thousands of clicks on a list of three are three clicked ranks."""
    fold = StatisticsFold(LimitSettings(), keep_ms=DAY_MS)
    marks = [ClickMark(1 + n % 3, n, "click") for n in range(3_000)]
    fold.take(closed_of([Interaction(event_factory.impression(), marks)]))
    fold.settle()

    assert len(fold._store.tables.click_pairs) < 1_000
