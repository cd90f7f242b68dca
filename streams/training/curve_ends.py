"""How well alpha of a curve is known, rank by rank, for who prints it."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class CurveEnds(NamedTuple):
    """Ends of intervals of alpha, each by itself.

    Parameters
    ----------
    low, high : [n_ranks]
        In units of the first rank, as the curve; NaN where there is none.
    confidence
        In (0, 1); None where who has the curve does not know it.
    """

    low: Floats
    high: Floats
    confidence: float | None = None

    def first(self, n_ranks: int) -> "CurveEnds":
        """Those of the first ranks."""
        return self._replace(low=self.low[:n_ranks], high=self.high[:n_ranks])
