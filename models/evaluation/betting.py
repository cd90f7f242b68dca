"""Evidence that one ranker is ever better, as the wealth of a gambler.

Under the hypothesis that n is never better than m, that is, that the mean
preference for n given everything before is 0 or less at each impression, bets on n
lose on average: the wealth is a supermartingale that begins at 1, and exceeds
1 / alpha ever with probability at most alpha. It says nothing about the size of the
difference, nor that n is better *now*.

References
----------
Waudby-Smith & Ramdas (JRSS B 2024), section 4; Shafer (JRSS A 2021).
"""

import numpy as np

from models.arrays import Floats
from models.evaluation.sums import LOG_SCALE, PreferenceSums, pairs_of


def log_e_values(sums: PreferenceSums) -> Floats:
    """Logarithm of the mean wealth over all bets, by who is bet on against whom.

    Returns
    -------
    [n_rankers, n_rankers]
        Element (n, m): evidence that n was better than m at some time.
    """
    logs = sums.wealth / LOG_SCALE
    top = logs.max(axis=2, keepdims=True)
    mean = top[..., 0] + np.log(np.exp(logs - top).mean(axis=2))
    found = np.zeros((sums.n_rankers, sums.n_rankers))
    first, second = pairs_of(sums.n_rankers)
    found[first, second] = mean[:, 0]
    found[second, first] = mean[:, 1]
    return found
