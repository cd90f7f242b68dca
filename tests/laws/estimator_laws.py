"""Laws of estimators, each a check of any code that claims to be one of them."""

import math
from itertools import product

import numpy as np

from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.click_log import ClickLog
from tests.laws.estimator_cases import (
    EXACT,
    POSITION,
    SELECTION,
    TRUST,
    Case,
    Listed,
    case_of,
    enumerated,
    logs_of,
    mean_if_biased,
)
from tests.laws.logged_clicks import plackett_luce

FIXED = np.array([0.6, 0.1, 0.9])
"""A regression that was made of nothing."""

BLIND = plackett_luce({0: 4.0, 1: 1.0, 2: 0.0}, 2)
"""A policy that never shows item 2."""

BIASES = [
    (POSITION,),
    (SELECTION,),
    (TRUST,),
    (POSITION, SELECTION),
    (POSITION, TRUST),
    (SELECTION, TRUST),
    (POSITION, SELECTION, TRUST),
]


def mean_of(estimator, case, **options):
    """Of each item over all logs of a case in which it has a value."""
    every = enumerated(case)
    if "regression" in options:
        told = np.array(options["regression"])[: case.n_items]
        options["regression"] = np.tile(told, len(every.chances))
    found = estimator(every.log, every.impressions, case.curve, **options)
    return every.mean(found.values)


def is_unbiased(estimator, biases, **options):
    """Each item's mean is its relevance."""
    case = case_of(*biases)
    mean = mean_of(estimator, case, **options)
    np.testing.assert_allclose(mean, case.users.relevance, rtol=0, atol=EXACT)


def is_biased_as_stated(estimator, name, biases):
    """Its mean is what the policies' probabilities say, and for some item far off."""
    case = case_of(*biases)
    mean = mean_of(estimator, case)
    np.testing.assert_allclose(mean, mean_if_biased(name, case), rtol=0, atol=EXACT)
    assert np.abs(mean - case.users.relevance).max() > 0.05


def is_exact_where_one_policy_is_blind(estimator, **options):
    """Of two policies one never shows item 2: the other's lists tell of it."""
    case = case_of(POSITION, SELECTION, TRUST)
    case = Case(case.users, [Listed(BLIND, 0), case.lists[1]])
    mean = mean_of(estimator, case, **options)
    np.testing.assert_allclose(mean, case.users.relevance, rtol=0, atol=EXACT)


def is_exact_with_other_groups_regression(estimator, regress):
    """Two groups, of which each is told by the other what to expect.

    Of two policies; of one name that drew lists in two ways; and with one that is blind
    to an item, whose group is told of it and has nothing to say.
    """
    case = case_of(POSITION, SELECTION, TRUST)
    first, second = case.lists
    for one, other in (
        (first, second),
        (first, second._replace(number=0)),
        (first._replace(policy=BLIND), second),
    ):
        two = Case(case.users, [one, other._replace(group=1)])
        every = enumerated(two)
        fitted = [regress(log, two.impressions, two.curve) for log, _ in logs_of(two)]
        assert np.ptp(fitted, axis=0).max() > 0.2
        told = {"regression": np.concatenate(fitted, axis=1)}
        found = estimator(every.log, every.impressions, two.curve, **told)
        mean = every.mean(found.values)
        np.testing.assert_allclose(mean, case.users.relevance, rtol=0, atol=EXACT)


def is_exact_with_the_right_regression(estimator):
    """Whatever propensities say: here half and twice what they are."""
    case = case_of(POSITION, SELECTION, TRUST)
    every = enumerated(case)
    wrong = np.resize([0.5, 2.0], len(every.log.expected))
    log = every.log._replace(expected=every.log.expected * wrong)
    told = {"regression": np.tile(case.users.relevance, len(every.chances))}
    found = estimator(log, every.impressions, case.curve, **told)
    mean = every.mean(found.values)
    np.testing.assert_allclose(mean, case.users.relevance, rtol=0, atol=EXACT)


def one_item(lists, *, expected, policies=None, groups=None):
    """A log of one item at rank 1: (shown, clicked) of each list."""
    n = len(lists)
    zeros = np.zeros(n, np.int64)
    policies = np.arange(n) if policies is None else np.array(policies)
    groups = zeros if groups is None else np.array(groups)
    shown, clicked = np.array(lists, np.int64).T
    log = ClickLog(
        groups, policies, zeros, zeros + 1, shown, clicked, np.array(expected, float)
    )
    impressions = np.zeros((groups.max() + 1, policies.max() + 1, 1))
    np.add.at(impressions, (groups, policies, 0), 1.0)
    return log, impressions


