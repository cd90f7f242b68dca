"""Corrected relevance on the command line: what it is made of, and what is refused."""

import json

import numpy as np
import pytest

from models.counts.scope_record import CAPPED, CONVERTED
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.choice import Unknown, asked_for
from models.estimators.registry import ESTIMATORS
from models.estimators.splits import Shares
from rankstream.operations.answers.curve import estimated_curve
from rankstream.operations.answers.relevance import query_gatherer, relevance_of
from rankstream.operations.answers.sources import LoggingPolicies
from rankstream.operations.commands.options.told_curve import curve_told
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    UNKNOWN,
    ClickMark,
    Interaction,
)
from rankstream.wire.exposures import pack_exposures
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics.reader import Statistics
from tests.event_factory import impression

GROUPS = 6
KEEP_MS = 1_000_000
WHOLE = LoggingPolicies()


def shown(items, *, clicked=(), unit=0, policy=DETERMINISTIC, **how):
    """A closed list of these items, with clicks on some of them."""
    candidates = how.pop("candidates", sorted(items))
    intervention = how.pop("intervention", "")
    one = impression(
        items=candidates,
        shown=list(items),
        query_id="q",
        unit=unit,
        policy=policy,
        intervention=intervention,
        **how,
    )
    marks = [ClickMark(items.index(item) + 1, 1, "click") for item in clicked]
    return Interaction(one, marks)


def statistics_of(interactions, groups=GROUPS):
    """What the real fold counts of them."""
    kept = StatisticsSettings(groups=groups)
    fold = StatisticsFold(LimitSettings(), kept, KEEP_MS, 0)
    fold.take(closed_of(list(interactions)))
    return Statistics((key, value) for _, key, value in fold.changes({}))


def by_item(statistics, curve, trust=WHOLE):
    """Relevance by item, and all of it."""
    found = relevance_of(statistics.columns(["q"]), curve, GROUPS, trust)
    return {row.item: row for row in found.items}, found


def test_policies_and_candidate_sets_are_added_up_by_item():
    """By hand: clicks over expected examination, each place as its policy says."""
    coin = pack_exposures(np.array([[0.75, 0.25], [0.25, 0.75]], "<f4"))
    log = [
        *(shown("ab", unit=i, clicked="a" if i < 3 else "") for i in range(4)),
        *(shown("cb", unit=i, clicked="b") for i in range(2)),
        *(
            shown("ba", unit=i, clicked="b", policy=LOGGED, exposures=coin)
            for i in range(4)
        ),
    ]
    rows, found = by_item(statistics_of(log), position_curve([1.0, 0.5]))
    # Of `a`: four times first, four times .75 first and .25 second.
    assert rows["a"].exposure == 4 + 4 * (0.75 + 0.25 * 0.5)
    assert rows["a"].relevance == pytest.approx(3 / 7.5)
    assert rows["b"].exposure == 4 * 0.5 + 2 * 0.5 + 4 * (0.25 + 0.75 * 0.5)
    assert rows["b"].relevance == pytest.approx(6 / 5.5)
    assert (rows["a"].impressions, rows["c"].impressions) == (8, 2)
    assert rows["c"].relevance == 0.0
    # Of twice that it was looked at: so many clicks would seldom all be missed.
    assert (rows["c"].low, rows["c"].reason) == (0.0, "")
    assert rows["c"].high == pytest.approx(-np.log(0.025) / 2.0)
    assert all(row.is_under_exposed for row in found.items)
    assert not found.warning


def test_sets_that_grow_have_the_items_that_were_shown():
    """Where a list names no candidates it says nothing of other items."""
    log = [
        shown(items, unit=i, is_open_set=True)
        for i, items in enumerate(("ab", "ab", "b"))
    ]
    rows, _ = by_item(statistics_of(log), position_curve([1.0, 0.5]))
    assert (rows["a"].impressions, rows["b"].impressions) == (2, 3)


