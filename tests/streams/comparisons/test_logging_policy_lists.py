"""Lists of a logging policy in the fold: credited by their scores, or refused."""

from typing import Any

import msgspec
import numpy as np
import pytest

from models.interleaving.method import NO_ONE, Shown
from models.interleaving.registry import method_of
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import (
    MULTILEAVE,
    PLACKETT_LUCE,
    ClickMark,
    Impression,
    Interaction,
)
from streams.comparisons.comparison import Comparison
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression

ITEMS = ["d0", "d1", "d2"]
LISTS = {"a": ["d0", "d1", "d2"], "b": ["d2", "d1", "d0"]}
OPTIONS = {"examination": [1.0, 0.5]}
SCORES = np.array([0.5, -1.0, 0.25], "<f4")
BOOST = ExperimentSettings(
    rankers={"a": "", "b": ""}, method="logging-policy", length=2, options=OPTIONS,
    also={"all:logging-policy": {"groups": 0}},
)  # fmt: skip
JUDGING, TEACHING = 16, 15
"""Hashes of sessions of a selection group, and of the last group before."""


def logged(unit: int, lists: dict[str, list[str]] = LISTS, **fields: Any) -> Impression:
    """A list of two by the scores."""
    extra = {
        "experiment": {"id": "x", "epoch": 1, "method": "logging-policy"},
        "rankings": lists,
        "session": "s",
    }
    changes: dict[str, Any] = {
        "items": ITEMS, "shown": ["d2", "d0"], "policy": PLACKETT_LUCE,
        "scores": SCORES.tobytes(), "extra": msgspec.msgpack.encode(extra), **fields,
    }  # fmt: skip
    return msgspec.structs.replace(impression(**changes), unit=unit)


def folded(*lists: Impression, experiment: ExperimentSettings = BOOST) -> Comparison:
    """What is counted where the first place of each list was clicked."""
    fold = PreferencesFold({"x": experiment}, 0)
    clicks = [ClickMark(1, START_MS, "click")]
    fold.take(closed_of([Interaction(one, clicks) for one in lists]))
    (found,) = fold.comparisons()
    return found


def test_a_click_counts_what_the_policy_says() -> None:
    """Of a selection group in both sums, of another in those of all lists alone."""
    found = folded(logged(JUDGING), logged(TEACHING))
    method = method_of("logging-policy", {**OPTIONS, "length": 2})
    shown = Shown(np.array([[0, 1, 2], [2, 1, 0]]), np.array([2, 0]), NO_ONE)
    under = method.under(SCORES.astype(np.float64))  # type: ignore[attr-defined]
    expected = under.infer(shown, np.array([True, False]))[0, 1]

    assert found.refusals == {}
    assert expected < -0.5
    own, every = found.sums["logging-policy"], found.sums["all:logging-policy"]
    assert (own.impressions.sum(), every.impressions.sum()) == (1, 2)
    assert own.mean()[0] == pytest.approx(expected, abs=1e-6)
    assert every.mean()[0] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": MULTILEAVE, "scores": b""},
        {"items": [*ITEMS, "d3"], "scores": np.zeros(4, "<f4").tobytes()},
        {"scores": np.array([0.0, np.inf, 0.0], "<f4").tobytes()},
    ],
)
def test_lists_of_no_known_policy_are_refused(fields: dict[str, Any]) -> None:
    """Without scores; with items that nobody returned; with scores that are none."""
    found = folded(logged(JUDGING, **fields))

    assert found.refusals == {"policy": 1}
    assert not found.sums["all:logging-policy"].impressions.any()


def test_a_cut_list_is_not_credited() -> None:
    """The place that is missing might have been clicked."""
    found = folded(logged(JUDGING, shown=["d2"]))

    assert found.refusals == {"cut-short": 2}


@pytest.mark.parametrize(
    "lists",
    [
        {"a": ["d0", "d1", "d2"], "b": ["d0", "d1", "d2"]},
        {"a": ["d0", "d1", "d2"], "b": ["d0", "d1"]},
    ],
)
def test_rankers_that_do_not_differ_tell_nothing(lists: dict[str, list[str]]) -> None:
    """Whatever was clicked: nothing was possible, and the mean is 0."""
    found = folded(logged(JUDGING, lists)).sums["logging-policy"]

    assert found.impressions.sum() == 1
    assert not found.possible_impressions().any()
    assert not found.totals.any()


def test_rankers_that_share_no_item_and_one_candidate_are_credited() -> None:
    """All of a list is gained or lost; a list of one item is shown for sure."""
    apart = folded(logged(JUDGING, {"a": ["d0", "d1"], "b": ["d2"]}))
    alone = folded(
        logged(
            JUDGING, {"a": ["d0"], "b": []}, items=["d0"], shown=["d0"],
            scores=np.zeros(1, "<f4").tobytes(),
        )
    )  # fmt: skip

    assert apart.sums["logging-policy"].mean()[0] < -1.0
    assert alone.refusals == {}
    assert alone.sums["logging-policy"].impressions.sum() == 1


def test_its_lists_have_no_other_credit() -> None:
    """Nor a counterfactual one, as its own is that already."""
    beside = {"counterfactual:logging-policy": {"examination": [1.0]}}
    experiment = msgspec.structs.replace(BOOST, also=beside)

    with pytest.raises(ValueError, match="exposures are exact"):
        folded(experiment=experiment)
