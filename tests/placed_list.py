"""Exact placements of one list."""

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.plackett_luce.placement import placement_batch


def placement_probabilities(scores: npt.ArrayLike, cutoff: int) -> Floats:
    """P(document at rank), [n_documents, cutoff], of `scores` [n_documents]."""
    found: Floats = placement_batch(np.asarray(scores, np.float64)[None, :], cutoff)[0]
    return found
