"""Differences of two rankers from lists of logging policies, by enumeration."""

import itertools
from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest

from models.arrays import Flags, Floats, Integers
from models.interleaving.logging_policy_credit import LoggingPolicy
from models.interleaving.method import NO_ONE, Shown
from models.logging_policy.compared_query import ComparedQuery, compared_query
from streams.native.placing import placements_of_scores
from tests.laws.enumerated_lists import clicks_of, lists_of, propensities_of
from tests.logging_experiments import coverage

THETA = np.array([1.0, 0.4])
RANKINGS = np.array([[0, 1, 2], [2, 1, 0]])
RELEVANCE = np.array([0.7, 0.3, 0.2])
QUERY: ComparedQuery = compared_query(RANKINGS, RELEVANCE, THETA)
METHOD = LoggingPolicy(examination=(1.0, 0.4), length=2)
FIRST = np.zeros(3)
AFTER = {False: np.array([0.5, 0.0, -0.5]), True: np.array([-3.0, 0.0, 3.0])}
"""The second policy, by whether the first list's item 0 was clicked."""


def outcomes(scores: Floats) -> Iterator[tuple[Integers, Flags, float]]:
    """Every list of a policy with every pattern of clicks, and how likely both are."""
    for each in lists_of(scores, len(THETA)):
        for clicks, chance in clicks_of(each.rows, QUERY):
            yield each.rows, clicks, each.chance * chance


@cache
def _under(scores: tuple[float, ...]) -> LoggingPolicy:
    return METHOD.under(np.array(scores))


def credit(scores: Floats, rows: Integers, clicks: Flags) -> float:
    """What the method says of one list."""
    shown = Shown(RANKINGS, rows, NO_ONE)
    return float(_under((*scores.tolist(),)).infer(shown, clicks)[0, 1])


def credits_of(scores: Floats) -> list[tuple[Integers, float, float]]:
    """Clicked rows of every outcome, its chance, and what the method says."""
    return [
        (rows[clicks], chance, credit(scores, rows, clicks))
        for rows, clicks, chance in outcomes(scores)
    ]


def means(*, is_chosen: bool) -> tuple[float, float]:
    """E of the mean over two lists: each by its own policy, and pooled."""
    own = both = 0.0
    later = {key: credits_of(scores) for key, scores in AFTER.items()}
    first = propensities_of(FIRST, THETA)
    for clicked, chance, found in credits_of(FIRST):
        key = bool((clicked == 0).any()) and is_chosen
        rho = 0.5 * (first + propensities_of(AFTER[key], THETA))
        ratios = QUERY.differences / rho
        for more, then, also in later[key]:
            own += chance * then * (found + also) / 2.0
            both += chance * then * (ratios[clicked].sum() + ratios[more].sum()) / 2.0
    return own, both


def test_policies_that_are_fixed_beforehand_tell_the_difference() -> None:
    """By own propensities and by pooled ones, as nothing depends on clicks."""
    assert QUERY.difference == pytest.approx(0.5)
    assert means(is_chosen=False) == pytest.approx((QUERY.difference,) * 2, abs=1e-12)


def test_where_clicks_choose_policies_only_own_propensities_do() -> None:
    """The pooled estimate is off by more than a tenth of the difference."""
    own, both = means(is_chosen=True)

    assert own == pytest.approx(QUERY.difference, abs=1e-12)
    assert abs(both - QUERY.difference) > 0.05


@pytest.mark.parametrize("scores", [FIRST, *AFTER.values()])
def test_bounds_are_reached_and_never_passed(scores: Floats) -> None:
    """Over all lists and clicks; they follow from rankings and scores alone."""
    bound = METHOD.under(scores).bounds(RANKINGS, 2)[0, 1]
    found = [abs(credit(scores, rows, clicks)) for rows, clicks, _ in outcomes(scores)]

    assert max(found) <= bound + 1e-12
    gains = QUERY.differences / propensities_of(scores, THETA)
    assert bound == pytest.approx(np.abs(gains).max())


def test_placements_may_be_those_of_the_core() -> None:
    """The same bits, so a fold credits as the models do."""
    scores = np.array([0.5, -1.0, 2.0])
    shown = Shown(RANKINGS, np.array([2, 0]), NO_ONE)
    clicks = np.ones(2, np.bool_)
    ours = METHOD.under(scores).infer(shown, clicks)

    assert (
        METHOD.under(scores, placements_of_scores).infer(shown, clicks) == ours
    ).all()


def test_drawn_lists_are_those_of_the_scores() -> None:
    """Four thousand draws against the probability of each list."""
    scores, rng = np.array([1.0, 0.0, -1.0]), np.random.default_rng(4)
    policy, n = METHOD.under(scores), 4_000
    counts: dict[tuple[int, ...], int] = {}
    for _ in range(n):
        rows = (*policy.combine(RANKINGS, 2, rng=rng).shown.tolist(),)
        counts[rows] = counts.get(rows, 0) + 1
    for each in lists_of(scores, 2):
        found = counts.get((*each.rows.tolist(),), 0) / n
        assert abs(found - each.chance) < 5.0 * np.sqrt(each.chance / n)


def test_sessions_that_taught_policies_are_not_judged() -> None:
    """The last groups of the statistics are, and their sessions fall apart evenly."""
    units = range(20_000)
    rests = [METHOD.judging(unit) for unit in units]
    judged = [unit for unit, rest in zip(units, rests, strict=True) if rest is not None]

    assert {unit % 20 for unit in judged} == {16, 17, 18, 19}
    groups = np.bincount([rest % 100 for rest in rests if rest is not None])
    assert (groups == len(judged) / 100).all()
    all_lists = LoggingPolicy(groups=0)
    assert [all_lists.judging(unit) for unit in (3, 19)] == [3, 19]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"groups": 4, "selection": 4}, "groups must be 0, or more"),
        ({"selection": 0}, "groups must be 0, or more"),
        ({"floor": 0.0}, "floor must lie between"),
        ({"examination": (0.0,)}, "examination must be numbers"),
    ],
)
def test_useless_options_are_refused(options: dict, said: str) -> None:
    """By name."""
    with pytest.raises(ValueError, match=said):
        LoggingPolicy(**options)


@pytest.mark.parametrize(
    ("per_session", "is_equal"), list(itertools.product((1, 5), (True, False)))
)
def test_intervals_hold_though_the_policy_changed_twice(
    per_session: int, is_equal: bool
) -> None:
    """At one look as often as promised, at any time always; single sessions exactly.

    A standard error of 40 experiments is .034; `tests.long_run_logging_policy` has
    a thousand.
    """
    found = coverage(40, per_session, is_equal=is_equal, seed=3)

    assert found.sessions > 0.95 - 3.0 * 0.035
    assert found.came >= 0.95
    assert found.width < 0.4
