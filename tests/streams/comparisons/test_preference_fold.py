"""Preferences on the stream: credited once, exactly, and refused with a reason."""

from itertools import chain
from typing import Any

import msgspec
import numpy as np
import pytest

from models.evaluation.conclusion import log_e_values
from models.evaluation.list_counts import TOTALS
from models.evaluation.sums import N_GROUPS, PreferenceSums
from models.interleaving.method import Shown
from models.interleaving.rankings import n_documents
from models.interleaving.registry import method_of
from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings, Settings, TimeSettings
from rankstream.wire.events import (
    ACTIVE,
    ENDED,
    MULTILEAVE,
    ClickMark,
    Element,
    Frontier,
    Interaction,
    encode_record,
)
from rankstream.wire.routing import identity
from rankstream.wire.topics import PREFERENCES
from streams.comparisons.comparison import Comparison, decoded
from streams.comparisons.preference_fold import (
    PreferencesFold,
    read_outcomes,
    read_records,
)
from streams.native.closed_impressions import closed_of
from streams.partition_fold import partition_fold
from streams.stage import Change, SourceRecord, referred
from tests.event_factory import START_MS, click, impression
from tests.interleaving_cases import as_rankings
from tests.streams.comparisons.compared_lists import (
    BOOST,
    EXPERIMENTS,
    ITEMS,
    as_changes,
    some_interactions,
    state_of,
)


def recounted(log: list[Interaction], name: str) -> PreferenceSums:
    """The sums of one method, straight from the events."""
    sums, method = PreferenceSums.empty(3), method_of(name)
    for one in log:
        extra = msgspec.msgpack.decode(one.impression.extra)
        candidates = msgspec.msgpack.decode(one.impression.candidates)
        rows = np.frombuffer(one.impression.shown, "<u2")
        lists = [extra["rankings"][key] for key in sorted(extra["rankings"])]
        names = list(dict.fromkeys(chain.from_iterable(lists)))
        rankings = as_rankings([[names.index(x) for x in each] for each in lists])
        shown = np.array([names.index(candidates[row]) for row in rows])
        clicks = np.zeros(len(rows), np.bool_)
        clicks[[mark.position - 1 for mark in one.clicks]] = True
        teams = np.array(extra.get("assignments", []), np.int64)
        preferences = method.infer(Shown(rankings, shown, teams), clicks)
        length = min(BOOST.length, n_documents(rankings))
        bounds = method.bounds(rankings, length)
        sums.add(preferences, bounds, one.impression.unit % N_GROUPS)
    return sums


def test_every_method_is_credited_as_by_hand() -> None:
    """The method that ran, and one that would have drawn the same lists."""
    log = some_interactions(200)
    fold = PreferencesFold(EXPERIMENTS, 0)
    fold.take(closed_of(log))
    (found,) = fold.comparisons()

    assert found.totals[TOTALS.index("impressions")] == 200
    assert set(found.sums) == {BOOST.method, *BOOST.also}
    for name, sums in found.sums.items():
        for ours, theirs in zip(
            sums.arrays(), recounted(log, name).arrays(), strict=True
        ):
            assert (ours == theirs).all(), name


@pytest.mark.parametrize(
    ("last", "seen"), [([], (0, 0)), ([3], (3, 0)), ([[3, 2]], (3, 2))]
)
def test_sums_of_releases_that_counted_less_are_taken(
    last: list[Any], seen: tuple[int, int]
) -> None:
    """The first counted no foreign seeds; later ones did, as a plain number."""
    sums = Comparison("boost", BOOST)
    *parts, _ = msgspec.msgpack.decode(sums.encoded())
    found = decoded("boost", msgspec.msgpack.encode([*parts, *last]))

    assert (found.n_foreign_seeds, found.n_without_session) == seen


RETROACTIVE = [
    ("team-draft", {}, "sample-scored", "sample-scored", {}),
    ("balanced", {}, "debiased-balanced", "debiased-balanced", {}),
    (
        "probabilistic",
        {"tau": 2.0},
        "clicks:probabilistic",
        "probabilistic",
        {"outcome": "clicks"},
    ),
]


