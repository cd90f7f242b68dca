"""Policies valued on a log of planted users: what is known of them comes back."""

import itertools
from typing import Any

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.choice import Unknown, asked_for
from models.estimators.intervals import FEW_CLICKS
from models.estimators.jackknife import TOO_FEW
from models.estimators.policy_reward import click_weights_of, dcg_weights
from models.estimators.registry import BY_GROUP, ESTIMATORS
from models.estimators.splits import Shares
from rankstream.wire.events import DETERMINISTIC, UNKNOWN, ClickMark, Interaction
from streams.estimation.curve_replicates import CurveReplicates, replicated_curve
from streams.estimation.evaluation import evaluated
from streams.estimation.logged_sets import sets_of
from streams.estimation.policy_rows import rows_of
from streams.estimation.question import LOGGED, Question
from streams.estimation.targets import Candidates, Placed, QueryRanking, RankingTarget
from streams.statistics.logged_queries import QueryGatherer
from tests.event_factory import impression
from tests.policies_in_memory import Valuation, compare_policies
from tests.streams.estimation.planted_users import (
    GROUPS,
    ITEMS,
    LOOKED,
    N_QUERIES,
    best_first,
    placements_of,
    planted,
    statistics_of,
)

EVERYBODY = tuple(range(GROUPS))
GIVEN = CurveReplicates(position_curve(LOOKED), "given")
USERS = planted(4_000, 21)
BEST = best_first(USERS.relevance)
DRAWN = {
    f"q{query}": QueryRanking(ITEMS, np.linspace(0.0, 2.0, len(ITEMS)))
    for query in range(N_QUERIES)
}
TARGETS = {"best": RankingTarget(BEST), "drawn": RankingTarget(DRAWN)}


def question(estimator="intervention-aware", curve=GIVEN, **how):
    """Clicks per list, of all groups."""
    whole = Question(asked_for(estimator), curve, click_weights_of, GROUPS, EVERYBODY)
    return whole._replace(**how)


def valued(estimator="intervention-aware", curve=GIVEN, targets=TARGETS, **how):
    """Figures of the planted users' log."""
    asked = question(estimator, curve, **how)
    found = evaluated(USERS.chunks(), targets, asked)
    assert found.comparison is not None
    return found.comparison, found.coverage


UNBIASED = [name for name, one in ESTIMATORS.items() if "selection" in one.corrects]


@pytest.mark.parametrize("name", [each for each in UNBIASED if each != "rerank"])
def test_intervals_cover_what_policies_are_worth(name):
    """Of both policies, and of how much better each is than what was logged."""
    found, coverage = valued(name)
    truths = [USERS.reward(placements_of(each)) for each in (BEST, DRAWN)]
    for i, truth in enumerate(truths, 1):
        assert found.rewards.low[i] < truth < found.rewards.high[i]
        assert found.rewards.errors[i] < 0.1 * truth
    assert found.differences.low[1] > 0.2
    assert found.rewards.degrees == GROUPS - 1
    assert (coverage.n_lists, coverage.n_queries) == (4_000, N_QUERIES)


def test_what_clicks_say_without_correction_is_far_outside():
    """Good items stood low, and on few lists."""
    found, _ = valued("naive")
    truth = USERS.reward(placements_of(BEST))
    assert found.rewards.high[1] < 0.6 * truth


def test_the_curve_of_clicks_does_as_well_and_its_error_counts():
    """In units of rank 1; intervals are wider than those of a curve that is known."""
    curve = replicated_curve(USERS.statistics.columns, GROUPS, Shares())
    assert curve is not None
    assert set(curve.without) == {8, 9}
    found, _ = valued(curve=curve)
    truth = USERS.reward(placements_of(BEST))
    assert found.rewards.low[1] < truth < found.rewards.high[1]
    known, _ = valued()
    fixed, _ = valued(curve=curve._replace(without={}))
    assert found.rewards.errors[1] > 1.1 * fixed.rewards.errors[1]
    assert found.rewards.values[1] == fixed.rewards.values[1]
    assert known.naive.values == found.naive.values


