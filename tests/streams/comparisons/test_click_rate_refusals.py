"""Estimates of click rates take nothing from lists that cannot tell them."""

from typing import Any

import msgspec
import pytest

from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons.health import health_of
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i}" for i in range(8)]
APART = {"a": ["d0", "d1"], "b": ["d2", "d3"]}
ALIKE = {"a": ["d0", "d1"], "b": ["d1", "d0"]}


def folded(
    method: str, lists: dict[str, list[str]], length: int = 2, *, is_mixed: bool = False
) -> PreferencesFold:
    """A clicked impression, its click rates estimated beside; maybe a foreign item."""
    beside = {f"counterfactual:{method}": {"examination": [1.0, 0.9, 0.8, 0.7]}}
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""}, method=method, also=beside, length=length
    )
    found = combine(method, lists, length - is_mixed, seed=0)
    extra: dict[str, Any] = {
        "experiment": {"id": "x", "epoch": 1, "method": method},
        "rankings": found.rankings,
    }
    if found.assignments is not None:
        extra["assignments"] = [-1] * is_mixed + found.assignments
    shown = ["d7"] * is_mixed + found.shown
    one = impression(items=ITEMS, shown=shown, extra=msgspec.msgpack.encode(extra))
    fold = PreferencesFold({"x": settings}, 0)
    fold.take(closed_of([Interaction(one, [ClickMark(2, START_MS, "click")])]))
    return fold


METHODS = ["team-draft", "balanced", "debiased-balanced", "pairwise-preference", "ab"]


@pytest.mark.parametrize("method", METHODS)
def test_rankings_that_cannot_be_shown_whole_are_refused(method: str) -> None:
    """By what draws two documents of four; with all of them nothing is."""
    is_refused = method not in ("pairwise-preference", "ab")
    for length, reasons in ((2, {"never-shown": 1} if is_refused else {}), (4, {})):
        fold = folded(method, APART, length)
        (found,) = fold.comparisons()
        counters, sums = fold.counters(), found.sums

        assert found.refusals == reasons
        assert sums[method].impressions.sum() == 1
        beside = sums[f"counterfactual:{method}"]
        assert beside.impressions.sum() == (not reasons)
        assert beside.totals.any() == (not reasons)
        assert (counters["compared_credited"], counters["compared_refused"]) == (1, 0)
        (health,) = (c for c in health_of(found, {}) if c.name == "refused")
        assert (health.value, health.detail) == (float(bool(reasons)), reasons)


@pytest.mark.parametrize("method", METHODS[:-1])
def test_items_of_others_move_documents_to_other_ranks(method: str) -> None:
    """The method itself goes by the drawn list; propensities are of shown ranks."""
    (found,) = folded(method, ALIKE, 3, is_mixed=True).comparisons()

    assert found.refusals == {"foreign-items": 1}
    assert found.sums[method].impressions.sum() == 1
    assert not found.sums[f"counterfactual:{method}"].impressions.any()
