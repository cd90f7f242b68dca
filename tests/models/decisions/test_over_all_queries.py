"""What the general policy has to show over all queries, and which of it lacks."""

import math

import numpy as np
import pytest

from models.decisions.over_all_queries import (
    Lack,
    over_all_queries,
    paired_difference,
)
from models.estimators.intervals import FEW_CLICKS
from models.estimators.jackknife import TOO_FEW
from models.evaluation.bounds.families import Bound, mirrored
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_rule import Rule
from tests.difference_sums import stacked, sum_differences

WEIGHTS = np.array([1.0, -1.0])
N_GROUPS = 12
BY_LISTS = Rule(Bound.ONE_LOOK, is_by_session=False)
ONLY_WITHOUT_GROUPS = Rule(Bound.ONE_LOOK)


def sums_of(rates, n_lists=60, length=2):
    """Lists of groups that click the better of two items at these rates, alone.

    Clicks are as many as expected, rounded.
    """
    clicks, groups = [], []
    for group, rate in enumerate(rates):
        n_better = round(rate * n_lists)
        clicks += [[True, False]] * n_better + [[False, True]] * (n_lists - n_better)
        groups += [group] * n_lists
    return sum_differences(np.array(clicks), np.array(groups), WEIGHTS, length)


def alike(rate):
    """All groups have a rate, but for a list more or less."""
    return rate + np.tile([-1.0, 1.0], N_GROUPS // 2) / 60.0


def test_the_interval_leaves_out_one_group_at_a_time():
    """By the formula; rows of a group under several policies count as one."""
    rng = np.random.default_rng(0)
    parts = [
        sum_differences(
            rng.random((90, 2)) < 0.5, rng.integers(0, 5, 90), weights * WEIGHTS, 2
        )
        for weights in (1.0, 2.0)
    ]
    both, _ = stacked(parts)
    lists, totals = np.zeros((2, 5))
    np.add.at(lists, both.groups, both.interactions)
    np.add.at(totals, both.groups, both.totals)
    without = np.array(
        [np.delete(totals, g).sum() / np.delete(lists, g).sum() for g in range(5)]
    )
    error = math.sqrt(4 / 5 * ((without - without.mean()) ** 2).sum())
    found = paired_difference(both)
    assert found.values[0] == pytest.approx(totals.sum() / lists.sum())
    assert found.errors[0] == pytest.approx(error)
    # Student's quantile of 4 degrees of freedom.
    assert found.high[0] - found.values[0] == pytest.approx(2.776445 * error, rel=1e-6)


def test_groups_without_lists_say_nothing():
    """They would make few groups look like many that are alike."""
    few = sums_of(alike(0.6))
    other = few._replace(groups=few.groups * 3 + 2)
    for one, each in zip(paired_difference(few), paired_difference(other), strict=True):
        np.testing.assert_array_equal(one, each)


def test_all_is_shown_where_groups_agree():
    """And nothing of it the other way round."""
    sums = sums_of(alike(0.8))
    found = over_all_queries(sums, BY_LISTS)
    assert found.lacking == ()
    assert 0.0 < found.low < 0.6 < found.high
    assert over_all_queries(mirrored(sums), BY_LISTS).lacking == (
        Lack.BOUND,
        Lack.INTERVAL,
    )


def test_a_few_groups_of_one_taste_show_it_by_the_bound_alone():
    """Lists are many, and users of two groups in twelve outweigh all others."""
    sums = sums_of([1.0, 1.0, *[0.45, 0.55] * 5])
    found = over_all_queries(sums, BY_LISTS)
    assert found.lacking == (Lack.INTERVAL,)
    assert found.low < 0.0 < found.high


def test_groups_that_are_alike_show_it_by_the_interval_alone():
    """Lists are too few for the bound, and nobody is of another taste."""
    found = over_all_queries(sums_of(alike(0.57), n_lists=30), BY_LISTS)
    assert found.lacking == (Lack.BOUND,)
    assert found.low > 0.0


@pytest.mark.parametrize(
    ("rates", "rule", "lack"),
    [
        ([1.0, *alike(0.5)[1:]], Rule(Bound.ONE_LOOK, 0.2), Lack.GROUPS),
        ([*[0.75, 0.55] * 10], Rule(Bound.ONE_LOOK, 0.999), Lack.SESSIONS),
    ],
)
def test_of_the_bound_the_first_test_that_fails_is_told(rates, rule, lack):
    """Without a group of its own, or for sessions to come, where that is asked."""
    found = over_all_queries(sums_of(rates), rule)
    assert found.lacking[0] == lack
    assert (
        lack
        not in over_all_queries(
            sums_of(rates), rule._replace(is_by_session=False)
        ).lacking
    )


def test_clicks_of_one_group_have_no_interval():
    """The others would all be alike, and none of them speaks."""
    sums = sums_of(alike(0.9))
    is_first = sums.groups == 0
    silent = sums._replace(
        clicks=sums.clicks * is_first,
        totals=sums.totals * is_first,
        squares=sums.squares * is_first,
    )
    assert paired_difference(silent).reasons == (FEW_CLICKS,)
    found = over_all_queries(silent, BY_LISTS)
    assert Lack.INTERVAL in found.lacking
    assert (found.low, found.high) == (-math.inf, math.inf)
    alone = sums_of([0.9])
    assert paired_difference(alone).reasons == (TOO_FEW,)
    assert Lack.INTERVAL in over_all_queries(alone, BY_LISTS).lacking


@pytest.mark.parametrize("rule", [BY_LISTS, Rule()])
def test_without_a_list_nothing_is_shown(rule):
    """Nor where lists are of policies that do not support it, so that none is left."""
    none = DifferenceSums(*(column[:0] for column in sums_of([0.5])))
    found = over_all_queries(none, rule)
    assert found.lacking == (Lack.BOUND, Lack.INTERVAL)
