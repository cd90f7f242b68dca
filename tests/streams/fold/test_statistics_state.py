"""State of the statistics: eras that leave, pieces, limits, settings, broken values."""

from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    ClickMark,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures
from rankstream.wire.schemas import SchemaRefused
from streams.fold import statistics_fold
from streams.fold.statistics_fold import Pieces, StatisticsFold, StatisticsRefused
from streams.native.closed_impressions import closed_of
from streams.stage import Change
from streams.state_pieces import Parts
from streams.statistics.keys import OVERFLOW_SET, counted_key
from tests.event_factory import impression
from tests.streams.fold import scope_schedules as schedules

KEEP_MS = 1_000

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder().decode

State = dict[bytes, bytes]


def new_fold(
    limits: LimitSettings | None = None, keep_ms: int = KEEP_MS, **statistics
) -> StatisticsFold:
    """An empty fold."""
    settings = StatisticsSettings(**statistics)
    return StatisticsFold(limits or LimitSettings(), settings, keep_ms, 0)


def shown(
    name: str = "i", at_ms: int = 0, ranks: tuple[int, ...] = (), **fields: Any
) -> Interaction:
    """A closed impression."""
    fields.setdefault("unit", 0)
    marks = [ClickMark(rank, at_ms, "click") for rank in ranks]
    return Interaction(impression(name, at_ms, **fields), marks)


def changes_of(fold: StatisticsFold, state: State | None = None) -> State:
    """A state with the changes of a fold."""
    state = {} if state is None else state
    for change in fold.changes():
        if change.value is None:
            state.pop(change.key, None)
        else:
            state[change.key] = change.value
    return state


def restored(state: State, fold: StatisticsFold) -> StatisticsFold:
    """A fold that goes on from a state."""
    fold.restore(Change("statistics", key, value) for key, value in state.items())
    return fold


def kinds(state: State) -> list[str]:
    """Kinds of the records, sorted."""
    return sorted(_decode(key)[0] for key in state)


def test_an_era_leaves_no_record_and_no_memory() -> None:
    """When its time is over, shown or not; the next one stays as it was."""
    fold = new_fold()
    exposures = pack_exposures(np.full((3, 3), 0.25, "<f4"))
    for era in (0, 1):
        for query in range(300):
            one = shown(
                at_ms=era * KEEP_MS,
                query_id=f"{query}",
                policy=LOGGED,
                exposures=exposures,
                ranks=(1,),
            )
            fold.take(closed_of([one]))
    state = changes_of(fold)
    both = fold.counters()["statistics_bytes"]
    later = {key: value for key, value in state.items() if _decode(key)[-1] != 0}
    fold.advance(2 * KEEP_MS - 1)
    assert changes_of(fold, dict(state)).keys() == state.keys()
    fold.advance(2 * KEEP_MS)
    state = changes_of(fold, state)

    assert {k for k in state if _decode(k)[0] == "scope"} == {
        k for k in later if _decode(k)[0] == "scope"
    }
    assert kinds(state) == ["counted", *sorted(["row", "scope", "set"] * 300)]
    counters = fold.counters()
    assert counters["statistics_left"] == 300
    assert counters["statistics_scopes"] == 300
    assert counters["statistics_bytes"] < 0.6 * both
    fold.advance(3 * KEEP_MS)
    assert kinds(changes_of(fold, state)) == ["counted"]


def test_an_era_before_1970_leaves_like_others() -> None:
    """When its time is over, and not a millisecond before."""
    fold = new_fold()
    fold.take(closed_of([shown(at_ms=-1_500), shown(at_ms=-1_800)]))
    fold.advance(-1)
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    assert (_decode(key)[4], _decode(state[key])[2]) == (-2, -1_500)
    fold.advance(0)
    assert kinds(changes_of(fold, state)) == ["counted"]


