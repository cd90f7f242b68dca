"""State of the statistics fold: large values, expiry, masks, batches, schemas."""

import msgspec
import numpy as np
import pytest

from models.counts.cells import decode_cell
from rankstream.settings import LimitSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    PLACKETT_LUCE,
    ClickMark,
    Impression,
    Interaction,
)
from rankstream.wire.schemas import SchemaRefused
from streams.fold import statistics_fold as module
from streams.fold import statistics_settlement
from streams.fold.closed_impressions import closed_of
from streams.fold.statistics_fold import DAY_MS, StatisticsFold
from streams.stage import Change
from streams.state_pieces import Parts
from tests.streams.fold.plain_statistics import applied, state_of

LIMITS = LimitSettings(candidate_sets=2, interventions=2, exposure_rows=2)
KEEP_MS = 2 * DAY_MS

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode


def impression(shown, *, query="q", at_ms=0, n_items=4, unit=0, policy=DETERMINISTIC):
    """A deterministic list of a closed set."""
    return Impression(
        b"i" * 16,
        "i",
        query,
        at_ms,
        "m",
        1,
        "m",
        0,
        policy,
        _encode([f"d{i:05}" for i in range(n_items)]),
        np.array(shown, "<u2").tobytes(),
        False,
        b"",
        b"",
        b"",
        0,
        unit,
        b"",
    )


def test_large_values_are_split_and_come_back():
    """A cell of many items is written in parts, restored, and shrinks by tombstones."""
    fold = StatisticsFold(LimitSettings(), KEEP_MS)
    fold._parts = Parts(part_bytes=1000)
    for start in range(0, 5000, 500):
        shown = range(start, start + 500)
        fold.take(closed_of([Interaction(impression(shown, n_items=5000), [])]))
    state = state_of(fold)
    assert max(map(len, state.values())) <= 1000
    again = StatisticsFold(LimitSettings(), KEEP_MS)
    again._parts = Parts(part_bytes=1000)
    again.restore(Change("statistics", *item) for item in state.items())
    assert again.fingerprint() == fold.fingerprint()
    again.advance(10 * DAY_MS)
    state = applied(state, again.changes())
    assert {_decode(key)[0] for key in state} == {"counts"}


def test_statistics_of_queries_that_are_not_asked_again_leave_no_memory():
    """With ever-new queries nothing grows once `keep` has passed."""
    fold = StatisticsFold(LimitSettings(), DAY_MS)
    sizes = []
    for day in range(8):
        for i in range(300):
            at_ms = day * DAY_MS + i
            closed = impression((0, 1), query=f"q{day}-{i}", at_ms=at_ms, unit=i)
            fold.take(closed_of([Interaction(closed, [ClickMark(1, 0, "click")])]))
        fold.advance((day + 1) * DAY_MS)
        places = fold._places
        sizes.append(
            (
                int(places.table.numbers.size[0]),
                len(places.scopes),
                len(places._queries),
            )
        )
        assert fold.counters()["statistics_cells"] <= 600
    assert sizes[3:] == [sizes[3]] * 5


def test_list_masks_are_counted_up_to_their_limit():
    """The first lists and masks of a cell are kept apart, others counted as dropped."""
    fold = StatisticsFold(LimitSettings(list_masks=1), KEEP_MS)
    both = [ClickMark(2, 0, "click"), ClickMark(1, 0, "click")]
    for _ in range(3):
        fold.take(closed_of([Interaction(impression((1, 0)), both)]))
    fold.take(closed_of([Interaction(impression((1, 0)), [])]))
    state = state_of(fold)
    (key,) = (key for key in state if _decode(key)[0] == "masks")
    shown = np.array((1, 0), np.int32).tobytes()
    assert _decode(state[key])[1] == [[shown, b"\x03", 3]]
    assert fold.counters()["statistics_masks_dropped"] == 1
    again = StatisticsFold(LimitSettings(list_masks=1), KEEP_MS)
    again.restore(Change("statistics", *item) for item in state.items())
    again.take(closed_of([Interaction(impression((1, 0)), both)]))
    assert _decode(applied(state, again.changes())[key])[1] == [[shown, b"\x03", 4]]