def mean_after_clicks(estimator, regression_of=None, otherwise=0.1):
    """E of two lists: the item is shown half of the time, then .9 if clicked.

    Else `otherwise`, which is not often. Relevance is .5 and looking is sure.
    """
    total = []
    marks = (0, 0), (1, 0), (1, 1)
    for lists in product(marks, repeat=2):
        later = 0.9 if lists[0][1] else otherwise
        chance = 1.0
        for (shown, _), alpha in zip(lists, (0.5, later), strict=True):
            chance *= alpha / 2 if shown else 1 - alpha
        log, impressions = one_item(lists, expected=(0.5, later))
        given = regression_of(lists) if regression_of else None
        options = {} if given is None else {"regression": np.array([given])}
        found = estimator(log, impressions, position_curve([1.0]), **options)
        total.append(chance * np.nan_to_num(found.values[0]))
    return math.fsum(total)


def own_rate(lists):
    """A regression of the same clicks: the rate of those that were shown."""
    shown, clicked = np.array(lists).sum(axis=0)
    return clicked / shown if shown else 0.0


def two_policies():
    """100 and 300 lists of one item at rank 2: log, impressions, curve.

    There alpha is .5 and beta .1; expected 40 and 30, shown 36 and 33, clicked 20 and
    12.
    """
    ones, two = np.ones(2, np.int64), np.arange(2)
    log = ClickLog(
        0 * ones, two, 0 * ones, 2 * ones,
        np.array([36, 33]), np.array([20, 12]), np.array([40.0, 30.0]),
    )  # fmt: skip
    curve = BiasCurve(np.array([0.7, 0.5]), np.array([0.2, 0.1]))
    return log, np.array([[[100.0], [300.0]]]), curve


def raises_small_averages(estimator, by_hand, **options):
    """In training, and not without it.

    A least average of .1 raises that of the second policy, .05; one of .6 that of the
    rank too.
    """
    for least, value in by_hand.items():
        found = estimator(*two_policies(), least=least, **options)
        assert abs(found.values[0] - value) < EXACT, (least, found.values[0], value)


def weighs_clicks_as_it_says(estimator, **options):
    """A click weighs what one more would add; their sums are those of the slopes."""
    log, impressions, curve = two_policies()
    wider = [np.append(column, column[:1]) for column in log[:7]]
    log = ClickLog._make([*wider, frozenset()])
    log.ranks[2], log.shown[2], log.clicked[2], log.expected[2] = 1, 9, 5, 8.0
    found = estimator(log, impressions, curve, **options)
    slopes = []
    for row in range(3):
        more = log._replace(clicked=log.clicked + (np.arange(3) == row))
        values = estimator(more, impressions, curve, **options).values
        slopes.append(values[0] - found.values[0])
    each = np.array(slopes)
    told = [table[0] for table in found.clicks]
    by_hand = [(log.clicked * each).sum(), (log.clicked * each**2).sum(), each.max()]
    np.testing.assert_allclose(told, by_hand, rtol=1e-9)
    assert abs(found.largest_share[0] - each.max() / by_hand[0]) < 1e-9
    assert abs(found.effective_clicks[0] - by_hand[0] ** 2 / by_hand[1]) < 1e-6


BY_HAND = {
    "naive": {0.0: 0.08, 0.1: 0.08},
    "oblivious": {0.0: 32 / 0.6 / 400, 0.1: 32 / 0.6 / 400, 0.8: 32 / 0.8 / 400},
    "rerank": {0.0: 32 / 0.6 / 69, 0.1: 32 / 0.6 / 69, 0.8: 32 / 0.8 / 69},
    "affine": {0.0: 25.1 / 0.5 / 400, 0.1: 25.1 / 0.5 / 400, 0.6: 25.1 / 0.6 / 400},
    "affine-shown": {0.0: 25.1 / 34.5, 0.1: 25.1 / 34.5, 0.6: 25.1 / 41.4},
    "policy-aware": {
        0.0: 0.25 * 0.2 / 0.24 + 0.75 * 0.04 / 0.06,
        0.1: 0.25 * 0.2 / 0.24 + 0.75 * 0.04 / 0.1,
    },
    "intervention-oblivious": {
        0.0: 0.25 * 16 / 20 + 0.75 * 9 / 15,
        0.1: 0.25 * 16 / 20 + 0.75 * 9 / 30,
    },
    "intervention-aware": {0.0: 25 / 35, 0.1: 25 / 40},
    "self-normalised": {
        0.0: (16.4 / 0.2 + 8.7 / 0.05) / (18 / 0.2 + 16.5 / 0.05),
        0.1: (16.4 / 0.2 + 8.7 / 0.1) / (18 / 0.2 + 16.5 / 0.1),
    },
    # With a regression of .3.
    "doubly-robust": {
        0.0: 0.3 + 0.25 * (16.4 - 5.4) / 20 + 0.75 * (8.7 - 4.95) / 15,
        0.1: 0.3 + 0.25 * (16.4 - 5.4) / 20 + 0.75 * (8.7 - 4.95) / 30,
    },
}
"""Values of the log of `raises_small_averages`, by least average."""
