"""What settings ask of evidence: by which bound, how sure, and of whom."""

from functools import partial

import numpy as np

from models.arrays import Flags, Integers
from models.evaluation.bounds.families import Bound, Confidence, confidence
from models.evaluation.differences import DifferenceSums
from models.evaluation.session_rule import Rule, are_better, standing_over_queries
from rankstream.configuration.decisions import DecisionSettings
from streams.decisions.decide import Judgements


def rule_of(plan: DecisionSettings, n_sets: int) -> Rule:
    """What the difference of two policies on one query has to show.

    Parameters
    ----------
    n_sets
        Candidate sets of queries that are decided; what may err is divided by their
        number where the settings share it.
    """
    error = 1.0 - plan.confidence
    if plan.is_shared:
        error /= max(n_sets, 1)
    return Rule(
        Bound(plan.bound),
        1.0 - error,
        plan.planned,
        plan.is_by_session,
        plan.planned_lists,
    )


def confidence_of(rule: Rule) -> Confidence:
    """How sure bounds are that are shown beside a decision."""
    return confidence(rule.bound, rule.epsilon, rule.planned)


def judgements_of(plan: DecisionSettings, rule: Rule) -> Judgements:
    """When a policy counts as better, on one query and over all of them.

    Parameters
    ----------
    rule
        That of single queries; over all of them one comparison is made.
    """
    of_all = rule_of(plan, 1)

    def is_better(sums: DifferenceSums, starts: Integers) -> Flags:
        if not len(sums.groups):
            return np.zeros(len(starts) - 1, np.bool_)
        standing = standing_over_queries(sums, of_all)
        return standing.is_to_come if of_all.is_by_session else standing.is_bound

    return Judgements(partial(are_better, rule=rule), is_better)
