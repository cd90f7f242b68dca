"""Which estimator is unbiased when: by enumeration of all that a log could have been.

Equal to relevance to 1e-12 where that is proved; else what the policies' probabilities
make of it, which is far off.
"""

import numpy as np
import pytest

from models.estimators.doubly_robust import doubly_robust, item_regression
from models.estimators.item_estimates import NEVER_SHOWN
from models.estimators.policy_reward import click_weights_of
from models.estimators.registry import ESTIMATORS
from tests.laws.estimator_cases import (
    EXACT,
    POSITION,
    SELECTION,
    TRUST,
    case_of,
    enumerated,
)
from tests.laws.estimator_laws import (
    BIASES,
    BY_HAND,
    FIXED,
    is_biased_as_stated,
    is_exact_where_one_policy_is_blind,
    is_exact_with_other_groups_regression,
    is_exact_with_the_right_regression,
    is_unbiased,
    mean_after_clicks,
    one_item,
    own_rate,
    raises_small_averages,
    weighs_clicks_as_it_says,
)
from tests.laws.logged_clicks import outcomes, placement, plackett_luce
from tests.policies_in_memory import policy_reward

NAMES = [*ESTIMATORS]
EXACT_FOR = {
    # position, selection, trust, then two at a time, then all three
    "naive": ".......",
    "oblivious": "x......",
    "rerank": "xx.x...",  # given that it was shown
    "policy-aware": "xx.x...",
    "affine": "x.x.x..",
    "affine-shown": "xxxxxxx",  # given that it was shown
    "intervention-oblivious": "xxxxxxx",
    "intervention-aware": "xxxxxxx",
    "self-normalised": "xxxxxxx",  # given that it was shown
    "doubly-robust": "xxxxxxx",  # with any regression that is fixed
}


def options_of(name):
    """A fixed regression where one is asked for."""
    return {"regression": FIXED} if name == "doubly-robust" else {}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("column", "biases"), [*enumerate(BIASES)])
def test_the_table_of_who_is_unbiased_when(name, column, biases):
    """And the registry says the same."""
    entry = ESTIMATORS[name]
    is_exact = EXACT_FOR[name][column] == "x"
    assert is_exact == (entry.corrects >= set(biases))
    if is_exact:
        is_unbiased(entry.estimator, biases, **options_of(name))
    else:
        is_biased_as_stated(entry.estimator, name, biases)


@pytest.mark.parametrize(
    "name", ["intervention-oblivious", "intervention-aware", "doubly-robust"]
)
def test_lists_of_a_policy_that_is_blind_to_an_item_do_no_harm(name):
    """Others tell of it."""
    estimator = ESTIMATORS[name].estimator
    is_exact_where_one_policy_is_blind(estimator, **options_of(name))


def test_doubly_robust_is_exact_with_what_other_groups_say():
    """Whose clicks are independent of these."""
    estimator = ESTIMATORS["doubly-robust"].estimator
    is_exact_with_other_groups_regression(estimator, item_regression)


def test_doubly_robust_is_exact_with_the_right_regression():
    """With propensities that are wrong."""
    is_exact_with_the_right_regression(ESTIMATORS["doubly-robust"].estimator)


@pytest.mark.parametrize(
    ("name", "mean"),
    [
        ("intervention-oblivious", 0.5),
        ("policy-aware", 0.5),
        # Given a click, which is .25: (1 + .45) / 1.4; else .05 / .6.
        ("intervention-aware", 0.25 * 1.45 / 1.4 + 0.75 * 0.05 / 0.6),
        # Lists show it .5 of the time, then .25 * .9 + .75 * .1 = .3.
        ("naive", 0.5 * (0.5 + 0.3) / 2),
        ("oblivious", 0.5 * (0.5 + 0.3) / 2),
        ("affine", 0.5 * (0.5 + 0.3) / 2),
        # No value counts 0. A click first: 1, or .75 with .9 of another look.
        ("affine-shown", 0.25 * (1 - 0.9 * 0.25) + 0.25 * 0.1 * 0.25 + 0.5 * 0.1 * 0.5),
        ("rerank", 0.25 * (1 - 0.9 * 0.25) + 0.25 * 0.1 * 0.25 + 0.5 * 0.1 * 0.5),
    ],
)
def test_policies_that_were_chosen_from_clicks(name, mean):
    """Correcting each policy by itself stays exact; their mean does not."""
    found = mean_after_clicks(ESTIMATORS[name].estimator)
    assert abs(found - mean) < EXACT
    if name == "intervention-aware":
        assert round(found, 4) == 0.3214


@pytest.mark.parametrize("guess", [0.0, 0.3, 1.0])
def test_doubly_robust_is_exact_after_clicks_with_a_fixed_regression(guess):
    """Right or wrong."""
    estimator = ESTIMATORS["doubly-robust"].estimator
    assert abs(mean_after_clicks(estimator, lambda _: guess) - 0.5) < EXACT


