"""Features of one query's documents brought to one scale.

A ranker normalises over *all* candidates of a query before it scores them, and
logs the features so: a learner sees only the shown ones and cannot do it later.
"""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from models.arrays import Floats


def min_max(features: Floats) -> Floats:
    """Each feature from 0 to 1 within the query; one that is constant there is 0.

    Parameters
    ----------
    features : [n_documents, n_features]

    Returns
    -------
    [n_documents, n_features]

    Examples
    --------
    >>> min_max(np.array([[1.0, 5.0], [3.0, 5.0], [2.0, 5.0]]))
    array([[0. , 0. ],
           [1. , 0. ],
           [0.5, 0. ]])
    """
    if not len(features):
        return np.array(features, np.float64)
    least = features.min(axis=0)
    return _ratio(features - least, features.max(axis=0) - least)


def standard(features: Floats) -> Floats:
    """Each feature with mean 0 and deviation 1 in the query; a constant one is 0.

    Parameters
    ----------
    features : [n_documents, n_features]

    Returns
    -------
    [n_documents, n_features]
    """
    if not len(features):
        return np.array(features, np.float64)
    is_constant = features.min(axis=0) == features.max(axis=0)
    deviations = np.where(is_constant, 0.0, features.std(axis=0))
    return _ratio(features - features.mean(axis=0), deviations)


def none(features: Floats) -> Floats:
    """Features as they are.

    Parameters
    ----------
    features : [n_documents, n_features]

    Returns
    -------
    [n_documents, n_features]
    """
    return np.array(features, np.float64)


NORMALISATIONS: dict[str, Callable[[Floats], Floats]] = {
    "min-max": min_max,
    "standard": standard,
    "none": none,
}


def normalised(features: npt.ArrayLike, *, how: str) -> Floats:
    """Features of one query, normalised in the named way.

    Parameters
    ----------
    features : [n_documents, n_features]
    how
        One of `NORMALISATIONS`.

    Returns
    -------
    [n_documents, n_features]

    Raises
    ------
    ValueError
        Where the name is unknown.
    """
    if how not in NORMALISATIONS:
        raise ValueError(f"how must be one of {sorted(NORMALISATIONS)}; got {how!r}")
    return NORMALISATIONS[how](np.asarray(features, np.float64))


def _ratio(numerators: Floats, denominators: Floats) -> Floats:
    is_moving = np.broadcast_to(denominators > 0.0, numerators.shape)
    return np.divide(
        numerators, denominators, out=np.zeros(numerators.shape), where=is_moving
    )
