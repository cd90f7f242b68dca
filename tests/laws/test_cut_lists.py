"""Click rates from lists that a service cut short, over all draws and clicks."""

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from models.evaluation.sums import SCALE
from models.interleaving.balanced import merged
from models.interleaving.counterfactual import Counterfactual
from models.interleaving.method import NO_ONE, Shown
from models.interleaving.registry import method_of
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons.health import health_of
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests import interleaving_cases as cases
from tests.event_factory import START_MS, impression

LENGTH, CUT = 4, 2
RANKINGS = np.array([[0, 1, 2, 3], [2, 0, 3, 1]])
THETA = np.array([1.0, 0.6, 0.4, 0.3])
RELEVANCE = np.array([0.5, 0.9, 0.4, 0.1])
METHODS = ["pairwise-preference", "team-draft", "balanced", "debiased-balanced"]

Cut = Callable[[Shown], float]
"""The chance that the service shows only the first `CUT` of a drawn list."""


def rate_difference(
    length: int, rankings: np.ndarray = RANKINGS, relevance: np.ndarray = RELEVANCE
) -> float:
    """Expected clicks on the first ranker's own list less those on the second's."""
    clicks = (THETA * relevance[rankings])[:, :length].sum(axis=1)
    return float(clicks[0] - clicks[1])


def drawn(method: str, rankings: np.ndarray = RANKINGS) -> cases.Lists:
    """Every list with its probability."""
    if method == "pairwise-preference":
        return cases.pairwise_lists(rankings, LENGTH)
    if method == "team-draft":
        return cases.draft_lists(rankings, LENGTH)
    return [
        (0.5, Shown(rankings, merged(rankings, LENGTH, first), cases.EMPTY))
        for first in (0, 1)
    ]


def half_of_the_devices(shown: Shown) -> float:
    """Whatever was drawn."""
    del shown
    return 0.5


def where_the_first_leads(shown: Shown) -> float:
    """Cut where the first ranker's best document stands on top."""
    return float(shown.shown[0] == RANKINGS[0, 0])


class Credited:
    """Impressions through the fold, one by one."""

    def __init__(self, method: str) -> None:
        self.method, self.beside = method, f"counterfactual:{method}"
        settings = ExperimentSettings(
            rankers={"a": "", "b": ""},
            method=method,
            also={self.beside: {"examination": THETA.tolist()}},
            length=LENGTH,
        )
        self.fold = PreferencesFold({"x": settings}, 0)
        (self.found,) = self.fold.comparisons()

    def take(self, shown: Shown, n_shown: int, place: int) -> float | None:
        """The estimate of a click at this place; None where there is none."""
        sums, items = self.found.sums[self.beside], [f"d{i}" for i in range(4)]
        total, n = sums.totals.sum(), sums.impressions.sum()
        extra: dict[str, Any] = {
            "experiment": {"id": "x", "epoch": 1, "method": self.method},
            "rankings": {
                name: [items[d] for d in row]
                for name, row in zip("ab", RANKINGS, strict=True)
            },
        }
        if len(shown.assignments):
            extra["assignments"] = shown.assignments[:n_shown].tolist()
        one = impression(
            items=items,
            shown=[items[d] for d in shown.shown[:n_shown]],
            extra=msgspec.msgpack.encode(extra),
        )
        click = ClickMark(place + 1, START_MS, "click")
        self.fold.take(closed_of([Interaction(one, [click])]))
        if sums.impressions.sum() == n:
            return None
        return float(sums.totals.sum() - total) / SCALE


def expected(credited: Credited, cut: Cut) -> float:
    """The mean estimate over impressions that have one. Clicks add up by place."""
    estimate = weight = 0.0
    for probability, shown in drawn(credited.method):
        chance = cut(shown)
        for n_shown, share in ((CUT, chance), (LENGTH, 1.0 - chance)):
            of_places = [
                credited.take(shown, n_shown, place)
                for place in range(n_shown)
                if share > 0.0
            ]
            for place, value in enumerate(of_places):
                if value is not None:
                    document = shown.shown[place]
                    looked = THETA[place] * RELEVANCE[document]
                    estimate += probability * share * looked * value
                    weight += probability * share / n_shown
    return estimate / weight


@pytest.mark.parametrize("method", METHODS)
def test_lists_that_were_cut_take_no_part(method: str) -> None:
    """Where the draw has no say in it, all others are a fair sample."""
    credited = Credited(method)
    found = expected(credited, half_of_the_devices)

    assert found == pytest.approx(rate_difference(LENGTH), abs=1e-5)
    n_lists = len(drawn(method))
    assert credited.found.refusals == {"cut-short": n_lists * CUT}
    (of_method, beside) = (credited.found.sums[n] for n in credited.found.methods)
    assert of_method.impressions.sum() == n_lists * (CUT + LENGTH)
    assert beside.impressions.sum() == n_lists * LENGTH
    assert credited.fold.counters()["compared_refused"] == 0
    (health,) = (c for c in health_of(credited.found, {}) if c.name == "refused")
    assert health.state == "alarm"
    assert health.detail == credited.found.refusals


