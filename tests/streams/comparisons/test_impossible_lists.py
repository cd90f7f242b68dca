"""Lists that cannot have been drawn credit nobody; foreign items take no place."""

from typing import Any

import msgspec
import numpy as np
import pytest

from models.evaluation.conclusion import clustered_half_widths
from models.evaluation.sums import PreferenceSums
from models.interleaving.method import Method, Shown
from models.interleaving.possible_lists import is_possible
from rankstream.ranking.multileaving import Multileaving, multileave
from rankstream.settings import ExperimentSettings
from rankstream.wire.events import ClickMark, Interaction
from streams.comparisons import comparison
from streams.comparisons.comparison import Comparison
from streams.comparisons.health import LEAST_COVERAGE, WELL_JOINED, health_of
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from tests.event_factory import START_MS, impression

ITEMS = [f"d{i}" for i in range(8)]
LISTS = {"a": ["d0", "d1", "d2", "d3"], "b": ["d1", "d2", "d3", "d0"]}


def folded(
    method: str, shown: list[str], clicked: int, teams: list[int] | None = None
) -> Comparison:
    """One impression of an experiment."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method=method)
    extra: dict[str, Any] = {
        "experiment": {"id": "x", "epoch": 1, "method": method},
        "rankings": LISTS,
    }
    if teams is not None:
        extra["assignments"] = teams
    one = impression(items=ITEMS, shown=shown, extra=msgspec.msgpack.encode(extra))
    fold = PreferencesFold({"x": settings}, 0)
    fold.take(closed_of([Interaction(one, [ClickMark(clicked, START_MS, "click")])]))
    return fold.comparisons()[0]


@pytest.mark.parametrize(
    ("method", "shown", "teams"),
    [
        ("pairwise-preference", ["d3", "d1", "d2", "d0"], None),
        ("balanced", ["d0", "d2", "d1", "d3"], None),
        ("debiased-balanced", ["d1", "d2", "d3", "d0"], None),
        ("optimized", ["d2", "d0", "d1", "d3"], None),
        ("sample-scored", ["d0", "d3", "d1", "d2"], None),
        ("team-draft", ["d0", "d1", "d2", "d3"], [0, 0, 1, 1]),
        ("team-draft", ["d0", "d1", "d2", "d3"], [0, -1, 0, 1]),
    ],
)
def test_what_cannot_have_been_drawn_is_refused(
    method: str, shown: list[str], teams: list[int] | None
) -> None:
    """Counted by its reason, seen in health."""
    found = folded(method, shown, 1, teams)

    assert found.refusals == {"impossible-list": 1}
    assert not found.sums[method].impressions.any()
    (refused,) = (c for c in health_of(found, {}) if c.name == "refused")
    assert refused.state == "alarm"


def test_what_warms_up_goes_through_the_whole_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A repeated document is refused before anything is compiled for its list."""
    asked: list[Shown] = []

    def spied(method: Method, shown: Shown) -> bool:
        asked.append(shown)
        return is_possible(method, shown)

    monkeypatch.setattr(comparison, "is_possible", spied)
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method="team-draft")
    Comparison("x", settings)

    assert [len(each.assignments) for each in asked] == [2, 0]
    assert all(sorted(each.shown) == [0, 1] for each in asked)


def test_a_foreign_item_takes_no_place() -> None:
    """The same credit as without it; one place lower another pair would count."""
    name, drawn = "pairwise-preference", ["d1", "d0", "d2", "d3"]
    for place in (2, 4):  # the pair of d3 and d0 counts from the third place on
        plain = folded(name, drawn, place).sums[name]
        mixed = folded(name, ["d7", *drawn], place + 1).sums[name]

        assert plain.totals.any() == (place == 2)
        np.testing.assert_array_equal(mixed.totals, plain.totals)


def test_merging_keeps_the_last_time_whatever_the_order() -> None:
    """Of both partitions."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""})
    for mine, theirs in ((5, 9), (9, 5)):
        one, other = Comparison("x", settings), Comparison("x", settings)
        one.first_ms, one.last_ms = 1, mine
        other.first_ms, other.last_ms = 1, theirs
        one.merge(other)
        assert one.last_ms == 9


def test_merging_adds_refusals_by_reason() -> None:
    """Of both partitions."""
    settings = ExperimentSettings(rankers={"a": "", "b": ""})
    one, other = Comparison("x", settings), Comparison("x", settings)
    for reason in ("length", "length"):
        one.refuse(reason)
    for reason in ("length", "depth", "depth"):
        other.refuse(reason)
    one.merge(other)
    assert one.refusals == {"length": 3, "depth": 2}


def test_the_limits_of_health_are_those_that_are_said() -> None:
    """Just above is ok, just below a warning."""
    assert (WELL_JOINED, LEAST_COVERAGE) == (0.95, 0.3)
    settings = ExperimentSettings(rankers={"a": "", "b": ""}, method="team-draft")
    for possible, lost, state in ((30, 5, "ok"), (29, 6, "warning")):
        found = Comparison("x", settings)
        found.totals[0] = 100
        found.sums["team-draft"].possible[0, 8] = possible
        outcomes = {"consumed": 200, "applied_clicks": 100 - lost, "late": lost}
        checks = {c.name: c.state for c in health_of(found, outcomes)}
        assert checks["coverage"] == state
        assert checks["join rate"] == state


def test_two_groups_have_one_degree_of_freedom() -> None:
    """By hand: totals 1 and 3 of one impression each; t is 12.706 then."""
    sums = PreferenceSums.empty(2)
    for group, value in enumerate((1.0, 3.0)):
        sums.add(
            np.array([[0.0, value], [-value, 0.0]]),
            np.array([[0, 4.0], [4.0, 0]]),
            group,
        )
    assert clustered_half_widths(sums, 0.05)[0] == pytest.approx(12.7062, rel=1e-4)
    # spread: ((1 - 2)^2 + (3 - 2)^2) * 2 / 1 = 4; its root over two impressions: 1


def test_a_list_shorter_than_what_all_share_stays_short() -> None:
    """And equal scores stand in another order with another seed, alike for all."""
    equal, draft = np.zeros((6, 3)), Multileaving(2, "team-draft")
    firsts = set()
    for seed in range(20):
        rng = np.random.default_rng(seed)
        found = multileave(equal, draft, cutoff=2, rng=rng)
        assert len(found.order) == len(found.teams) == 2
        assert (found.teams == -1).all()
        assert (found.ranks == found.ranks[:, :1]).all()
        firsts.add(int(found.order[0]))
    assert len(firsts) > 3
