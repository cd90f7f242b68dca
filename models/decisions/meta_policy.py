"""Which policy a query gets, once it is known which ones are better for sure.

The logging policy is left only for what is better, and a policy of one query only
serves where it beats both that of all queries and the logging policy, on that query.

References
----------
Oosterhuis & de Rijke (WWW 2021); Oosterhuis (PhD thesis, 2020), section 8.3.2, the
meta-policy. As printed there, a query whose own policy beats the general one but not
the logging one is left to the logging policy, though the general policy may be better
for sure; `CLOSED` gives it the general one. Neither asks whether the general policy,
better over all queries, is worse on this one; `KEPT` does.
"""

from enum import Enum

import numpy as np

from models.arrays import Flags, Integers

LOGGING, GENERAL, SPECIALISED = range(3)
"""Policies: pi_0, pi_g, pi_q."""


class Rule(Enum):
    """What becomes of queries whose own policy is not for sure better than both."""

    KEPT = "kept"
    CLOSED = "closed"
    PRINTED = "printed"


def chosen_policies(
    over_general: Flags,
    over_logging: Flags,
    logging_over_general: Flags,
    *,
    is_general_better: bool,
    rule: Rule = Rule.KEPT,
) -> Integers:
    """The policy of each query, [n_queries].

    Parameters
    ----------
    over_general, over_logging : [n_queries]
        Whether its own policy is better for sure than the general, the logging one.
    logging_over_general : [n_queries]
        Whether the logging policy is better for sure than the general one. `KEPT` alone
        asks for it.
    is_general_better
        Whether the general policy is better than the logging one over all queries.

    Examples
    --------
    >>> some, others = np.array([True, True, False]), np.array([True, False, False])
    >>> kept = np.array([True, False, True])
    >>> chosen_policies(some, others, kept, is_general_better=True)
    array([2, 1, 0])
    >>> closed, printed = Rule.CLOSED, Rule.PRINTED
    >>> chosen_policies(some, others, kept, is_general_better=True, rule=closed)
    array([2, 1, 1])
    >>> chosen_policies(some, others, kept, is_general_better=True, rule=printed)
    array([2, 0, 1])
    """
    chosen = np.full(len(over_general), GENERAL if is_general_better else LOGGING)
    if rule is Rule.KEPT:
        chosen[logging_over_general] = LOGGING
    if rule is Rule.PRINTED:
        chosen[over_general] = LOGGING
    chosen[over_general & over_logging] = SPECIALISED
    return chosen
