"""The compiled counting against the definition, over restarts, eras and limits."""

import msgspec
import numpy as np
import pytest

from rankstream.settings import LimitSettings, StatisticsSettings
from streams.fold.statistics_fold import Pieces, StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.stage import Change
from streams.statistics.keys import counted_key, decode_counted
from tests.session.cases import n_cases
from tests.streams.fold import scope_schedules as schedules

LIMITS = LimitSettings(candidate_sets=2, interventions=2, exposure_rows=2, lists=3)


PIECES = (Pieces(), Pieces(0, 1), Pieces(30, 2), Pieces(60, 1))
"""Whose lists lie in the head, apart, or apart from some time on."""


def new_fold(reward: str = "click", pieces: Pieces | None = None) -> StatisticsFold:
    """An empty fold of partition 3."""
    settings = StatisticsSettings(
        groups=schedules.N_GROUPS, reward=reward, actions=schedules.ACTIONS
    )
    return StatisticsFold(LIMITS, settings, schedules.KEEP_MS, 3, pieces)


def applied(state: dict[bytes, bytes], fold: StatisticsFold) -> dict[bytes, bytes]:
    """A state with the changes of a fold."""
    for change in fold.changes():
        if change.value is None:
            state.pop(change.key, None)
        else:
            state[change.key] = change.value
    return state


def restored(
    state: dict[bytes, bytes], reward: str = "click", pieces: Pieces | None = None
) -> StatisticsFold:
    """A fold that goes on from a state, whatever the order of its records."""
    fold = new_fold(reward, pieces)
    order = sorted(state, reverse=len(state) % 2 > 0)
    fold.restore(Change("statistics", key, state[key]) for key in order)
    return fold


def compare(
    state: dict[bytes, bytes], expected: schedules.Expected, reward: int
) -> int:
    """See that a state holds what is expected; returns how many groups."""
    found = {key: (items, each) for key, items, _, each in schedules.stored(state)}
    assert found.keys() == expected.scopes.keys()
    n_groups = 0
    for key, (items, summaries) in found.items():
        wanted = expected.summaries(key, items, reward)
        assert summaries.keys() == wanted.keys()
        for group, summary in summaries.items():
            assert summary.encode() == wanted[group].encode(), (key, group)
            n_groups += 1
    return n_groups


@pytest.mark.parametrize("seed", range(n_cases(8, 16)))
def test_counts_are_those_of_the_definition(seed):
    """Whatever comes, and wherever batches, checkpoints and restarts fall."""
    rng = np.random.default_rng(seed)
    reward = int(rng.integers(3)) if seed % 2 else 0
    pieces = PIECES[seed // 2 % 4]
    fold = new_fold(schedules.CLASSES[reward], pieces)
    state: dict[bytes, bytes] = {}
    expected = schedules.Expected(LIMITS)
    now_ms, n_taken, n_groups = 0, 0, 0
    for _ in range(60):
        batch = [
            schedules.draw_interaction(rng, now_ms + int(rng.integers(-300, 300)))
            for _ in range(rng.integers(0, 12))
        ]
        if batch:
            fold.take(closed_of(batch))
        for one in batch:
            expected.take(one)
        n_taken += len(batch)
        now_ms += int(rng.integers(0, 120))
        fold.advance(now_ms)
        expected.advance(now_ms)
        if rng.random() < 0.3:
            state = applied(state, fold)
            n_groups += compare(state, expected, reward)
            counted = decode_counted(state[counted_key(3)])
            assert counted.sources == {3: n_taken}
            assert (counted.n_left, counted.watermark_ms) == (expected.n_left, now_ms)
            if rng.random() < 0.5:
                before = fold.fingerprint()
                fold = restored(state, schedules.CLASSES[reward], pieces)
                assert fold.fingerprint() == before
    assert n_groups > 50
    assert expected.n_left > 50


@pytest.mark.parametrize("pieces", PIECES)
def test_state_written_again_after_a_restart_is_the_same(pieces):
    """A restored fold that counts on writes what one without a restart writes."""
    rng = np.random.default_rng(5)
    drawn = [schedules.draw_interaction(rng, 100) for _ in range(200)]
    whole = new_fold(pieces=pieces)
    whole.take(closed_of(drawn[:120]))
    state = applied({}, whole)
    again = restored(state, pieces=pieces)
    for fold in (whole, again):
        fold.take(closed_of(drawn[120:]))
    assert applied(dict(state), whole) == applied(dict(state), again)


def test_masks_overflow_into_the_general_form():
    """More than 63 sets of clicked ranks of one list in a group."""
    rng = np.random.default_rng(1)
    items = [f"d{i}" for i in range(8)]
    expected = schedules.Expected(LIMITS)
    fold = new_fold()
    batch = []
    for _ in range(600):
        one = schedules.draw_interaction(rng, 5)
        impression = msgspec.structs.replace(
            one.impression,
            query_id="q",
            intervention="m",
            policy=2,
            scores=b"",
            exposures=b"",
            is_open_set=False,
            candidates=msgspec.msgpack.encode(items),
            shown=np.arange(8).astype("<u2").tobytes(),
            unit=3,
        )
        ranks = np.flatnonzero(rng.random(8) < 0.5) + 1
        marks = (
            [msgspec.convert([int(r), 1, "click"], type(one.clicks[0])) for r in ranks]
            if one.clicks
            else []
        )
        batch.append(msgspec.structs.replace(one, impression=impression, clicks=marks))
    fold.take(closed_of(batch))
    for one in batch:
        expected.take(one)
    state = applied({}, fold)
    compare(state, expected, 0)
    (flags,) = {flags for _, _, flags, _ in schedules.stored(state)}
    assert flags == 2
    compare(applied(state, restored(state)), expected, 0)