@pytest.mark.parametrize("name", ESTIMATORS)
def test_figures_are_those_of_one_log_in_memory(name):
    """Query by query or all at once; of what looks at other items, query by query."""
    whole, _ = valued(name)
    parts, _ = valued(name, cells_at_once=1)
    for one, other in zip(whole[2:], parts[2:], strict=True):
        assert one.values == pytest.approx(other.values, rel=1e-12)
        assert one.errors == pytest.approx(other.errors, rel=1e-9, abs=1e-12)
    if name in BY_GROUP:
        return
    how = QueryGatherer(EVERYBODY, GROUPS, Unknown.LEFT_OUT)
    (queries,) = how.of(USERS.chunks())
    shares = USERS.shares[queries.owners]
    lists = queries.lists_of_queries().sum(axis=0).astype(float)
    targets = {LOGGED: np.zeros((len(queries.items), len(LOOKED)))}
    for each in sets_of(queries):
        targets[LOGGED][each.items] = each.placed / each.lists.sum()
    for policy, rankings in (("best", BEST), ("drawn", DRAWN)):
        own = placements_of(rankings)
        numbers = [ITEMS.index(item) for item in queries.items]
        targets[policy] = own[queries.owners, numbers]
    valuation = Valuation(
        ESTIMATORS[name].estimator, lambda _: GIVEN.curve, click_weights_of, shares
    )
    in_memory = compare_policies(
        queries.log, queries.impressions, lists, targets, valuation, base=LOGGED
    )
    assert in_memory.names == whole.names
    for one, other in zip(in_memory.points, whole.points, strict=True):
        assert [*one] == pytest.approx([*other], rel=1e-9, abs=1e-12)
    for one, other in zip(in_memory[2:], whole[2:], strict=True):
        assert one.values == pytest.approx(other.values, rel=1e-9, abs=1e-12)
        assert one.errors == pytest.approx(other.errors, rel=1e-6, abs=1e-12)
        assert one.without == pytest.approx(other.without, rel=1e-9, abs=1e-12)


def test_what_was_logged_is_worth_its_clicks():
    """Under the estimator that takes all policies together, exactly."""
    found, coverage = valued()
    clicks = coverage.n_clicks / coverage.n_lists
    assert found.naive.values[0] == pytest.approx(clicks)
    assert found.rewards.values[0] == pytest.approx(clicks, rel=1e-6)
    assert found.differences.values[0] == 0.0


def test_differences_are_paired_and_from_the_base():
    """Known better than the rewards, whoever is the base."""
    found, _ = valued(base="drawn")
    rewards = found.rewards.values
    assert found.differences.values == pytest.approx(rewards - rewards[2])
    assert found.differences.errors[2] == 0.0
    unpaired = np.hypot(found.rewards.errors[1], found.rewards.errors[2])
    assert found.differences.errors[1] < 0.8 * unpaired


def test_groups_that_a_policy_was_made_of_are_left_out():
    """Values are of the others, and errors of these and of those of the curve."""
    free = (0, 1, 2, 3)
    found, coverage = valued(groups=free)
    of_free = sum(n for g, n in enumerate(lists_by_group()) if g in free)
    assert coverage.n_lists == of_free
    assert found.rewards.degrees == 3
    curve = replicated_curve(USERS.statistics.columns, GROUPS, Shares())
    assert curve is not None
    more, _ = valued(curve=curve, groups=free)
    assert more.rewards.degrees == 5
    fixed, _ = valued(curve=curve._replace(without={}), groups=free)
    assert more.rewards.errors[1] > fixed.rewards.errors[1]


def lists_by_group():
    """How many there are."""
    how = QueryGatherer(EVERYBODY, GROUPS, Unknown.LEFT_OUT)
    (queries,) = how.of(USERS.chunks())
    return np.sum(queries.lists_of_queries(), axis=0).tolist()


def of_units(*units):
    """Figures of a query with as many lists of each unit, most groups being empty."""
    log = []
    for number in range(12):
        for unit in units:
            shown = ["a", "b", "c"] if number % 2 else ["b", "c", "a"]
            marks = [ClickMark(1, 1, "click")] if (number + unit) % 3 else []
            one = impression(
                query_id="q0", items=[*ITEMS[:3]], shown=shown, unit=unit,
                policy=DETERMINISTIC,
            )  # fmt: skip
            log.append(Interaction(one, marks))
    statistics = statistics_of(log)
    targets = {"best": RankingTarget({"q0": QueryRanking(("b", "a", "c"))})}
    found: dict[str, Any] = {}
    for name in ESTIMATORS:
        chunks = statistics.columns(marks_mixed=True)
        found[name] = evaluated(chunks, targets, question(name)).comparison
    return found


