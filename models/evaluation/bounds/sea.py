"""A bound for each of two policies, where `families` has one on their difference.

The Safe Exploration Algorithm deploys a policy once the lower bound on its reward is
above the upper bound on that of the other; each has the width of its own policy. Both
are of the same lists, so the difference varies less than the two together: no bound on
it from a mean and a variance is wider, whatever the policies (the standard deviation
of a difference is at most the sum of both). As printed, each of the two bounds takes
the confidence in full, and both have the larger b.

References
----------
Jagerman, Markov & de Rijke (TOIS 2020); Oosterhuis (thesis, 2020), section 8.9.
"""

import numpy as np

from models.arrays import Floats, Integers
from models.evaluation.bounds.families import Confidence, lower_bounds, mirrored
from models.evaluation.differences import DifferenceSums


def lower_bounds_apart(
    first: DifferenceSums, second: DifferenceSums, starts: Integers, sure: Confidence
) -> Floats:
    """The lower bound of the first policy less the upper bound of the second.

    Parameters
    ----------
    first, second
        Sums of the same lists, with w = lambda / rho of either policy alone.
    starts : [n_comparisons + 1]
        Where the rows of each comparison begin.
    sure
        Of each of the two bounds; see `confidence`.

    Returns
    -------
    [n_comparisons]
        Above 0 where the first is better; minus infinity where nothing can be said.

    Raises
    ------
    ValueError
        Where the sums are not of the same lists.
    """
    if not np.array_equal(first.interactions, second.interactions):
        raise ValueError(
            "both policies must be bounded by the same lists, row by row; the numbers "
            "of interactions differ: make both sums from the same statistics"
        )
    largest = np.maximum(first.largest, second.largest)
    low = lower_bounds(first._replace(largest=largest), starts, sure)
    return low + lower_bounds(mirrored(second._replace(largest=largest)), starts, sure)
