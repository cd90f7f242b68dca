"""The meta-policy, case by case as the thesis has it, and with its gaps closed."""

from itertools import permutations, product

import numpy as np
import pytest

from models.decisions.meta_policy import (
    GENERAL,
    LOGGING,
    SPECIALISED,
    Rule,
    chosen_policies,
)

CASES = list(product([False, True], repeat=3))
"""Own over general, own over logging, logging over general."""


def chosen(rule, is_general_better):
    """Of all cases."""
    return chosen_policies(
        *np.array(CASES).T, is_general_better=is_general_better, rule=rule
    ).tolist()


def printed(case, is_general_better):
    """Eq. 8.24 as it stands, case after case."""
    over_general, over_logging, _ = case
    if over_general and over_logging:
        return SPECIALISED
    if not over_general and is_general_better:
        return GENERAL
    return LOGGING


def closed(case, is_general_better):
    """The same, but for a query whose own policy beats the general one alone."""
    if case[:2] == (True, False) and is_general_better:
        return GENERAL
    return printed(case, is_general_better)


def kept(case, is_general_better):
    """The closed rule, but for a query on which the logging policy beats the other."""
    found = closed(case, is_general_better)
    return LOGGING if found == GENERAL and case[2] else found


@pytest.mark.parametrize("is_general_better", [False, True])
@pytest.mark.parametrize("rule", [printed, closed, kept])
def test_each_rule_is_its_own(rule, is_general_better):
    """For all that can be known."""
    found = chosen(Rule(rule.__name__), is_general_better)
    assert found == [rule(case, is_general_better) for case in CASES]


def test_what_is_kept_is_never_served_what_is_worse_for_sure():
    """Than the logging policy; by the other rules a query may be."""
    served = {rule: chosen(rule, is_general_better=True) for rule in Rule}
    for case, choice in zip(CASES, served[Rule.KEPT], strict=True):
        if choice == GENERAL:
            assert not case[2]
        if choice == SPECIALISED:
            assert case[:2] == (True, True)
    for rule in (Rule.CLOSED, Rule.PRINTED):
        pairs = zip(CASES, served[rule], strict=True)
        assert any(choice == GENERAL and case[2] for case, choice in pairs)


def test_who_knows_the_truth_serves_no_query_less_than_logging():
    """All orders of three items by all policies: only what is kept is safe everywhere.

    Over these queries together the general policy is no better; it is served all the
    same, as it would be among others.
    """
    relevance, weights = np.array([0.9, 0.5, 0.2]), np.array([1.0, 0.63, 0.5])
    rewards = [relevance[[*order]] @ weights for order in permutations(range(3))]
    logging, general, own = np.array([*product(rewards, repeat=3)]).T
    of_policies = np.stack([logging, general, own])
    served = {}
    for rule in Rule:
        policies = chosen_policies(
            own > general,
            own > logging,
            logging > general,
            is_general_better=True,
            rule=rule,
        )
        served[rule] = np.choose(policies, of_policies)
    assert (served[Rule.KEPT] >= logging).all()
    assert (served[Rule.KEPT] >= served[Rule.CLOSED]).all()
    for rule in (Rule.CLOSED, Rule.PRINTED):
        assert (served[rule] < logging).any()