def test_lists_of_unknown_policies_count_as_they_were_shown():
    """Beside known ones of their cell; by hand, and it is said of how many."""
    log = [
        *(shown("ab", unit=i, clicked="a") for i in range(3)),
        shown("ab", unit=2, clicked="b", policy=UNKNOWN),
        shown("ca", unit=4, clicked="a", policy=UNKNOWN, candidates=[*"abc"]),
    ]
    rows, found = by_item(statistics_of(log), position_curve([1.0, 0.5]))
    assert rows["a"].exposure == 4 + 0.5
    assert rows["a"].relevance == pytest.approx(4 / 4.5)
    # A list that did not show it says nothing of it.
    assert (rows["b"].impressions, rows["b"].relevance) == (4, 1 / 2)
    assert (rows["c"].impressions, rows["c"].relevance) == (1, 0.0)
    assert found.choice.estimator == "intervention-aware"
    assert "2 lists beside unknown policies by affine-shown" in found.chosen
    assert not found.remarks


def half_known(n_lists=60, length=2):
    """Lists of which every other one of each group says that any order was drawn."""
    candidates = [f"d{i:03}" for i in range(length)]
    coin = pack_exposures(np.full((length, length), 1.0 / length, "<f4"))
    for n in range(n_lists):
        turn = n // GROUPS % 2
        items = candidates if n % 4 < 2 else candidates[::-1]
        how = {"policy": LOGGED, "exposures": coin} if turn else {"policy": UNKNOWN}
        yield shown(
            items, unit=n % GROUPS, clicked=items[:1], candidates=candidates, **how
        )


def test_a_log_half_of_which_names_its_policies_is_joined_of_both_halves():
    """Though each group of its one scope has lists of both kinds; by hand."""
    log = [*half_known()]
    rows, found = by_item(statistics_of(log), position_curve([1.0, 0.5]))
    assert found.choice.estimator == "intervention-aware"
    assert "30 lists beside unknown policies by affine-shown" in found.chosen
    assert "nobody knows" not in found.chosen
    firsts = [one.impression.shown[:2] == b"\0\0" for one in log]
    unknown = [one.impression.policy == UNKNOWN for one in log]
    n_first = sum(x and y for x, y in zip(firsts, unknown, strict=True))
    exposure = 30 * 0.75 + n_first + 0.5 * (30 - n_first)
    assert rows["d000"].exposure == pytest.approx(exposure)
    assert rows["d000"].impressions == 60
    assert rows["d000"].relevance == pytest.approx(sum(firsts) / exposure)


def test_what_cannot_be_told_apart_is_said_with_its_share():
    """Long lists are added up, so all are as shown: of how many, and what to do."""
    curve = position_curve([1.0, *[0.5] * 199])
    _, found = by_item(statistics_of(half_known(length=200)), curve)
    assert found.choice.estimator == "affine-shown"
    assert "30 of 60 lists (50.0%) name their policy" in found.chosen
    assert "an `intervention` of their own, which is counted apart" in found.chosen
    assert "nobody knows" not in found.chosen


@pytest.mark.parametrize("flag", [CAPPED, CONVERTED])
def test_scopes_without_exposures_count_as_they_were_shown(flag):
    """Beside others, and alone: then nobody knows how lists came about."""
    log = [shown("ab", unit=i, clicked="b") for i in range(4)]
    chunks = [*statistics_of(log).columns(["q"])]
    marked = [
        x._replace(flags=x.flags | flag, expected=0.0 * x.expected) for x in chunks
    ]
    found = relevance_of([*chunks, *marked], position_curve([1.0, 0.5]), GROUPS, WHOLE)
    assert {row.item: row.impressions for row in found.items} == {"a": 8, "b": 8}
    assert {row.item: row.relevance for row in found.items} == {"a": 0.0, "b": 2.0}
    assert "4 lists beside unknown policies" in found.chosen
    alone = relevance_of(marked, position_curve([1.0, 0.5]), GROUPS, WHOLE)
    assert {row.item: row.relevance for row in alone.items} == {"a": 0.0, "b": 2.0}
    assert alone.choice.estimator == "affine-shown"