@pytest.mark.parametrize(("main", "drawn", "name", "method", "options"), RETROACTIVE)
def test_another_method_afterwards_gives_what_it_would_have_given_live(
    main: str, drawn: dict[str, Any], name: str, method: str, options: dict[str, Any]
) -> None:
    """The same lists and clicks, as if they had been its own from the start."""
    rankers = {"a": "", "b": ""}
    rng = np.random.default_rng(5)
    folds = []
    live = ExperimentSettings(rankers=rankers, method=method, options=drawn | options)
    late = ExperimentSettings(rankers=rankers, method=main, options=drawn)
    beside = msgspec.structs.replace(late, also={name: options})
    lists = [
        {r: [ITEMS[d] for d in rng.permutation(12)[:6]] for r in rankers}
        for _ in range(80)
    ]
    clicks = rng.random((80, 10)) < 0.3
    for settings, drawing in ((live, live), (beside, late)):
        fold = PreferencesFold({"x": settings}, 0)
        for i, each in enumerate(lists):
            options_of_draw = dict(drawing.options)
            found = combine(drawing.method, each, 10, seed=i, options=options_of_draw)
            extra: dict[str, Any] = {
                "experiment": {"id": "x", "epoch": 1, "method": drawing.method},
                "rankings": found.rankings,
            }
            if found.assignments is not None:
                extra["assignments"] = found.assignments
            one = impression(
                f"i{i}", START_MS, items=ITEMS, shown=found.shown,
                policy=MULTILEAVE, extra=msgspec.msgpack.encode(extra),
            )  # fmt: skip
            places = np.flatnonzero(clicks[i, : len(found.shown)]) + 1
            marks = [ClickMark(int(p), START_MS, "click") for p in places]
            fold.take(closed_of([Interaction(one, marks)]))
        folds.append(fold.comparisons()[0])
    alone, scored = folds[0].sums[method], folds[1].sums[name]

    assert alone.totals.any()
    for a, b in zip(alone.arrays(), scored.arrays(), strict=True):
        assert (a == b).all()


def test_checkpoints_restarts_and_partitions_change_no_byte() -> None:
    """In one go; with restarts; and split over partitions, merged in any order."""
    log = some_interactions(150)
    whole = PreferencesFold(EXPERIMENTS, 0)
    whole.take(closed_of(log))
    restarted = PreferencesFold(EXPERIMENTS, 0)
    state: dict[bytes, bytes] = {}
    for start in range(0, 150, 40):
        restarted.take(closed_of(log[start : start + 40]))
        state |= state_of(restarted)
        before = restarted.fingerprint()
        restarted = PreferencesFold(EXPERIMENTS, 0)
        restarted.restore(as_changes(state))
        assert restarted.fingerprint() == before
    parts: dict[bytes, bytes] = {}
    for partition in (2, 0, 1):
        fold = PreferencesFold(EXPERIMENTS, partition)
        fold.take(closed_of(log[partition::3]))
        parts |= state_of(fold)
    (merged,) = read_records(parts).comparisons

    assert state == state_of(whole)
    assert merged.encoded() == whole.comparisons()[0].encoded()