def test_batches_of_any_size_count_the_same(monkeypatch):
    """Where a batch ends is not seen in the result."""
    taken = [
        Interaction(
            impression((i % 4, (i + 1) % 4), unit=i), [ClickMark(1, 0, "click")]
        )
        for i in range(50)
    ]
    states = []
    for size in (1, 7, 4096):
        monkeypatch.setattr(module, "FLUSH_IMPRESSIONS", size)
        fold = StatisticsFold(LIMITS, KEEP_MS)
        fold.take(closed_of(taken))
        states.append(state_of(fold))
    assert states[0] == states[1] == states[2]


def test_a_schema_of_another_release_is_refused():
    """State that another release wrote is not guessed at."""
    fold = StatisticsFold(LIMITS, KEEP_MS)
    key = _encode(["counts"])
    with pytest.raises(SchemaRefused, match="must have schema 1; got 9"):
        fold.restore([Change("statistics", key, _encode([9]))])


def test_the_oldest_row_goes_with_its_count_after_a_restore():
    """What is evicted, how often it counts and that it leaves survive a restart."""
    fold = StatisticsFold(LIMITS, KEEP_MS)
    for shown in ((0, 1), (0, 1), (1, 0)):
        fold.take(closed_of([Interaction(impression(shown), [])]))
    state = state_of(fold)
    again = StatisticsFold(LIMITS, KEEP_MS)
    again.restore(Change("statistics", *item) for item in state.items())
    for one in (fold, again):
        one.take(closed_of([Interaction(impression((2, 3)), [])]))
    assert applied(dict(state), again.changes()) == applied(state, fold.changes())
    materials = {_decode(v)[3] for k, v in state.items() if _decode(k)[0] == "row"}
    lists = [np.array(shown, "<u2").tobytes() for shown in ((1, 0), (2, 3))]
    assert materials == set(lists)
    (value,) = (value for key, value in state.items() if _decode(key)[0] == "cell")
    cell = decode_cell(value, ("d0", "d1", "d2", "d3"))
    exposures = {(p[0], p[1]): p[8] for p in cell.pairs.tolist() if p[8]}
    assert exposures == {(0, 1): 2 << 30, (1, 2): 2 << 30}
    assert cell.overflow_impressions == 2


def test_what_overflows_takes_no_place_of_a_candidate_set():
    """Two sets have their own cells also where interventions overflowed before."""
    fold = StatisticsFold(LIMITS, KEEP_MS)
    first = impression((0, 1))
    second = msgspec.structs.replace(first, candidates=_encode(["x", "y"]))
    for one, chosen in ((first, "m"), (first, "n"), (first, "o"), (second, "m")):
        taken = msgspec.structs.replace(one, intervention=chosen)
        fold.take(closed_of([Interaction(taken, [])]))
    keys = [_decode(key) for key in state_of(fold)]
    names = {key[2] for key in keys if key[0] == "set"}
    assert len(names) == 3
    assert b"\xff" * 16 in names


def test_placements_are_the_same_however_few_of_them_are_kept(monkeypatch):
    """The cache makes room for new rows, for as long as rows come."""
    states = []
    for most in (statistics_settlement.CACHED_PROBABILITIES, 64):
        monkeypatch.setattr(statistics_settlement, "CACHED_PROBABILITIES", most)
        fold = StatisticsFold(LIMITS, KEEP_MS)
        for i in range(40):
            one = msgspec.structs.replace(
                impression((i % 4, (i + 1) % 4), policy=PLACKETT_LUCE),
                scores=np.linspace(0, i % 10, 4, dtype="<f4").tobytes(),
            )
            fold.take(closed_of([Interaction(one, [ClickMark(1, 0, "click")])]))
            fold.settle()
        states.append(state_of(fold))
    assert states[0] == states[1]
