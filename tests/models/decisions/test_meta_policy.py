"""The meta-policy, case by case as the thesis has it, and with its gap closed."""

from itertools import product

import numpy as np
import pytest

from models.decisions.meta_policy import (
    GENERAL,
    LOGGING,
    SPECIALISED,
    Rule,
    chosen_policies,
)

CASES = list(product([False, True], repeat=2))


def printed(case, is_general_better):
    """Eq. 8.24 as it stands, case after case."""
    over_general, over_logging = case
    if over_general and over_logging:
        return SPECIALISED
    if not over_general and is_general_better:
        return GENERAL
    return LOGGING


@pytest.mark.parametrize("is_general_better", [False, True])
def test_the_printed_rule_is_the_printed_one(is_general_better):
    """For all that can be known."""
    over_general, over_logging = np.array(CASES).T
    found = chosen_policies(
        over_general,
        over_logging,
        is_general_better=is_general_better,
        rule=Rule.PRINTED,
    )
    assert found.tolist() == [printed(case, is_general_better) for case in CASES]


@pytest.mark.parametrize("is_general_better", [False, True])
def test_closing_the_gap_changes_one_case_alone(is_general_better):
    """That of a query whose own policy beats the general one and not the other."""
    over_general, over_logging = np.array(CASES).T
    found = chosen_policies(
        over_general, over_logging, is_general_better=is_general_better
    )
    for case, choice in zip(CASES, found.tolist(), strict=True):
        expected = printed(case, is_general_better)
        if case == (True, False) and is_general_better:
            assert expected == LOGGING
            expected = GENERAL
        assert choice == expected
