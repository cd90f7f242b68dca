"""Decides, candidate set by candidate set, which of three policies is served.

The policy of one query orders items by what training groups clicked; that of all
queries, and the logging one, are declared. Selection groups alone tell which of two is
better, so that no policy is judged by clicks that it knows.

References
----------
Oosterhuis & de Rijke (WWW 2021); Oosterhuis (PhD thesis, 2020), section 8.3.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.decisions.click_sums import Differences, differences_of, estimated_values
from models.decisions.meta_policy import (
    GENERAL,
    LOGGING,
    SPECIALISED,
    Rule,
    chosen_policies,
)
from models.decisions.over_all_queries import OverAll
from models.decisions.tied_orders import TiedOrders, expected_weights, tied_orders
from models.evaluation.differences import DifferenceSums
from streams.decisions.declared_policies import DeclaredPolicy
from streams.decisions.evidence import Evidence

Judgement = Callable[[DifferenceSums, Integers], Flags]
"""Whether the first of two policies is better for sure, of each comparison: sums, and
where the rows of each begin."""


class Judgements(NamedTuple):
    """By what it is judged whether a difference is sure, set before the clicks.

    Parameters
    ----------
    of_each
        Of candidate sets, each by itself.
    of_all
        Of all sets together, whose means differ.
    """

    of_each: Judgement
    of_all: Callable[[DifferenceSums], OverAll]


class Comparison(NamedTuple):
    """Whether one policy is better than another.

    Parameters
    ----------
    differences
        The sums that this rests on.
    is_better : [n_comparisons]
        Whether it is for sure.
    """

    differences: Differences
    is_better: Flags


class Decisions(NamedTuple):
    """What is served.

    Parameters
    ----------
    chosen : [n_sets]
        `LOGGING`, `GENERAL` or `SPECIALISED` of `models.decisions.meta_policy`.
    orders
        Of those of these policies that single sets may be left to: the query's own of
        each set, and the logging one, where it tells its ranking.
    over_general, over_logging
        The query's own policy against the other two, set by set.
    logging_over_general
        The ranking of the logging policy against the general one, set by set.
    general
        The general policy against the logging one, all sets together.
    over_all
        Whether that is better for sure, and what lacks.
    is_ranked : [n_sets]
        Whether both declared policies say something of the set; else nothing is
        decided for it alone.
    """

    chosen: Integers
    orders: dict[int, TiedOrders]
    over_general: Comparison
    over_logging: Comparison
    logging_over_general: Comparison
    general: Differences
    over_all: OverAll
    is_ranked: Flags

    @property
    def default(self) -> int:
        """Which policy serves the sets that have no order of their own."""
        return LOGGING if self.over_all.lacking else GENERAL

    def is_decided(self) -> Flags:
        """Sets that are left to an order of theirs alone, [n_sets]."""
        is_other = np.isin(self.chosen, [*self.orders]) & (self.chosen != self.default)
        return np.asarray(is_other & self.is_ranked)


def specialised_orders(evidence: Evidence) -> TiedOrders:
    """The policy of each set alone: items by clicks over propensities.

    Those of training groups. Items without a click are tied; behind them, tied, those
    that no list could show, of which nothing can be known.
    """
    starts = evidence.sets.starts
    values = estimated_values(evidence.policies, evidence.training, starts)
    return tied_orders(values, starts)


def decide(
    evidence: Evidence,
    general: DeclaredPolicy,
    logging: DeclaredPolicy,
    judgements: Judgements,
    rule: Rule = Rule.KEPT,
) -> Decisions:
    """Choose a policy for each candidate set.

    Parameters
    ----------
    general, logging
        pi_g and pi_0, of the sets of the evidence.
    judgements
        When a policy counts as better.
    rule
        What becomes of sets whose own policy is not better than both.

    Raises
    ------
    ValueError
        Where a policy came from clicks of selection groups, or from nobody knows whose,
        or is not told for all items, or the rule must serve a ranking that is not.
    """
    for policy in (general, logging):
        policy.refuse_fitted_on(evidence.splits.selection)
    if general.weights is None:
        raise ValueError(
            "the general policy must tell the weights of items; got none: only the "
            "logging policy may be what lists were logged by"
        )
    ranking = logging.ranking
    if ranking is None and rule is not Rule.CLOSED:
        raise ValueError(
            f"the logging policy must tell its ranking to be {rule.value} on single "
            "queries; got none: declare a snapshot, or take the closed rule"
        )

    def compared(first: Floats, second: Floats | None) -> Differences:
        return differences_of(
            evidence.policies, evidence.selection, evidence.sets.starts, first, second
        )

    def judged(differences: Differences) -> Comparison:
        is_better = judgements.of_each(differences.sums, differences.starts)
        return Comparison(differences, is_better & (differences.interactions() > 0))

    own = specialised_orders(evidence)
    own_weights = expected_weights(own, evidence.weights)
    over_general = judged(compared(own_weights, general.weights))
    over_logging = judged(compared(own_weights, logging.weights))
    both = compared(general.weights, logging.weights)
    over_all = judgements.of_all(both.sums)
    # Lists of the logging policy may be drawn; a single set is left to its ranking.
    kept = judged(
        both.turned() if ranking is None else compared(ranking.weights, general.weights)
    )
    chosen = chosen_policies(
        over_general.is_better,
        over_logging.is_better,
        kept.is_better,
        is_general_better=not over_all.lacking,
        rule=rule,
    )
    orders = {SPECIALISED: own}
    if ranking is not None:
        orders[LOGGING] = ranking.orders
    return Decisions(
        chosen,
        orders,
        over_general,
        over_logging,
        kept,
        both.together(),
        over_all,
        _is_told(evidence, general) & _is_told(evidence, logging),
    )


def _is_told(evidence: Evidence, policy: DeclaredPolicy) -> Flags:
    """Sets of which the policy says something, [n_sets]."""
    n_sets = len(evidence.sets.queries)
    if policy.weights is None:
        return np.ones(n_sets, np.bool_)
    firsts = evidence.sets.starts[:-1]
    return np.asarray(~np.isnan(policy.weights[firsts]))