def mixed_log(policies=(DETERMINISTIC, UNKNOWN), intervention=""):
    """Lists in either order, of which some are of unknown policies."""
    rng = np.random.default_rng(5)
    for n in range(600):
        items = "ab" if rng.random() < 0.7 else "ba"
        liked = rng.random(2) < np.array([0.6, 0.3]) * [1.0, 0.5]
        clicked = [x for x, yes in zip(items, liked, strict=True) if yes]
        policy = policies[n % len(policies)]
        yield shown(
            items, clicked=clicked, unit=n, policy=policy, intervention=intervention
        )


@pytest.mark.parametrize("name", ESTIMATORS)
def test_who_asks_for_an_estimator_gets_its_values(name):
    """Those of the registry, of lists that it can take."""
    statistics, curve = statistics_of(mixed_log()), position_curve([1.0, 0.5])
    columns = [*statistics.columns(["q"])]
    found = relevance_of(columns, curve, GROUPS, WHOLE, estimator=name)
    unknown = asked_for(name).unknown
    (gathered,) = query_gatherer(GROUPS, name).of(columns)
    log, impressions = gathered.log, gathered.impressions
    values = ESTIMATORS[name].estimator(log, impressions, curve).values
    for row in found.items:
        assert row.relevance == values[gathered.items.index(row.item)]
        assert row.low < row.relevance < row.high
        assert row.degrees == (2 if unknown is Unknown.LEFT_OUT else GROUPS - 1)
    assert found.choice.estimator == name
    left_out = [each for each in found.remarks if "300 lists left out" in each]
    assert len(left_out) == (unknown is Unknown.LEFT_OUT)


@pytest.mark.parametrize(
    ("policies", "name"),
    [((DETERMINISTIC,), "intervention-aware"), ((UNKNOWN,), "affine-shown")],
)
def test_sums_and_the_registry_say_the_same(policies, name):
    """Values, support, intervals and effective clicks, of what is chosen."""
    statistics = statistics_of(mixed_log(policies))
    columns, curve = [*statistics.columns(["q"])], position_curve([1.0, 0.5])
    chosen = relevance_of(columns, curve, GROUPS, WHOLE)
    asked = relevance_of(columns, curve, GROUPS, WHOLE, estimator=name)
    assert chosen.choice.estimator == name
    assert chosen.effective_clicks == pytest.approx(asked.effective_clicks)
    for one, other in zip(chosen.items, asked.items, strict=True):
        assert one[4:7] == pytest.approx(other[4:7], rel=1e-9)
        assert one.item == other.item
        assert (one.clicked, one.degrees) == (other.clicked, other.degrees)
        assert one.exposure == pytest.approx(other.exposure)


def test_policies_chosen_from_clicks_are_corrected_each_by_itself():
    """As `rankstream evaluate` does; together they would be biased."""
    log = [
        *mixed_log((DETERMINISTIC,), "m@1.3"),
        *(shown("ba", unit=n, clicked="a" * (n % 3 == 0)) for n in range(300)),
    ]
    statistics, curve = statistics_of(log), position_curve([1.0, 0.5])
    rows, found = by_item(statistics, curve)
    (gathered,) = query_gatherer(GROUPS).of(statistics.columns(["q"]))
    told = gathered.log, gathered.impressions, curve
    values = {
        name: ESTIMATORS[name].estimator(*told).values
        for name in ("intervention-oblivious", "intervention-aware")
    }
    assert found.choice.estimator == "intervention-oblivious"
    assert rows["a"].relevance == values["intervention-oblivious"][0]
    assert abs(rows["a"].relevance - values["intervention-aware"][0]) > 1e-3
    assert np.isnan(rows["a"].low)
    assert "policies are known, and some were chosen from clicks" in found.chosen


def test_a_policy_that_learned_from_clicks_leaves_points_with_a_warning():
    """Unless its groups are known: then the others have intervals."""
    log = [
        shown("ab", unit=i % GROUPS, clicked="a", intervention="m@1.3")
        for i in range(60)
    ]
    statistics, curve = statistics_of(log), position_curve([1.0, 0.5])
    rows, found = by_item(statistics, curve)
    assert np.isnan(rows["a"].low)
    assert "'m@1.3' was chosen from clicks" in found.warning
    known = LoggingPolicies((), {"m@1.3": frozenset({0, 1})})
    rows, found = by_item(statistics, curve, known)
    assert rows["a"].impressions == 40
    assert rows["a"].degrees == 3
    assert not np.isnan(rows["a"].low)


