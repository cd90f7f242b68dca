"""A/B differences that may be looked at any time: true, bounded, and told."""

import msgspec
import numpy as np
import pytest

from models.interleaving.method import Shown
from models.interleaving.split import Split
from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons.preference_fold import PreferencesFold
from streams.comparisons.verdicts import verdict_of
from streams.native.closed_impressions import closed_of
from tests.ends import ends_of
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i}" for i in range(6)]


def test_further_clicks_are_not_counted_and_the_bound_says_so() -> None:
    """From the top; with 0 all are."""
    rankings = np.array([[0, 1, 2], [2, 1, 0]])
    shown = Shown(rankings, np.array([0, 1, 2]), np.zeros(3, np.int64))
    clicks = np.array([True, True, True])
    for most, counted in ((0, 3), (1, 1), (2, 2), (9, 3)):
        split = Split(most_clicks=most)
        assert split.infer(shown, clicks)[0, 1] == 2 * counted
        assert split.bounds(rankings, 3)[0, 1] == 2 * counted
    with pytest.raises(ValueError, match="0 or more"):
        Split(most_clicks=-1)


def test_the_difference_is_covered_and_narrower_with_few_clicks() -> None:
    """Clicks on `a` at .5 a list, on `b` at .2; beside the interval for one look."""
    widths = []
    for options in ({}, {"most_clicks": 1}):
        settings = ExperimentSettings(
            rankers={"a": "", "b": ""}, method="ab", options=options
        )
        fold = PreferencesFold({"x": settings}, 0)
        rng = np.random.default_rng(0)
        log = []
        for i in range(3_000):
            found = combine("ab", {"a": ITEMS, "b": ITEMS[::-1]}, 6, seed=i)
            extra = {
                "experiment": {"id": "x", "epoch": 1, "method": "ab"},
                "rankings": found.rankings,
                "assignments": found.assignments,
                "session": f"s{i}",
            }
            packed = msgspec.msgpack.encode(extra)
            one = impression(f"i{i}", items=ITEMS, shown=found.shown, extra=packed)
            is_clicked = rng.random() < (0.5 if found.shown[0] == "d0" else 0.2)
            marks = [ClickMark(1, START_MS, "click")] if is_clicked else []
            log.append(Interaction(one, marks))
        fold.take(closed_of(log))
        (row,) = verdict_of(fold.comparisons()[0]).clicks_per_list
        low, high = ends_of(row, "came")
        assert 0.0 < low < 0.3 < high
        assert row.mean == pytest.approx(sum(ends_of(row, "fixed")) / 2)
        for other in ("fixed", "to_come"):
            inner_low, inner_high = ends_of(row, other)
            assert low < inner_low < 0.3 < inner_high < high
        widths.append(high - low)
    assert widths[1] < widths[0]
