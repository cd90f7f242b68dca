"""What is credited to nobody, and what is refused, each with its reason."""

from typing import Any

import msgspec
import pytest

from rankstream.configuration.experiments import MAX_RANKERS
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import (
    ClickMark,
    Impression,
    Interaction,
)
from streams.comparisons.extra import Extra
from streams.comparisons.logged_lists import (
    MAX_DEPTH,
    Faulty,
    ListReader,
)
from streams.comparisons.preference_fold import (
    ExperimentChanged,
    PreferencesFold,
)
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression
from tests.streams.comparisons.compared_lists import (
    BOOST,
    EXPERIMENTS,
    ITEMS,
    as_changes,
    some_interactions,
    state_of,
)


@pytest.mark.parametrize(
    ("reason", "extra"),
    [
        ("method", {"experiment": {"id": "boost", "epoch": 1, "method": "ab"}}),
        ("rankers", {"rankings": {"a": ["d1"], "b": []}, "assignments": [0] * 6}),
        ("rankers", {"rankings": {"a": ["d1"]}}),
        ("no-rankings", {"rankings": None}),
        ("unknown-items", {"rankings": {"a": ["d1"], "b": ["x"], "c": []}}),
        ("repeated-items", {"rankings": {"a": ["d1"], "b": ["d2", "d2"], "c": []}}),
        ("assignments", {"assignments": [0, 1, 2]}),
        ("assignments", {"assignments": [0, 1, 2, 3, 0, 1]}),
        (
            "assignments",
            {
                "rankings": {"a": [], "b": ITEMS, "c": ITEMS[::-1]},
                "assignments": [0] * 6,
            },
        ),
        (
            "assignments",
            {"rankings": dict.fromkeys("abc", ITEMS), "assignments": [1] * 6},
        ),
    ],
)
def test_what_cannot_be_credited_is_counted_by_reason(
    reason: str, extra: dict[str, Any]
) -> None:
    """And credits nobody."""
    fold = PreferencesFold(EXPERIMENTS, 0)
    fold.take(closed_of(some_interactions(5, extra=extra)))
    (found,) = fold.comparisons()

    assert found.refusals == {reason: 5}
    assert not found.totals.any()
    assert not any(array.any() for s in found.sums.values() for array in s.arrays())
    assert fold.counters()["compared_refused"] == 5


def test_no_more_rankers_and_no_longer_rankings_than_are_said() -> None:
    """The most that is taken, and one more."""
    reader = ListReader()
    names = [f"r{i:03}" for i in range(MAX_RANKERS + 1)]
    many = [f"x{i:04}" for i in range(MAX_DEPTH + 1)]
    wide, deep = impression(items=ITEMS), impression(items=many, shown=many[:3])

    def read(one: Impression, rankings: dict[str, list[str]]) -> int:
        return len(reader.read(one, Extra(rankings=rankings)).names)

    assert read(wide, {name: ["d1"] for name in names[1:]}) == MAX_RANKERS
    with pytest.raises(Faulty, match="rankers"):
        read(wide, {name: ["d1"] for name in names})
    assert read(deep, {"a": many[1:], "b": []}) == 2
    with pytest.raises(Faulty, match="depth"):
        read(deep, {"a": many, "b": []})


def test_a_list_longer_than_was_asked_for_is_refused() -> None:
    """Its preferences could pass the bounds that were made before it."""
    short = msgspec.structs.replace(BOOST, length=5)
    fold = PreferencesFold({"boost": short}, 0)
    fold.take(closed_of(some_interactions(3)))

    assert fold.comparisons()[0].refusals == {"length": 3}


SPLIT = {"a": ITEMS[:3], "b": ITEMS[3:8]}
DRAFTED = {"a": ["d1", "d2", "d3"], "b": ["d1", "d4", "d5"]}