@pytest.mark.parametrize("method", METHODS)
def test_a_cut_that_follows_the_draw_leaves_a_sample_that_is_not_fair(
    method: str,
) -> None:
    """No estimate of what is left could be: health raises an alarm."""
    credited = Credited(method)
    found = expected(credited, where_the_first_leads)

    assert abs(found - rate_difference(LENGTH)) > 0.02
    (health,) = (c for c in health_of(credited.found, {}) if c.name == "refused")
    assert health.state == "alarm"


def at_shown_depth(method: str, cut: Cut) -> float:
    """The mean estimate if each list had propensities of the depth that was shown."""
    counted = method_of(
        f"counterfactual:{method}", {"examination": THETA.tolist(), "length": 0}
    )
    assert isinstance(counted, Counterfactual)
    estimate = 0.0
    for probability, shown in drawn(method):
        n_shown = CUT if cut(shown) else LENGTH
        top = shown.shown[:n_shown]
        weights = counted.weights(Shown(RANKINGS, top, NO_ONE), n_shown)
        clicks = THETA[:n_shown] * RELEVANCE[top]
        estimate += probability * float((weights[0] - weights[1]) @ clicks)
    return estimate


def test_propensities_of_the_shown_depth_would_not_do() -> None:
    """Exact for tops of one depth, another quantity; wrong where the draw decides."""
    method = "pairwise-preference"
    is_cut = sum(p for p, shown in drawn(method) if where_the_first_leads(shown))
    mixed = is_cut * rate_difference(CUT) + (1.0 - is_cut) * rate_difference(LENGTH)

    assert at_shown_depth(method, lambda _: 1.0) == pytest.approx(rate_difference(CUT))
    assert rate_difference(CUT) != pytest.approx(rate_difference(LENGTH), abs=0.02)
    assert abs(at_shown_depth(method, where_the_first_leads) - mixed) > 0.02


def counted_anyway(
    method: str, rankings: np.ndarray, relevance: np.ndarray, n_shown: int
) -> list[tuple[bool, float, float]]:
    """Of each list: whether the first ranker's best leads, its chance, its estimate."""
    options = {"examination": THETA.tolist(), "length": LENGTH}
    counted = method_of(f"counterfactual:{method}", options)
    assert isinstance(counted, Counterfactual)
    found = []
    for probability, shown in drawn(method, rankings):
        top = shown.shown[:n_shown]
        weights = counted.weights(Shown(rankings, top, NO_ONE), LENGTH)
        clicks = THETA[:n_shown] * relevance[top]
        leads = bool(top[0] == rankings[0, 0])
        found.append((leads, probability, float((weights[0] - weights[1]) @ clicks)))
    return found


@pytest.mark.parametrize(
    ("method", "of_all_cut", "n_wrong", "of_those_left"),
    [
        ("pairwise-preference", 0.048, 10, 0.203),
        ("team-draft", 0.083, 18, 0.142),
        ("balanced", 0.083, 18, 0.152),
    ],
)
def test_cuts_shift_differences_by_as_much_as_is_said(
    method: str, of_all_cut: float, n_wrong: int, of_those_left: float
) -> None:
    """Two of four documents shown, 200 random cases; the numbers of the documents."""
    rng = np.random.default_rng(0)
    rows: list[tuple[float, bool, float]] = []
    while len(rows) < 200:
        rankings, relevance = cases.random_rankings(rng, 2, LENGTH), rng.random(LENGTH)
        if (rankings[0] == rankings[1]).all():
            continue
        truth = rate_difference(LENGTH, rankings, relevance)
        lists = counted_anyway(method, rankings, relevance, CUT)
        all_cut = sum(p * value for _, p, value in lists)
        lists = counted_anyway(method, rankings, relevance, LENGTH)
        assert sum(p * value for _, p, value in lists) == pytest.approx(truth)
        left = [(p, value) for leads, p, value in lists if not leads]
        kept = sum(p * value for p, value in left) / (sum(p for p, _ in left) or np.nan)
        rows.append((abs(all_cut - truth), all_cut * truth < 0.0, abs(kept - truth)))
    shift, is_wrong, bias = np.array(rows).T

    assert shift.mean() == pytest.approx(of_all_cut, abs=5e-4)
    assert is_wrong.sum() == n_wrong
    assert np.nanmean(bias) == pytest.approx(of_those_left, abs=5e-4)


def test_whose_list_of_one_ranker_was_cut_must_be_told() -> None:
    """Without teams a top of the longer list looks like the whole of the shorter."""
    lists = {"a": ["d0", "d1"], "b": ["d0"]}
    beside = "counterfactual:ab"
    settings = ExperimentSettings(
        rankers={"a": "", "b": ""},
        method="ab",
        also={beside: {"examination": [1.0, 0.5]}},
    )
    for teams, refusals, n_taken in (
        (None, {}, 0),
        ([0], {"assignments": 1}, 0),
        ([1], {}, 1),
    ):
        extra = {
            "experiment": {"id": "x", "epoch": 1, "method": "ab"},
            "rankings": lists,
        }
        if teams is not None:
            extra["assignments"] = teams
        packed = msgspec.msgpack.encode(extra)
        one = impression(items=["d0", "d1"], shown=["d0"], extra=packed)
        fold = PreferencesFold({"x": settings}, 0)
        fold.take(closed_of([Interaction(one, [])]))
        (found,) = fold.comparisons()

        assert found.refusals == refusals
        assert found.sums[beside].impressions.sum() == n_taken
