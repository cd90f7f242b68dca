"""Users who look by rank, and trust what stands high even if it is not relevant.

References
----------
Agarwal, Wang, Li, Bendersky & Najork (WWW 2019), the trust-bias model; the curves
are those of Vardasbi, Oosterhuis & de Rijke (CIKM 2020).
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.click_models.click_model import (
    IndependentClicks,
    Labels,
    at_ranks,
    checked_labels,
    checked_probabilities,
)


@dataclass(frozen=True)
class TrustBiasModel(IndependentClicks):
    """P(click at rank r) = alpha[r - 1] * relevance[grade] + beta[r - 1].

    Parameters
    ----------
    alpha, beta
        By rank; beyond their end nobody clicks. Their sum is at most 1.
    relevance
        By grade.
    """

    alpha: tuple[float, ...]
    beta: tuple[float, ...]
    relevance: tuple[float, ...]

    def __post_init__(self) -> None:
        alpha = checked_probabilities("alpha", self.alpha)
        beta = checked_probabilities("beta", self.beta)
        checked_probabilities("relevance", self.relevance)
        if len(alpha) != len(beta):
            raise ValueError(
                "alpha and beta must share their ranks; got "
                f"{len(alpha)} and {len(beta)}"
            )
        # The curves of the literature add up to 1 at rank 1, rounding aside.
        if (alpha + beta > 1.0 + 1e-12).any():
            raise ValueError(
                f"alpha + beta must be at most 1; got {(alpha + beta).max()} at rank "
                f"{int((alpha + beta).argmax()) + 1}"
            )

    def click_probabilities(self, labels: Labels) -> Floats:
        """Probability of a click at each rank, [.., k] like the labels."""
        grades = checked_labels(labels, len(self.relevance))
        n_ranks = grades.shape[-1]
        alpha = at_ranks(np.array(self.alpha), n_ranks)
        beta = at_ranks(np.array(self.beta), n_ranks)
        return np.asarray(alpha * np.array(self.relevance)[grades] + beta)


def trust_bias_of(n_grades: int, *, n_ranks: int = 5) -> TrustBiasModel:
    """The curves of the literature, with relevance even in the grade from 0 to 1.

        examination(r) = 0.35 / r + 0.65 / (1 + 0.05 (r - 1))
        P(click | looked, relevant) = 1 / (1 + 0.005 (r - 1))
        P(click | looked, not relevant) = 0.65 / r

    Examples
    --------
    >>> np.round(trust_bias_of(5).alpha, 4).tolist()
    [0.35, 0.532, 0.5473, 0.537, 0.5202]
    """
    ranks = np.arange(1.0, n_ranks + 1)
    looked = 0.35 / ranks + 0.65 / (1.0 + 0.05 * (ranks - 1.0))
    if_relevant = 1.0 / (1.0 + 0.005 * (ranks - 1.0))
    if_not = 0.65 / ranks
    return TrustBiasModel(
        tuple((looked * (if_relevant - if_not)).tolist()),
        tuple((looked * if_not).tolist()),
        tuple(np.linspace(0.0, 1.0, n_grades).tolist()),
    )
