"""One query of two rankers that are compared: what a click on each item tells."""

from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.interleaving.rankings import checked, ranks_of, size_of


class ComparedQuery(NamedTuple):
    """What the variance of a difference in clicks depends on, but the policy.

    Parameters
    ----------
    relevance : [n]
        P(click | looked at) of each candidate, in [0, 1].
    differences : [n]
        P(looked at) in the list of one ranker, less that in the other's.
    examination : [k]
        P(looked at | rank) of the lists that are shown, k <= n.
    """

    relevance: Floats
    differences: Floats
    examination: Floats

    @property
    def matters(self) -> Flags:
        """Items whose clicks tell anything: a policy must be able to show them, [n]."""
        return np.asarray((self.differences != 0.0) & (self.relevance > 0.0))

    @property
    def difference(self) -> float:
        """Clicks per list of one ranker, less those of the other."""
        return float(self.relevance @ self.differences)


def compared_query(
    rankings: Integers, relevance: Floats, examination: Floats
) -> ComparedQuery:
    """A query that two rankers have lists for.

    Rankers may share no item: those of one are absent from the list of the other. Lists
    may be shorter than the ranks that are looked at; where no list of all candidates is
    as long, ranks below its end are left out.

    Parameters
    ----------
    rankings : [2, depth]
        See `models.interleaving.rankings`.
    relevance : [n]
        Of all candidates, at least one.
    examination : [n_ranks]
        In [0, 1], above 0 at the first rank.

    Raises
    ------
    ValueError
        Where there are not two rankers, a list is faulty or has an item without
        relevance, or a number is outside its range.

    Examples
    --------
    >>> query = compared_query(
    ...     np.array([[0, 1], [1, 0]]), np.array([0.5, 0.25]), np.array([1.0, 0.5, 0.1])
    ... )
    >>> query.differences.tolist(), query.examination.tolist(), query.difference
    ([0.5, -0.5], [1.0, 0.5], 0.125)
    """
    lists = checked(rankings)
    if len(lists) != 2:
        raise ValueError(f"a comparison must be of two rankers; got {len(lists)}")
    n = len(relevance)
    if not n or size_of(lists) > n:
        raise ValueError(
            "every item of a list must have a relevance, and there must be one; got "
            f"{n} for items up to {size_of(lists) - 1}"
        )
    for name, values in (("relevance", relevance), ("examination", examination)):
        if not ((values >= 0.0) & (values <= 1.0)).all():
            raise ValueError(f"{name} must lie in [0, 1]; got {values.tolist()}")
    if not len(examination) or examination[0] <= 0.0:
        raise ValueError(
            "examination must be above 0 at the first rank; got "
            f"{examination[:1].tolist()}"
        )
    known = np.zeros(len(examination) + 1)
    known[:-1] = examination
    ranks = np.minimum(ranks_of(lists, np.arange(n)), len(known))
    looked = known[ranks - 1]
    return ComparedQuery(
        np.array(relevance, np.float64),
        looked[0] - looked[1],
        np.array(examination[:n], np.float64),
    )