def test_bounds_do_not_depend_on_the_list_that_was_drawn() -> None:
    """One document against ten: equal rates of clicks are no evidence."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method="ab")
    fold = PreferencesFold({"x": settings}, 0)
    lists = {"a": ITEMS[:1], "b": ITEMS[1:11]}
    rng = np.random.default_rng(0)
    for i in range(1_000):
        found = combine("ab", lists, 10, seed=i)
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": "ab"},
            "rankings": found.rankings,
            "assignments": found.assignments,
        }
        packed = msgspec.msgpack.encode(extra)
        one = impression(f"i{i}", items=ITEMS, shown=found.shown, extra=packed)
        place = int(rng.integers(len(found.shown))) + 1
        marks = [ClickMark(place, START_MS, "click")] if rng.random() < 0.5 else []
        fold.take(closed_of([Interaction(one, marks)]))
    sums = fold.comparisons()[0].sums["ab"]

    assert np.count_nonzero(sums.possible) == 1
    assert np.abs(log_e_values(sums)).max() < np.log(20)


def test_two_epochs_in_one_log_stay_apart() -> None:
    """The earlier one goes on counting after the change of the settings."""
    first = PreferencesFold(EXPERIMENTS, 0)
    first.take(closed_of(some_interactions(4)))
    again = msgspec.structs.replace(BOOST, epoch=2)
    second = PreferencesFold({"boost": again}, 0)
    second.restore(as_changes(state_of(first)))
    later = {"experiment": {"id": "boost", "epoch": 2, "method": BOOST.method}}
    log = some_interactions(6)
    for pair in zip(log[4:], some_interactions(6, extra=later), strict=False):
        second.take(closed_of(pair))
    found = {each.settings.epoch: each for each in second.comparisons()}

    assert found[1].totals[0] == 6
    assert found[2].totals[0] == 2


def test_click_rates_are_estimated_beside() -> None:
    """Counterfactually, from the lists of pairwise preference."""
    name = "counterfactual:pairwise-preference"
    settings = msgspec.structs.replace(
        BOOST,
        method="pairwise-preference",
        also={name: {"examination": [1.0, 0.5, 0.4, 0.3, 0.2, 0.1]}},
        length=6,
    )
    named = {"experiment": {"id": "boost", "epoch": 1, "method": settings.method}}
    fold = PreferencesFold({"boost": settings}, 0)
    log = some_interactions(50, method="pairwise-preference", extra=named)
    fold.take(closed_of(log))
    (found,) = fold.comparisons()

    assert found.sums[name].impressions.sum() == 50
    assert found.sums[name].totals.any()
    assert found.totals[TOTALS.index("too_heavy")] == 0


def test_a_click_on_what_nobody_returned_credits_nobody() -> None:
    """An advertisement in the list."""
    one = some_interactions(1)[0].impression
    shown = combine("team-draft", {"a": [], "b": [], "c": []}, 6, seed=0)
    extra = {
        "experiment": {"id": "boost", "epoch": 1, "method": "team-draft"},
        "rankings": {"a": ["d2"], "b": ["d2", "d1"], "c": []},
        "assignments": [-1] * 6,
    }
    packed = msgspec.structs.replace(one, extra=msgspec.msgpack.encode(extra))
    items = msgspec.msgpack.decode(one.candidates)
    rows = np.frombuffer(one.shown, "<u2")
    place = next(i for i, r in enumerate(rows) if items[r] not in ("d1", "d2"))
    fold = PreferencesFold(EXPERIMENTS, 0)
    fold.take(
        closed_of([Interaction(packed, [ClickMark(place + 1, START_MS, "click")])])
    )
    (found,) = fold.comparisons()

    assert shown.shown == []
    assert found.totals[TOTALS.index("foreign_clicks")] == 1
    assert not any(s.totals.any() for s in found.sums.values())
    assert found.by_ranker[:, 0].tolist() == [0, 0, 1]


def test_through_the_canonical_log() -> None:
    """Joined, folded, checkpoint and restored with the rest of the state."""
    settings = Settings(
        time=TimeSettings(click_window_ms=1_000, disorder_ms=100, remember_ms=500),
        experiments=EXPERIMENTS,
    )
    log = some_interactions(60)
    elements: list[Element] = []
    for one in log:
        elements.append(one.impression)
        elements += [
            click(
                one.impression.impression_id, mark.at_ms, position=mark.position,
                identity=identity("e", one.impression.impression_id, str(i)),
            )
            for i, mark in enumerate(one.clicks)
        ]  # fmt: skip
    records = [elements[i : i + 25] for i in range(0, len(elements), 25)]
    records.insert(0, [Frontier(0, 1, START_MS - 1, ACTIVE)])
    records.append([Frontier(0, 1, START_MS + 10_000, ENDED)])
    stage = partition_fold(0, settings)
    state: dict[tuple[str, bytes], bytes] = {}
    folded: list[Change] = []
    for number, part in enumerate(records, 1):
        value = encode_record([1, 0, number, part])
        stage.fold(SourceRecord("events", 0, number, 0, None, value, ()))
        folded.append(referred("events", number, value))
        for change in stage.changes():
            if change.value is None:
                state.pop((change.topic, change.key), None)
            else:
                state[change.topic, change.key] = change.value
        before = stage.fingerprint()
        stage = partition_fold(0, settings)
        written = [Change(*place, value) for place, value in state.items()]
        stage.restore([*written, *folded])
        assert stage.fingerprint() == before
    direct = PreferencesFold(EXPERIMENTS, 0)
    direct.take(closed_of(log))

    kept = {key: value for (topic, key), value in state.items() if topic == PREFERENCES}
    assert kept == state_of(direct, stage.join.counts)


def test_outcomes_of_partitions_add_up() -> None:
    """Each writes its own; the impressions of unknown experiments are among them."""
    values: dict[bytes, bytes] = {}
    for partition in range(2):
        fold = PreferencesFold({}, partition)
        fold.take(closed_of(some_interactions(3)))
        values |= state_of(fold)

    assert read_outcomes(values) == {
        "compared": 6,
        "unknown": 6,
        "consumed": 18,
        "late": 4,
    }