def test_an_era_that_was_never_written_has_no_tombstones() -> None:
    """There is nothing to take away."""
    exposures = pack_exposures(np.full((3, 3), 0.25, "<f4"))
    fold = new_fold()
    fold.take(closed_of([shown(policy=LOGGED, exposures=exposures)]))
    fold.advance(2 * KEEP_MS)
    assert [change.key for change in fold.changes()] == [counted_key(0)]


def test_an_era_that_left_before_a_restart_leaves_after_it() -> None:
    """What a restored fold lets go gets its tombstones, pieces and rows too."""
    rng = np.random.default_rng(0)
    fold = new_fold(limits=LimitSettings(exposure_rows=1, lists=1), groups=4)
    drawn = [schedules.draw_interaction(rng, 10) for _ in range(300)]
    fold.take(closed_of([*drawn, large_list(400)]))
    state = changes_of(fold)
    assert {"piece", "row", "scope", "set"} < set(kinds(state))
    again = restored(state, new_fold(LimitSettings(exposure_rows=1, lists=1), groups=4))
    again.advance(2 * KEEP_MS)
    assert kinds(changes_of(again, state)) == ["counted"]


def test_lists_of_an_open_set_are_the_same_lists_after_restarts() -> None:
    """Counted on where they were counted, however often a worker starts anew."""
    one = shown(items=["a", "b", "c"], shown=["c", "a"], is_open_set=True, ranks=(1,))
    fold = new_fold(groups=2)
    state: State = {}
    for n in range(1, 4):
        fold.take(closed_of([one]))
        state = changes_of(fold, state)
        (key,) = [k for k in state if _decode(k)[0] == "scope"]
        assert _decode(state[key])[4] == [-1 - DETERMINISTIC, [0, 1], [0, n, [1, n]]]
        fold = restored(state, new_fold(groups=2))


def large_list(n_items: int, n_shown: int = 300) -> Interaction:
    """A list that is longer than lists with masks are."""
    items = [f"d{i:05}" for i in range(n_items)]
    return shown(query_id="large", items=items, shown=items[:n_shown], ranks=(1, 300))


def test_a_large_scope_is_written_piece_by_piece() -> None:
    """Only the groups that changed are written again."""
    fold = new_fold(groups=4)
    for unit in range(4):
        one = large_list(400)
        other = msgspec.structs.replace(one.impression, unit=unit)
        fold.take(closed_of([msgspec.structs.replace(one, impression=other)]))
    state = changes_of(fold)
    assert kinds(state) == ["counted", *["piece"] * 4, "scope", "set"]
    fold.take(closed_of([large_list(400)]))
    again = list(fold.changes())
    assert sorted(_decode(c.key)[0] for c in again) == ["counted", "piece", "scope"]
    (key,) = [k for k in state if _decode(k)[0] == "scope"]
    assert _decode(state[key])[1] == 4  # truncated


def test_lists_of_ten_thousand_are_split_into_parts_and_come_back() -> None:
    """A value that is larger than a record."""
    fold = new_fold(groups=2)
    fold._parts = Parts(part_bytes=50_000)
    fold.take(closed_of([large_list(10_000, 10_000)]))
    state = changes_of(fold)
    assert kinds(state).count("part") > 3
    again = restored(state, new_fold(groups=2))
    assert again.fingerprint() == fold.fingerprint()
    for one in (fold, again):
        one.take(closed_of([large_list(10_000, 10_000)]))
    again._parts._part_bytes = 50_000
    assert changes_of(again, dict(state)) == changes_of(fold, dict(state))


