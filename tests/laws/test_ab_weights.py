"""What an A/B comparison of three rankers estimates, over all lists it can draw."""

from itertools import combinations

import msgspec
import numpy as np
import pytest

from models.evaluation.sums import PreferenceSums
from models.interleaving.method import Shown
from models.interleaving.split import Split
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i:02}" for i in range(12)]
LISTS = {"a": ITEMS[:4], "b": ITEMS[4:8], "c": ITEMS[8:]}
CLICKED = {"a": 4, "b": 1, "c": 2}
"""Clicks on each ranker's list, whoever is shown it."""


def every_draw(lists: dict[str, list[str]]) -> PreferenceSums:
    """One impression for each list that can be drawn: all are as likely."""
    settings = ExperimentSettings(
        rankers=dict.fromkeys(lists, ""), method="ab", length=4
    )
    log = []
    for team, name in enumerate(sorted(lists)):
        if not lists[name]:
            continue
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": "ab"},
            "rankings": lists,
            "assignments": [team] * len(lists[name]),
        }
        one = impression(
            f"i{team}",
            items=ITEMS,
            shown=lists[name],
            extra=msgspec.msgpack.encode(extra),
        )
        places = range(1, CLICKED[name] + 1)
        marks = [ClickMark(place, START_MS, "click") for place in places]
        log.append(Interaction(one, marks))
    fold = PreferencesFold({"x": settings}, 0)
    fold.take(closed_of(log))
    (found,) = fold.comparisons()
    assert found.refusals == {}
    return found.sums["ab"]


def test_the_mean_is_the_difference_in_clicks_per_list() -> None:
    """4 - 1, 4 - 2, 1 - 2: a click weighs 3, as each list is shown that seldom."""
    sums = every_draw(LISTS)

    expected = [CLICKED[one] - CLICKED[other] for one, other in combinations("abc", 2)]
    assert expected == [3, 2, -1]
    assert sums.mean() == pytest.approx(np.array(expected, float), abs=1e-6)


def test_impressions_for_which_a_ranker_is_silent_compare_nobody() -> None:
    """Else the others were compared on queries of another kind than with it."""
    sums = every_draw(LISTS | {"c": []})

    assert sums.impressions.sum() == 0
    assert sums.mean().tolist() == [0.0, 0.0, 0.0]


def test_bounds_are_what_a_list_with_every_place_clicked_is_worth() -> None:
    """Of each list that can be drawn: reached, and never passed."""
    rankings = np.arange(12).reshape(3, 4)
    split = Split()
    largest = np.max(
        [
            np.abs(split.infer(Shown(rankings, row, np.full(4, team)), np.ones(4) > 0))
            for team, row in enumerate(rankings)
        ],
        axis=0,
    )

    assert largest.tolist() == split.bounds(rankings, 4).tolist()
    assert largest[0, 1] == 3 * 4
