"""Which of three policies is served for which query, by the bound that is asked for.

SEA bounds two policies, each by itself, and the better one is that whose lower bound is
above the upper one of the other; it is adapted to the same three policies.

References
----------
Oosterhuis (PhD thesis, 2020), sections 8.3.2 and 8.5.2; Oosterhuis & de Rijke (WWW
2021); Jagerman, Markov & de Rijke (TOIS 2020), for SEA.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.decisions.meta_policy import SPECIALISED, Rule, chosen_policies
from models.evaluation.bounds.families import Bound, lower_bounds, mirrored
from models.evaluation.bounds.families import confidence as sureness
from models.evaluation.bounds.sea import lower_bounds_apart
from models.evaluation.bounds.several_queries import (
    lower_bound_over_queries,
    sums_of_classes,
)
from models.evaluation.differences import DifferenceSums
from rankstream.lab.reproduction.genspec.clicks import QueryClicks
from rankstream.lab.reproduction.genspec.plan import (
    ANY_TIME,
    CONFIDENCES,
    ONE_LOOK,
    PER_ITEM,
    RULES,
    SEA,
    UNBOUNDED,
    bounded,
)


class Policies(NamedTuple):
    """Discounts that items have on average under each policy.

    Parameters
    ----------
    logging, general, special : [n_items]
        Of the list that was logged, of one ranker of all queries, of each query's own.
    """

    logging: Floats
    general: Floats
    special: Floats


class Chosen(NamedTuple):
    """Who is served.

    Parameters
    ----------
    is_general
        Whether the general policy is, where nothing is known of a query.
    of_queries : [n_queries]
        Numbers of the policies, as `models.decisions.meta_policy` has them.
    """

    is_general: bool
    of_queries: Integers

    @property
    def is_special(self) -> Flags:
        """Queries whose own policy is served, [n_queries]."""
        return np.asarray(self.of_queries == SPECIALISED)

    def shown(self, policies: Policies, offsets: Integers) -> Floats:
        """Discounts of what is served, [n_items]; `offsets` [n_queries + 1]."""
        of_items = np.repeat(self.of_queries, np.diff(offsets))
        return np.choose(of_items, policies)


class Comparison(NamedTuple):
    """Evidence of two policies, a row for each query.

    Of their difference, and of each alone.
    """

    difference: DifferenceSums
    one: DifferenceSums
    other: DifferenceSums

    def turned(self) -> "Comparison":
        """The other policy against the one."""
        return Comparison(mirrored(self.difference), self.other, self.one)


IsBetter = Callable[[Comparison, Integers], Flags]
"""Whether the one policy is better, by rows from each of `starts` to the next."""


class Evidence:
    """What lists that decide say of three policies.

    Parameters
    ----------
    clicks
        Whose lists that decide did not train the policies.
    policies
        Of the same items.
    ranks : [n_items]
        At which users looked by chance 1 / rank.
    offsets : [n_queries + 1]
        Of items.
    """

    def __init__(
        self,
        clicks: QueryClicks,
        policies: Policies,
        ranks: Integers,
        offsets: Integers,
    ) -> None:
        def sums(discounts: Floats) -> DifferenceSums:
            return clicks.sums(discounts * ranks, offsets)

        logging, general, special = policies
        of_logging, of_general, of_special = map(sums, policies)
        self._special_over_general = Comparison(
            sums(special - general), of_special, of_general
        )
        self._special_over_logging = Comparison(
            sums(special - logging), of_special, of_logging
        )
        self._general_over_logging = Comparison(
            sums(general - logging), of_general, of_logging
        )
        self._by_query = np.arange(len(offsets))

    def chosen(self, is_better: IsBetter) -> dict[str, Chosen]:
        """Who is served, by `plan.RULES`."""
        by_query, together = self._by_query, self._by_query[[0, -1]]
        is_general = bool(is_better(self._general_over_logging, together)[0])
        over_general = is_better(self._special_over_general, by_query)
        over_logging = is_better(self._special_over_logging, by_query)
        kept = is_better(self._general_over_logging.turned(), by_query)
        return {
            name: Chosen(
                is_general,
                chosen_policies(
                    over_general,
                    over_logging,
                    kept,
                    is_general_better=is_general,
                    rule=Rule(name),
                ),
            )
            for name in RULES
        }


def _is_estimated(comparison: Comparison, starts: Integers) -> Flags:
    return np.add.reduceat(comparison.difference.totals, starts[:-1]) > 0.0


def _is_at_any_time(
    comparison: Comparison, starts: Integers, *, confidence: float
) -> Flags:
    """By the mixture, of one query or over several at once."""
    if len(starts) == 2:
        sums = sums_of_classes(comparison.difference)
        return np.array([lower_bound_over_queries(sums, confidence) > 0.0])
    return _is_bounded(Bound.ANY_TIME, comparison, starts, confidence=confidence)


def _is_bounded(
    bound: Bound, comparison: Comparison, starts: Integers, *, confidence: float
) -> Flags:
    sure = sureness(bound, confidence)
    return np.asarray(lower_bounds(comparison.difference, starts, sure) > 0.0)


def _is_apart(comparison: Comparison, starts: Integers, *, confidence: float) -> Flags:
    """By a bound for each policy, of lists."""
    sure = sureness(Bound.ONE_LOOK, confidence)
    _, one, other = comparison
    return np.asarray(lower_bounds_apart(one, other, starts, sure) > 0.0)


_BY_BOUND: Mapping[str, Callable[..., Flags]] = {
    ANY_TIME: _is_at_any_time,
    ONE_LOOK: partial(_is_bounded, Bound.ONE_LOOK),
    PER_ITEM: partial(_is_bounded, Bound.PER_ITEM),
    SEA: _is_apart,
}

TESTS_BY_NAME: Mapping[str, IsBetter] = {
    UNBOUNDED: _is_estimated,
    **{
        bounded(name, confidence): partial(test, confidence=confidence)
        for name, test in _BY_BOUND.items()
        for confidence in CONFIDENCES
    },
}
"""Of the names in `plan.TESTS`."""