def test_one_query_with_all_the_traffic_stays_within_its_limits() -> None:
    """64 candidate sets and 256 interventions are kept; what is more is capped."""
    fold = new_fold()
    batch = [
        shown(items=["a", f"b{i}"], intervention=f"{j}", ranks=(2,))
        for i in range(66)
        for j in range(258)
    ]
    fold.take(closed_of(batch))
    counters = fold.counters()
    assert counters["statistics_capped"] == 66 * 258 - 64 * 256
    assert counters["statistics_scopes"] == 64 * 256 + 1
    state = changes_of(fold)
    (key,) = [k for k in state if _decode(k)[2:3] == [OVERFLOW_SET] and b"scope" in k]
    _, flags, _, _, lists, cells, *_ = _decode(state[key])
    assert (flags, lists) == (1, [])
    totals = cells[1][0]
    assert totals == [66 * 258 - 64 * 256, 0, *[66 * 258 - 64 * 256] * 2, 0, 0]
    again = restored(state, new_fold())
    for one in (fold, again):
        one.take(closed_of(batch[-300:]))
    assert changes_of(again, dict(state)) == changes_of(fold, dict(state))


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"groups": 10}, "statistics.groups must be .* 20; got 10"),
        ({"keep_ms": 2 * KEEP_MS}, "time.keep_ms must be .* 1000; got 2000"),
        ({"actions": {"buy": "purchase"}}, r"statistics.actions \(the classes\)"),
        ({"actions": {"buy": "click"}}, "statistics.actions must be"),
    ],
)
def test_other_settings_are_refused_in_words(changed: dict, name: str) -> None:
    """Sums of before would mean something else under them."""
    fold = new_fold()
    fold.take(closed_of([shown()]))
    state = changes_of(fold)
    with pytest.raises(StatisticsRefused, match=f"{name}.*set it back"):
        restored(state, new_fold(**changed))


def test_another_reward_is_refused() -> None:
    """Clicks of a class that was not the reward have no masks."""
    actions = {"buy": "purchase"}
    state = changes_of(new_fold(actions=actions))
    with pytest.raises(StatisticsRefused, match=r"statistics\.reward must be"):
        restored(state, new_fold(actions=actions, reward="purchase"))


def test_a_schema_of_another_release_is_refused() -> None:
    """Each kind of record compares its number."""
    exposures = pack_exposures(np.full((3, 3), 0.25, "<f4"))
    fold = new_fold()
    fold.take(closed_of([shown(policy=LOGGED, exposures=exposures), large_list(400)]))
    state = changes_of(fold)
    assert {"counted", "piece", "row", "scope", "set"} == set(kinds(state))
    for key, value in state.items():
        with pytest.raises(SchemaRefused, match="must have schema 2; got 9"):
            restored({**state, key: value[:1] + b"\x09" + value[2:]}, new_fold())