@pytest.mark.parametrize("guess", [0.0, 0.5])
def test_after_clicks_a_policy_that_hides_an_item_biases_what_is_left(guess):
    """No click, and nobody sees it again: lists that would tell more are never shown.

    A click first, .25: (2 + .5) / 2; else what the first list says, 0 on average.
    """
    estimator = ESTIMATORS["intervention-oblivious"].estimator
    found = mean_after_clicks(estimator, otherwise=0.0)
    assert abs(found - 0.25 * 1.25) < EXACT
    estimator = ESTIMATORS["doubly-robust"].estimator
    found = mean_after_clicks(estimator, lambda _: guess, otherwise=0.0)
    assert abs(found - (0.25 * 1.25 + 0.125 * guess)) < EXACT


def test_doubly_robust_with_a_regression_of_the_same_clicks_is_biased():
    """One list that shows it half of the time: it is 1 if clicked, else 0: .25."""
    marks = {(0, 0): 0.5, (1, 0): 0.25, (1, 1): 0.25}
    mean = 0.0
    for (shown, clicked), chance in marks.items():
        log, impressions = one_item([(shown, clicked)], expected=[0.5])
        told = np.array([own_rate([(shown, clicked)])])
        curve = case_of(SELECTION).curve
        found = doubly_robust(log, impressions, curve, regression=told)
        mean += chance * found.values[0]
    assert abs(mean - 0.25) < EXACT
    assert abs(mean_after_clicks(doubly_robust, own_rate) - 0.275) < EXACT


def test_self_normalised_is_consistent_only():
    """With 0 where it was not shown its mean is P(ever shown) R; biased after clicks.

    Relevance .5, shown half of the time: .25 of one list, .4961 of seven.
    """
    estimator = ESTIMATORS["self-normalised"].estimator
    curve = case_of(SELECTION).curve
    for n in (1, 2, 7):
        mean = 0.0
        for index in np.ndindex((3,) * n):
            lists = [((0, 0), (1, 0), (1, 1))[which] for which in index]
            chance = np.prod([(0.5, 0.25, 0.25)[which] for which in index])
            log, impressions = one_item(
                lists, expected=[0.5] * n, policies=np.zeros(n, np.int64)
            )
            found = estimator(log, impressions, curve).values[0]
            mean += chance * np.nan_to_num(found)
        assert abs(mean - 0.5 * (1 - 0.5**n)) < EXACT
    assert mean_after_clicks(estimator) < 0.3


@pytest.mark.parametrize("name", NAMES)
def test_small_averages_are_raised_in_training_alone(name):
    """By hand, without and with a least one."""
    told = {"regression": np.array([0.3])} if name == "doubly-robust" else {}
    raises_small_averages(ESTIMATORS[name].estimator, BY_HAND[name], **told)


@pytest.mark.parametrize("name", NAMES)
def test_clicks_weigh_what_one_more_would_add(name):
    """So shares of clicks and effective numbers are of the value that is given."""
    told = {"regression": np.array([0.3])} if name == "doubly-robust" else {}
    weighs_clicks_as_it_says(ESTIMATORS[name].estimator, **told)


TARGET = plackett_luce({0: 1.0, 1: 2.0, 2: 9.0}, 2)


@pytest.mark.parametrize("name", ["intervention-oblivious", "intervention-aware"])
def test_the_reward_of_a_policy_is_the_clicks_that_it_would_get(name):
    """Those of all its lists with all that users may do."""
    case = case_of(POSITION, SELECTION, TRUST)
    clicks = sum(
        outcome.probability * sum(outcome.clicks)
        for outcome in outcomes(TARGET, case.users)
    )
    assert abs(_mean_reward(name, case) - clicks) < EXACT


def test_the_reward_of_reranking_leaves_out_what_was_not_shown():
    """It is P(ever shown) of what each item adds."""
    case = case_of(POSITION, SELECTION)
    unseen = np.ones(3)
    for one in case.lists:
        unseen *= 1.0 - placement(one.policy, 3, 2).sum(axis=1)
    worth = placement(TARGET, 3, 2) @ case.curve.alpha
    adds = worth * case.users.relevance
    found = _mean_reward("rerank", case)
    assert abs(found - ((1.0 - unseen) * adds).sum()) < EXACT
    assert adds.sum() - found > 0.05


def _mean_reward(name, case):
    every = enumerated(case)
    found = ESTIMATORS[name].estimator(every.log, every.impressions, case.curve)
    n_logs = len(every.chances)
    placed = np.tile(placement(TARGET, 3, 2), (n_logs, 1))
    weights = click_weights_of(case.curve)
    return policy_reward(found, placed, weights, np.repeat(every.chances, 3)).value


def test_what_no_policy_could_show_is_never_valued():
    """The reason is given, and the share of lists."""
    case = case_of(POSITION, SELECTION)
    every = enumerated(case)
    log = every.log._replace(expected=np.where(every.log.policies, 0.0, 0.5))
    found = ESTIMATORS["intervention-aware"].estimator(
        log, every.impressions, case.curve
    )
    assert (found.unseen == 0.5).all()
    log = log._replace(expected=0.0 * log.expected)
    found = ESTIMATORS["intervention-aware"].estimator(
        log, every.impressions, case.curve
    )
    assert {*found.reasons} == {NEVER_SHOWN}
    assert np.isnan(found.values).all()