@pytest.mark.filterwarnings("error")
def test_groups_of_nobody_are_no_evidence():
    """Two users are two, however many groups there are; of one nothing is known."""
    for found in of_units(0, 1).values():
        assert found.rewards.degrees == found.naive.degrees == 1
        assert np.isfinite(found.rewards.low).all()
    for found in of_units(0).values():
        assert {*found.rewards.reasons, *found.naive.reasons} == {TOO_FEW}
        assert np.isnan(found.rewards.low).all()
    # A curve that no group tells is the same without each of them.
    given = CurveReplicates(GIVEN.curve, "", dict.fromkeys(EVERYBODY, GIVEN.curve))
    statistics = hand_made()
    chunks = statistics.columns(marks_mixed=True)
    asked = question("naive", given, groups=(0, 1, 2))
    told = evaluated(chunks, {}, asked).comparison
    assert told is not None
    assert told.rewards.degrees == 2


def test_of_clicks_of_fewer_than_two_groups_there_is_no_interval():
    """No click, or those of one group: nobody is worse for what was not clicked."""
    log = []
    for unit in range(24):
        marks = [ClickMark(1, 1, "click")] if unit % 12 in (3, 4) else []
        marks += [ClickMark(2, 1, "click")] if unit % 12 == 5 else []
        one = impression(
            query_id="q0", items=[*ITEMS[:3]], shown=["a", "b", "c"], unit=unit,
            policy=DETERMINISTIC,
        )  # fmt: skip
        log.append(Interaction(one, marks))
    targets = {item: RankingTarget({"q0": QueryRanking((item,))}) for item in ITEMS[:3]}
    for name in ESTIMATORS:
        statistics = statistics_of(log)
        chunks = statistics.columns(marks_mixed=True)
        found = evaluated(chunks, targets, question(name)).comparison
        assert found is not None
        assert found.rewards.reasons == ("", "", FEW_CLICKS, FEW_CLICKS)
        assert np.isnan(found.rewards.low).tolist() == [False, False, True, True]
        assert np.isnan(found.differences.high).tolist() == [False, False, True, True]
        assert [row.verdict for row in rows_of(found, "")][2:] == ["", ""]
        assert found.naive.reasons == ("",)
    statistics = statistics_of([Interaction(each.impression, []) for each in log])
    chunks = statistics.columns(marks_mixed=True)
    found = evaluated(chunks, {}, question()).comparison
    assert found is not None
    assert found.rewards.reasons == found.naive.reasons == (FEW_CLICKS,)


def test_fewer_ranks_are_worth_less():
    """Of the targets; what was logged stays what it was."""
    whole, _ = valued()
    first, _ = valued(n_ranks=1)
    assert first.rewards.values[0] == whole.rewards.values[0]
    placed = placements_of(BEST)
    placed[:, :, 1:] = 0.0
    assert first.rewards.low[1] < USERS.reward(placed) < first.rewards.high[1]


def hand_made():
    """Two queries, one with lists of unknown policies and one that grows."""
    log = []
    for unit in range(40):
        shown = ["a", "b"] if unit % 2 else ["b", "a"]
        clicks = [ClickMark(1, 1, "click")] if unit % 4 == 0 else []
        common: dict[str, Any] = {
            "items": ["a", "b", "c"],
            "shown": shown,
            "unit": unit,
        }
        one = impression(query_id="known", policy=DETERMINISTIC, **common)
        log.append(Interaction(one, clicks))
        grows = impression(query_id="open", is_open_set=True, **common)
        log.append(Interaction(grows, clicks))
    dark = impression(query_id="known", policy=UNKNOWN, **common)
    log.append(Interaction(dark, [ClickMark(2, 1, "click")]))
    return statistics_of(log)


def of_hand_made(targets, estimator="intervention-aware", curve=GIVEN):
    """Figures of it."""
    statistics = hand_made()
    chunks = statistics.columns(marks_mixed=True)
    return evaluated(chunks, targets, question(estimator, curve))


def test_what_is_not_covered_is_counted():
    """Of queries that one policy lacks; cells with unknown lists are out for all."""
    target = RankingTarget({"known": QueryRanking(("c", "b", "x"))})
    found = of_hand_made({"half": target})
    n_cell = 4  # of group 3, beside the one that nobody knows
    assert found.coverage.lacking == {"half": 40}
    assert found.coverage.n_left_out == n_cell + 1
    assert found.coverage.n_all == 80 - n_cell
    assert found.coverage.n_lists == 40 - n_cell
    assert found.coverage.mixed == ("m",)
    assert found.comparison is not None
    # c was never shown: rank 1 of two.
    assert found.comparison.points[1].unsupported == pytest.approx(1 / 1.55)
    shallow = CurveReplicates(position_curve([1.0]), "given")
    beyond = of_hand_made({"half": target}, "naive", shallow).coverage
    assert (beyond.n_beyond, beyond.n_left_out) == (1, 0)


