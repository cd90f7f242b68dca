"""What settings ask of evidence: by which bound, how sure, and of whom."""

from functools import partial

from models.decisions.over_all_queries import over_all_queries
from models.evaluation.bounds.families import Bound, Confidence, confidence
from models.evaluation.session_rule import Rule, are_better
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
    return Judgements(
        partial(are_better, rule=rule), partial(over_all_queries, rule=of_all)
    )
