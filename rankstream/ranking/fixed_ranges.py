"""Ranges of features, the same for all queries, as a snapshot's shift and scale."""

import msgspec
import numpy as np
import numpy.typing as npt

from rankstream.wire.envelope import Snapshot

NARROWEST = float(1.0 / np.finfo(np.float32).max)
"""A width whose inverse single precision has."""


def with_ranges(snapshot: Snapshot, ranges: npt.ArrayLike) -> Snapshot:
    """The same, with each range brought to 0 to 1; what lies outside goes beyond.

    A feature that is always the same becomes 0, as by min-max of each query. So does
    one that moves so little that single precision has no scale for it.

    Parameters
    ----------
    ranges : [n_features, 2]
        The least and the most of each feature, finite, and less apart than the largest
        number of single precision.
    """
    least, most = np.asarray(ranges, np.float32).astype(np.float64).T
    width = most - least
    width[width < NARROWEST] = np.inf
    return msgspec.structs.replace(
        snapshot,
        shift=least.astype("<f4").tobytes(),
        scale=(1.0 / width).astype("<f4").tobytes(),
    )