def test_where_a_policy_ranks_nothing_there_is_no_figure():
    """As of other queries."""
    for ranking in ({"other": QueryRanking(("a",))}, {"known": QueryRanking(("x",))}):
        found = of_hand_made({"none": RankingTarget(ranking)})
        assert found.comparison is None
        assert found.coverage.lacking == {"none": found.coverage.n_all}


def test_what_no_list_had_can_not_be_seen_and_takes_its_place():
    """Of lists without candidates anything could be shown."""
    target = RankingTarget({"open": QueryRanking(("new", "a"))})
    found = of_hand_made({"fresh": target}).comparison
    assert found is not None
    assert found.points[1].unsupported == pytest.approx(1 / 1.55)
    alone = RankingTarget({"open": QueryRanking(("a",))})
    first = of_hand_made({"fresh": alone}).comparison
    assert first is not None
    assert found.points[1].value == pytest.approx(0.55 * first.points[1].value)


def test_what_no_set_of_a_query_has_takes_its_place_in_closed_sets_too():
    """What other sets of it have was not to be had; "x" is in none."""
    target = RankingTarget({"known": QueryRanking(("x", "a"))})
    found = of_hand_made({"fresh": target}).comparison
    assert found is not None
    assert found.points[1].unsupported == pytest.approx(1 / 1.55)
    asked = Candidates("q", b"", False, ["a", "b"], 2, frozenset("abc"))
    both = RankingTarget({"q": QueryRanking(("c", "x", "a", "b"))}).placed(asked)
    assert both is not None
    assert both.items.tolist() == [[0.0, 1.0], [0.0, 0.0]]
    assert both.absent.tolist() == [1.0, 0.0]


def test_rankings_are_those_of_the_candidates():
    """Others are passed over; Plackett-Luce draws among those that are there."""
    asked = Candidates("q", b"", False, ["a", "b"], 2)
    fixed = RankingTarget({"q": QueryRanking(("x", "b", "a"))}).placed(asked)
    assert isinstance(fixed, Placed)
    assert fixed.items.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert fixed.absent.tolist() == [0.0, 0.0]
    scores = np.array([9.0, np.log(3.0), 0.0])
    drawn = RankingTarget({"q": QueryRanking(("x", "b", "a"), scores)}).placed(asked)
    assert drawn is not None
    assert drawn.items[:, 0] == pytest.approx([0.25, 0.75])


@pytest.mark.parametrize(
    ("targets", "how", "told"),
    [
        ({"logged": TARGETS["best"]}, {}, "no policy may be named 'logged'"),
        (TARGETS, {"base": "other"}, "one of logged, best, drawn; got 'other'"),
        (TARGETS, {"estimator": "other"}, "estimator must be one of naive"),
    ],
)
def test_bad_input_is_refused(targets, how, told):
    """With what it must be."""
    with pytest.raises(ValueError, match=told):
        valued(targets=targets, **how)


def test_other_weights_are_other_rewards():
    """DCG counts relevance, whoever looks."""
    found, _ = valued(weights_of=lambda curve: dcg_weights(curve.n_ranks))
    discounts = 1.0 / np.log2(np.arange(2.0, 5.0))
    placed = placements_of(BEST)
    truth = np.einsum("q,qir,r,qi->", USERS.shares, placed, discounts, USERS.relevance)
    assert found.rewards.low[1] < truth < found.rewards.high[1]


def test_the_largest_loss_is_that_of_the_worst_tastes():
    """Of all 2^n relevances of each query's items, weighed by lists; also the ratio."""
    found = evaluated(USERS.chunks(), TARGETS, question(base="drawn"))
    weights = {n: placements_of(x) @ LOOKED for n, x in (("b", BEST), ("d", DRAWN))}
    tastes = np.array([*itertools.product((0.0, 1.0), repeat=len(ITEMS))])
    lost = (tastes @ (weights["d"] - weights["b"]).T).max(axis=0)
    fall = found.falls["best"]
    assert fall.largest_loss == pytest.approx(USERS.shares @ lost, rel=1e-12)
    assert fall.least_ratio == pytest.approx((weights["b"] / weights["d"]).min())
    assert found.falls["drawn"] == (0.0, 1.0)
