"""Sample ratio mismatch: counts of users and lists against the shares meant for them.

References
----------
Lindon & Malek (NeurIPS 2022): a Dirichlet mixture of multinomials against the one
that was meant is a martingale under the latter, so it may be looked at any time.
"""

import numpy as np
from scipy.special import gammaln

from models.arrays import Floats, Integers

CONCENTRATION = 100.0
"""Of the mixture, around the shares that were meant: small deviations count too."""


def log_evidence(counts: Integers, shares: Floats) -> float:
    """Logarithm of the e-value against the shares.

    Parameters
    ----------
    counts : [n]
    shares : [n]
        What was meant; they sum to one.

    Examples
    --------
    >>> log_evidence(np.array([5000, 5000]), np.array([0.5, 0.5])) < 0
    True
    >>> log_evidence(np.array([5300, 4700]), np.array([0.5, 0.5])) > 10
    True
    """
    prior = CONCENTRATION * shares * len(shares)
    total = counts.sum()
    mixture = (
        gammaln(prior.sum())
        - gammaln(prior.sum() + total)
        + (gammaln(prior + counts) - gammaln(prior)).sum()
    )
    return float(mixture - (counts * np.log(shares)).sum())
