"""Logged exposures as the canonical log holds them: dense, or only what is not 0.

A matrix of P(item at rank) has the axes candidates, ranks. Interventions that swap a
few places leave most of it 0; then cells (row * ranks + rank - 1, uint32) and after
them their probabilities (float32) stand for it, if that is shorter. Which of the two
it is follows from the length: the same matrix has one form only.
"""

import numpy as np
import numpy.typing as npt

Exposures = npt.NDArray[np.float32]

CELL_BYTES = 8
"""Of a cell that is not 0; of any cell in the dense form 4."""


def pack_exposures(matrix: Exposures) -> bytes:
    """The shorter of both forms; the dense one where nothing differs from 0.

    `matrix` [n_candidates, n_ranks].
    """
    flat = np.ascontiguousarray(matrix, "<f4").reshape(-1)
    cells = np.flatnonzero(flat)
    if not 0 < CELL_BYTES * len(cells) < flat.nbytes:
        return flat.tobytes()
    return cells.astype("<u4").tobytes() + flat[cells].tobytes()


def unpack_exposures(packed: bytes, n_candidates: int, n_ranks: int) -> Exposures:
    """The matrix [candidates, ranks] of either form."""
    n_cells = n_candidates * n_ranks
    if len(packed) == 4 * n_cells:
        flat = np.frombuffer(packed, "<f4").astype(np.float32)
    else:
        half = len(packed) // 2
        flat = np.zeros(n_cells, np.float32)
        flat[np.frombuffer(packed[:half], "<u4")] = np.frombuffer(packed[half:], "<f4")
    return flat.reshape(n_candidates, n_ranks)
