"""Preferences between shown documents, inferred from clicks.

Shared by everything that learns or compares by pairs. Positions are 0-based.
"""

import numpy as np
import numpy.typing as npt

from models.kernels.compilation import compiled

Clicks = npt.NDArray[np.bool_]


@compiled
def n_compared(clicks: Clicks) -> int:
    """Positions that take part: through the one after the last click, or none.

    Parameters
    ----------
    clicks : [k]
        In displayed order.
    """
    size: int = clicks.shape[0]
    for position in range(size - 1, -1, -1):
        if clicks[position]:
            return min(position + 2, size)
    return 0


def preference_pairs(clicks: Clicks) -> npt.NDArray[np.int64]:
    """Pairs (preferred, other) of positions.

        clicked i, unclicked j, and a click below j or directly above it

    So every clicked document beats every unclicked one down to the position after
    the *last* click; reading the sentence around the equation per click gives less.

    Parameters
    ----------
    clicks : [k]

    Returns
    -------
    [n_pairs, 2]

    References
    ----------
    Oosterhuis, "Learning from User Interactions with Rankings" (2020), section
    4.5, the equation of inferred preferences.

    Examples
    --------
    >>> preference_pairs(np.array([False, True, False, False])).tolist()
    [[1, 0], [1, 2]]
    """
    compared = np.asarray(clicks, np.bool_)[: n_compared(clicks)]
    preferred, others = np.flatnonzero(compared), np.flatnonzero(~compared)
    return np.stack(
        [np.repeat(preferred, len(others)), np.tile(others, len(preferred))], axis=1
    )
