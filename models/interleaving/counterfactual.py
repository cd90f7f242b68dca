"""Differences in clicks per list, estimated from lists that were combined.

Interleaving tells who is preferred, not by how many clicks: its outcome can have
the wrong sign where click-through is what counts. Inverse propensity scoring of the
same clicks is unbiased for that, given how likely each rank is to be looked at.

References
----------
Oosterhuis (2020), chapter 8 and its appendix on the bias of interleaving.
"""

from dataclasses import dataclass

import numpy as np

from models.interleaving.method import (
    Clicks,
    Combined,
    Method,
    Shown,
    among_present,
    differences,
    spans,
)
from models.interleaving.rankings import ABSENT, Floats, Integers, ranks_of


@dataclass(frozen=True)
class Counterfactual:
    """Credits each ranker the clicks that its own list would have had.

    Parameters
    ----------
    logged
        The method that combined the lists.
    examination : [n_ranks]
        P(looked at | rank), fixed before the impressions; 0 below the last.
    """

    logged: Method
    examination: tuple[float, ...]
    needs_assignments: bool = False

    def __post_init__(self) -> None:
        if not self.examination or not 0.0 < min(self.examination) <= 1.0:
            raise ValueError(
                f"examination must be above 0 and at most 1; got {self.examination}"
            )

    def combine(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Combined:
        """Draw a list of the logged method."""
        return self.logged.combine(rankings, length, rng=rng)

    def infer(self, shown: Shown, clicks: Clicks) -> Floats:
        """Differences of the estimated clicks per list."""
        return among_present(shown, differences(self.weights(shown) @ clicks))

    def bounds(self, shown: Shown) -> Floats:
        """All gains, or all losses, of one ranker over another."""
        return among_present(shown, spans(self.weights(shown)))

    def exposures(
        self, rankings: Integers, length: int, *, rng: np.random.Generator
    ) -> Floats:
        """Those of the logged method."""
        return self.logged.exposures(rankings, length, rng=rng)

    def weights(self, shown: Shown) -> Floats:
        """P(looked at in the ranker's list) / P(looked at), by place.

        [n_rankers, k]; 0 for what cannot have been shown here by the logged method.
        """
        k = len(shown.shown)
        rng = np.random.default_rng(shown.seed)
        exposures = self.logged.exposures(shown.rankings, k, rng=rng)
        examined = np.zeros(max(k, shown.rankings.shape[1]))
        n_known = min(len(examined), len(self.examination))
        examined[:n_known] = self.examination[:n_known]
        known = shown.shown < len(exposures)
        propensities = np.zeros(k)
        propensities[known] = exposures[shown.shown[known]] @ examined[:k]
        ranks = ranks_of(shown.rankings, shown.shown)
        looked = np.where(ranks <= k, examined[np.minimum(ranks, k) - 1], 0.0)
        looked[ranks == ABSENT] = 0.0
        can_be = propensities > 0.0
        weights = np.zeros(looked.shape)
        weights[:, can_be] = looked[:, can_be] / propensities[can_be]
        return weights