def looked(n, second, rng, **how):
    """Lists in either order; rank 2 is looked at with this probability."""
    for i in range(n):
        items = "ab" if rng.random() < 0.5 else "ba"
        is_seen = rng.random(2) < (1.0, second)
        liked = rng.random(2) < 0.6
        clicked = [x for x, yes in zip(items, is_seen & liked, strict=True) if yes]
        yield shown(items, clicked=clicked, unit=i, **how)


def in_groups(log, wanted):
    """Those whose users are in these groups."""
    return [one for one in log if one.impression.unit % GROUPS in wanted]


def test_the_curve_is_estimated_from_the_validation_groups_alone():
    """Others look otherwise, and nobody sees it; up to scale, and it says so."""
    rng = np.random.default_rng(1)
    log = in_groups(looked(12_000, 0.4, rng), (2, 3))
    log += in_groups(looked(12_000, 0.9, rng), (0, 1, 4, 5))
    found = estimated_curve(statistics_of(log), Shares())
    curve, source = found.curve, found.source
    assert curve is not None
    assert curve.is_ratio_only
    assert curve.alpha == pytest.approx([1.0, 0.4], abs=0.05)
    assert source == "estimated from clicks of the validation groups, 2 to 3"


def test_the_curve_is_from_training_groups_too_where_validation_cannot_tell_it():
    """Too few clicks there, or too few groups to be split; it is said."""
    log = in_groups(looked(6_000, 0.4, np.random.default_rng(2)), (0, 1, 4, 5))
    found = estimated_curve(statistics_of(log), Shares())
    curve, source = found.curve, found.source
    assert curve is not None
    assert curve.alpha == pytest.approx([1.0, 0.4], abs=0.05)
    assert source.endswith(
        "training and validation groups, as those of the validation groups do not tell "
        "it"
    )
    few = statistics_of(looked(4_000, 0.4, np.random.default_rng(2)), groups=5)
    found = estimated_curve(few, Shares())
    curve, source = found.curve, found.source
    assert curve is not None
    assert source == "estimated from all clicks, as 5 groups cannot be split"


def test_there_is_no_curve_where_lists_never_change():
    """Clicks cannot tell where users look from what they like."""
    log = [shown("ab", unit=i, clicked="a") for i in range(5)]
    assert estimated_curve(statistics_of(log), Shares()).curve is None


def test_a_curve_is_told_by_numbers_or_by_a_file(tmp_path):
    """A list, or alpha and beta."""
    assert curve_told("1, .5,0.25").alpha.tolist() == [1.0, 0.5, 0.25]
    file = tmp_path / "curve.json"
    file.write_text(json.dumps([1.0, 0.5]))
    assert curve_told(str(file)).alpha.tolist() == [1.0, 0.5]
    file.write_text(json.dumps({"alpha": [0.4, 0.5], "beta": [0.6, 0.2]}))
    found = curve_told(str(file))
    expected = BiasCurve(np.array([0.4, 0.5]), np.array([0.6, 0.2]))
    assert found.beta.tolist() == expected.beta.tolist()


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ("1,0.5,1.5", "examination must lie in .* got 1.5 at rank 3"),
        ("1,,2", "numbers by rank such as 1,0.6,0.4"),
        ("nowhere.json", "cannot be read"),
    ],
)
def test_what_is_no_curve_is_refused_in_words(told, words):
    """With the rank, or with what a curve may be."""
    with pytest.raises(ValueError, match=words) as refused:
        curve_told(told)
    # The parser puts the option's name before the sentence.
    assert "--examination" not in str(refused.value)


@pytest.mark.parametrize(
    "held",
    [
        "3",
        '{"alpha": [1], "is_ratio_only": "true"}',
        '{"beta": [1]}',
        '{"alpha": ["x"]}',
        "{",
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, held):
    """In words as well."""
    file = tmp_path / "curve.json"
    file.write_text(held)
    with pytest.raises(ValueError, match=r"curve\.json"):
        curve_told(str(file))
