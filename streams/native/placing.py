"""Plackett-Luce placements in C: the bits of `models.plackett_luce.placement`."""

import ctypes

import numpy as np
from numpy.typing import NDArray

from models.plackett_luce.placement import checked_scores
from streams.native.core_library import core

Floats = NDArray[np.float64]

_PLACE, _NUMBER = ctypes.c_void_p, ctypes.c_int64
core.fold_placements.argtypes = (_PLACE, _NUMBER, _NUMBER, _NUMBER, _PLACE)
core.fold_placements.restype = _NUMBER


def placements_of_scores(scores: Floats, cutoff: int) -> Floats:
    """P(document at rank), fast; [n_lists, n_documents, cutoff].

    `scores` [n_lists, n_documents].

    Raises
    ------
    ValueError
        As `models.plackett_luce.placement.placement_batch`.
    MemoryError
        Where there is none.
    """
    values = checked_scores(scores, cutoff)
    placements = np.empty((*values.shape, cutoff))
    done = core.fold_placements(
        values.ctypes.data, *values.shape, cutoff, placements.ctypes.data
    )
    if done < 0:
        raise MemoryError(
            f"placements of {values.shape[1]} documents at {cutoff} ranks must fit "
            "into memory; they did not"
        )
    return placements
