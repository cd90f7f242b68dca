"""Gains of labels: the weights that a loss takes where relevance is known."""

import numpy as np
import numpy.typing as npt

from models.arrays import Floats


def exponential_gains(n_labels: int) -> Floats:
    """2^label - 1 of labels from 0, [n_labels].

    Examples
    --------
    >>> exponential_gains(3).tolist()
    [0.0, 1.0, 3.0]
    """
    return np.asarray(2.0 ** np.arange(n_labels) - 1.0)


def binary_gains(n_labels: int, threshold: int) -> Floats:
    """1 of labels from the threshold on, 0 of those below, [n_labels].

    Raises
    ------
    ValueError
        Where no label or each one would be relevant.
    """
    if not 1 <= threshold < n_labels:
        raise ValueError(
            f"the threshold of labels must lie in 1..{n_labels - 1}, so that some are "
            f"relevant and some not; got {threshold}"
        )
    return (np.arange(n_labels) >= threshold).astype(np.float64)


def gains_of(labels: npt.NDArray[np.integer], gains: npt.ArrayLike) -> Floats:
    """The gain of each document, [n_documents].

    Parameters
    ----------
    labels : [n_documents]
        From 0.
    gains : [n_labels]
        By label, finite.

    Raises
    ------
    ValueError
        Where a label has no gain, or a gain is not finite.

    Examples
    --------
    >>> gains_of(np.array([2, 0]), [0.0, 0.5, 1.0]).tolist()
    [1.0, 0.0]
    """
    by_label = np.asarray(gains, np.float64)
    if by_label.ndim != 1 or not np.isfinite(by_label).all():
        raise ValueError(
            f"gains must be a finite number for each label; got {by_label.tolist()}"
        )
    beyond = (labels < 0) | (labels >= len(by_label))
    if beyond.any():
        raise ValueError(
            f"labels must lie in 0..{len(by_label) - 1}, which have gains; got "
            f"{int(labels[beyond][0])}: give a gain for each label of the data"
        )
    return np.asarray(by_label[labels])