def test_broken_state_is_refused_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Bytes changed, cut off, or of another scope: never more than an exception."""
    monkeypatch.setattr(statistics_fold, "PIECES", Pieces(20, 1))
    rng = np.random.default_rng(3)
    fold = new_fold(limits=LimitSettings(exposure_rows=2, lists=2), groups=4)
    drawn = [schedules.draw_interaction(rng, 10) for _ in range(120)]
    fold.take(closed_of([*drawn, large_list(400)]))
    state = changes_of(fold)
    assert {"lists", "piece", "row", "scope", "set"} < set(kinds(state))
    keys = sorted(key for key in state if key != counted_key(0))
    n_refused = 0
    for _ in range(1_500):
        key = keys[rng.integers(len(keys))]
        value = bytearray(state[key])
        for _ in range(rng.integers(1, 4)):
            value[rng.integers(2, len(value))] = rng.integers(256)
        broken = bytes(value[: rng.integers(2, len(value) + 1)])
        again = new_fold(limits=LimitSettings(exposure_rows=2, lists=2), groups=4)
        try:
            restored({**state, key: broken}, again)
            again.take(closed_of(drawn[:20]))
            changes_of(again)
        except (StatisticsRefused, SchemaRefused):
            n_refused += 1
    assert n_refused > 700


@pytest.mark.parametrize(
    "counts",
    [
        [0, 2, [1, 1], 0, 1, []],
        [1, 1, [], 0, 2, [1, 1]],
        [0, 3, [], 1, 0, []],
        [0, 3, [1, 1, 1, 2]],
        [0, 3, [2, 1, 1, 1]],
        [0, 3, [8, 1]],
        [0, 3, [0, 1]],
        [0, 3, [1, 0]],
        [0, 3, [1, 2, 2, 2]],
    ],
)
def test_counts_of_lists_that_cannot_be_are_refused(counts: list[Any]) -> None:
    """Though their sum is right: one would be counted on over another."""
    fold = new_fold()
    fold.take(closed_of([shown(), shown(), shown(ranks=(1,))]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    assert value[4] == [-1 - DETERMINISTIC, [0, 1, 2], [0, 3, [1, 1]]]
    value[4][2] = counts
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, key: _encode(value)}, new_fold())


@pytest.mark.parametrize(
    ("place", "given"), [(0, -1 - LOGGED), (0, -1 - PLACKETT_LUCE), (0, -7), (1, [])]
)
def test_lists_that_cannot_be_are_refused(place: int, given: Any) -> None:
    """Of no policy, of one that has exposure rows, and without items."""
    fold = new_fold()
    fold.take(closed_of([shown()]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    value[4][place] = given
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, key: _encode(value)}, new_fold())


@pytest.mark.parametrize(("part", "place"), [(0, 1), (2, 2), (2, 7), (3, 1)])
def test_negative_counts_of_cells_are_refused(part: int, place: int) -> None:
    """Totals, shown, exposures, and sums."""
    fold = new_fold(limits=LimitSettings(lists=1))
    other = shown(shown=["c", "b", "a"], ranks=(3, 1))
    fold.take(closed_of([shown(), other]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    value[5][1][part][place] = -1
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, key: _encode(value)}, new_fold())


def test_what_was_counted_is_refused_in_words_where_it_is_not_whole() -> None:
    """As every other record is."""
    fold = new_fold()
    fold.take(closed_of([shown()]))
    state = changes_of(fold)
    key = counted_key(0)
    for broken in (state[key] + b"\0", state[key][:-1], _encode([2, 20])):
        with pytest.raises(StatisticsRefused, match="must be whole"):
            restored({**state, key: broken}, new_fold())


@pytest.mark.parametrize("n_more", [-1, 1])
def test_more_or_fewer_impressions_than_were_counted_are_refused(n_more: int) -> None:
    """Something was counted twice, or is missing."""
    fold = new_fold()
    fold.take(closed_of([shown(), shown(), shown()]))
    state = changes_of(fold)
    counted = _decode(state[counted_key(0)])
    assert counted[6] == [[0, 3]]
    counted[6] = [[0, 3 + n_more]]
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, counted_key(0): _encode(counted)}, new_fold())


def test_an_exposure_row_that_is_named_twice_is_refused() -> None:
    """It has one number in its scope."""
    exposures = pack_exposures(np.full((3, 3), 0.25, "<f4"))
    fold = new_fold()
    fold.take(closed_of([shown(policy=LOGGED, exposures=exposures)]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    assert len(value[3]) == 1
    value[3] *= 2
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({**state, key: _encode(value)}, new_fold())


def test_a_scope_without_its_set_is_refused() -> None:
    """Its items would have no names, and the next one would write an empty set."""
    fold = new_fold()
    fold.take(closed_of([shown()]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "set"]
    with pytest.raises(StatisticsRefused, match="must be whole"):
        restored({k: v for k, v in state.items() if k != key}, new_fold())


@pytest.mark.parametrize("n_shown", [3, 40])
def test_counters_reach_their_limit_and_no_further(n_shown: int) -> None:
    """2^31 - 1 impressions of a group come back; one more is refused in words."""
    items = [f"d{i:02}" for i in range(n_shown)]
    one = shown(items=items, ranks=(1,))
    fold = new_fold(groups=2)
    fold.take(closed_of([one]))
    state = changes_of(fold)
    (key,) = [key for key in state if _decode(key)[0] == "scope"]
    value = _decode(state[key])
    if n_shown > 32:
        value[5][1][0][:4] = [2**31 - 2, 0, 2**31 - 2, 2**31 - 2]
    else:
        value[4][2] = [0, 2**31 - 2, [1, 2**31 - 2]]
    state[key] = _encode(value)
    counted = _decode(state[counted_key(0)])
    counted[6] = [[0, 2**31 - 2]]
    state[counted_key(0)] = _encode(counted)
    fold = restored(state, new_fold(groups=2))
    fold.take(closed_of([one]))
    again = restored(changes_of(fold, state), new_fold(groups=2))
    with pytest.raises(OverflowError, match=r"2\^31"):
        again.take(closed_of([one]))


def test_interactions_that_are_not_whole_are_refused() -> None:
    """Wherever a byte was changed: counted as something, or refused."""
    rng = np.random.default_rng(4)
    fold, n_refused = new_fold(), 0
    for _ in range(3_000):
        closed = closed_of([schedules.draw_interaction(rng, 10)])
        packed = bytearray(closed.encoded[: closed.ends[-1]].tobytes())
        packed[rng.integers(len(packed))] = rng.integers(256)
        cut = int(rng.integers(1, len(packed) + 1))
        broken = replace(
            closed,
            encoded=np.frombuffer(bytes(packed[:cut]), np.uint8),
            ends=np.array([cut]),
        )
        try:
            fold.take(broken)
        except ValueError:
            n_refused += 1
    assert n_refused > 1_500
    changes_of(fold)


def test_places_that_nobody_shows_are_not_counted() -> None:
    """Position 0, and positions behind the list."""
    fold = new_fold()
    fold.take(closed_of([shown(ranks=(0, 4, 2, 2))]))
    state = changes_of(fold)
    (key,) = [k for k in state if _decode(k)[0] == "scope"]
    assert _decode(state[key])[4] == [-1 - DETERMINISTIC, [0, 1, 2], [0, 1, [2, 1]]]


def test_a_piece_that_is_missing_is_refused() -> None:
    """Else its group would begin again at nothing."""
    fold = new_fold(groups=4)
    fold.take(closed_of([large_list(400)]))
    state = changes_of(fold)
    restored(state, new_fold(groups=4))
    for kind in ("piece", "scope"):
        (key,) = [key for key in state if _decode(key)[0] == kind]
        left = {other: value for other, value in state.items() if other != key}
        with pytest.raises(StatisticsRefused, match="must be whole"):
            restored(left, new_fold(groups=4))


def test_scores_that_cancel_secrets_of_names_are_scores_like_others() -> None:
    """Sixteen bytes that equal two factors of the digest made all names one."""
    secrets = (0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
    scores = b"".join(secret.to_bytes(8, "little") for secret in secrets)
    items = ["a", "b", "c", "d"]
    fold = new_fold()
    for query in ("q1", "q2", "q1"):
        one = shown(
            query_id=query, items=items, policy=PLACKETT_LUCE, scores=scores, ranks=(1,)
        )
        fold.take(closed_of([one]))
    state = changes_of(fold)
    assert kinds(state) == ["counted", *["row"] * 2, *["scope"] * 2, *["set"] * 2]
    restored(state, new_fold())


def test_a_place_that_no_candidate_has_is_refused() -> None:
    """A row of as many as there are candidates, and the one below it."""
    fold = new_fold()
    one = shown(items=["a", "b", "c"])
    for row, is_whole in ((2, True), (3, False)):
        packed = np.array([0, 1, row], "<u2").tobytes()
        changed = msgspec.structs.replace(one.impression, shown=packed)
        forged = closed_of([msgspec.structs.replace(one, impression=changed)])
        if is_whole:
            fold.take(forged)
        else:
            with pytest.raises(ValueError, match="whole"):
                fold.take(forged)
