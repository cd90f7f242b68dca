"""How far small propensities are raised in training, never where values are judged.

A small propensity makes a value that one click moves far. Raising it to a least one
biases values towards 0, ever less as lists come.
"""

import math
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from models.estimators.intervention_aware import Floats, least_average

__all__ = ["TOP_K_CLIPS", "TopKClip", "least_average", "least_of_top_k", "shares_of"]


class TopKClip(NamedTuple):
    """Factors of log10(N) - 4 and of its square, beside 1."""

    linear: float
    square: float


TOP_K_CLIPS = MappingProxyType(
    {
        "yahoo": TopKClip(-3.0, 32.0),
        "mslr": TopKClip(-57.0, 86.0),
        "istella": TopKClip(30.0, 0.0),
    }
)
"""By the data that they were found for."""


def least_of_top_k(n_impressions: int, clip: TopKClip) -> float:
    """The least examination for policy-aware training from top-k lists.

        1 / max(1, 1 + linear c + square c^2),    c = log10(N) - 4

    Parameters
    ----------
    n_impressions
        N: lists of the training split, at least 1.

    References
    ----------
    Oosterhuis & de Rijke (SIGIR 2020), whose published software has these factors.

    Examples
    --------
    >>> round(1.0 / least_of_top_k(10**8, TOP_K_CLIPS["yahoo"]))
    501
    """
    if n_impressions < 1:
        raise ValueError(
            f"impressions of the training split must be 1 or more; got {n_impressions}"
        )
    c = math.log10(n_impressions) - 4.0
    return 1.0 / max(1.0, 1.0 + clip.linear * c + clip.square * c**2)


def shares_of(values: Floats) -> Floats:
    """Values over their sum, as top-k training weighs items; NaN counts 0.

    `values` [n_items] of all queries together; all 0 where the sum is not above 0.
    """
    known = np.nan_to_num(values)
    total = float(known.sum())
    return known / total if total > 0.0 else np.zeros_like(known)