@pytest.mark.parametrize(
    ("method", "rankings", "shown", "teams", "is_possible"),
    [
        ("ab", SPLIT, ITEMS[:3], [0] * 3, True),
        ("ab", SPLIT, ITEMS[3:7], [1] * 4, True),  # four are asked for
        ("ab", SPLIT, ITEMS[3:6], [0] * 3, False),
        ("ab", SPLIT, ITEMS[:3], [0, 0, 1], False),
        ("ab", SPLIT, ITEMS[:3], [-1] * 3, False),
        ("ab", SPLIT, ITEMS[:2], [0] * 2, False),
        ("team-draft", DRAFTED, ["d1", "d4", "d2"], [-1, 1, 0], True),
        ("team-draft", DRAFTED, ["d1", "d4", "d2"], [-1, 0, 1], False),
        ("team-draft", DRAFTED, ["d1", "d4", "d2"], [0, 1, 0], False),
        ("team-draft", DRAFTED, ["d1", "d7", "d2"], [-1, 1, 0], False),
        ("team-draft", DRAFTED, ["d1", "d7", "d2"], [-1, -1, 0], True),
    ],
)
def test_teams_that_contradict_the_list_are_refused(
    method: str, rankings: dict, shown: list[str], teams: list[int], is_possible: bool
) -> None:
    """Nobody is credited with what another ranker, or everybody, returned."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method=method, length=4)
    extra = {
        "experiment": {"id": "x", "epoch": 1, "method": method},
        "rankings": rankings,
        "assignments": teams,
    }
    one = impression(items=ITEMS, shown=shown, extra=msgspec.msgpack.encode(extra))
    fold = PreferencesFold({"x": settings}, 0)
    fold.take(closed_of([Interaction(one, [ClickMark(2, START_MS, "click")])]))
    (found,) = fold.comparisons()

    assert found.refusals == ({} if is_possible else {"assignments": 1})
    assert found.sums[method].totals.any() == (is_possible and teams[1] >= 0)


def test_unknown_and_ended_experiments_credit_nobody() -> None:
    """Counted; an interaction of no experiment passes by."""
    other = {"experiment": {"id": "else", "epoch": 1, "method": "ab"}}
    timed = msgspec.structs.replace(BOOST, start_ms=START_MS + 1, end_ms=START_MS + 4)
    fold = PreferencesFold({"boost": timed}, 0)
    fold.take(closed_of(some_interactions(6)))
    fold.take(closed_of(some_interactions(2, extra=other)))
    fold.take(closed_of([Interaction(impression("plain"), [])]))
    (found,) = fold.comparisons()

    assert found.refusals == {"not-started": 1, "ended": 2}
    assert found.totals[0] == 3
    assert fold.counters()["compared_unknown"] == 2
    assert fold.counters()["compared_impressions"] == 8


def test_a_change_within_an_epoch_is_refused() -> None:
    """Loudly, with what to do."""
    fold = PreferencesFold(EXPERIMENTS, 0)
    fold.take(closed_of(some_interactions(1)))
    changed = {"boost": msgspec.structs.replace(BOOST, share=0.5)}
    with pytest.raises(ExperimentChanged, match="raise `epoch`"):
        PreferencesFold(changed, 0).restore(as_changes(state_of(fold)))


def test_methods_that_cannot_be_are_refused_at_the_start() -> None:
    """Twice the same, unknown ones, the wrong counterfactual, options of others."""
    senseless: list[dict[str, Any]] = [
        {"team-draft": {}},
        {"luck": {}},
        {"counterfactual:ab": {"examination": [1.0]}},
        {"counterfactual:team-draft": {}},
        {"counterfactual:team-draft": {"examination": [1.0]}},  # of three rankers
        {"sample-scored": {"luck": 1}},
        {"other:team-draft": {"luck": 1}},
        {"pairwise-preference": {}},
        {"probabilistic": {"tau": 3.0}},
    ]
    for also in senseless:
        with pytest.raises(ValueError, match="must"):
            PreferencesFold({"x": msgspec.structs.replace(BOOST, also=also)}, 0)
