"""What every click model offers, and the one check they share."""

from abc import ABC, abstractmethod
from typing import Protocol

import numpy as np
import numpy.typing as npt

from models.arrays import Floats

Labels = npt.NDArray[np.integer]
Clicks = npt.NDArray[np.bool_]


class ClickModel(Protocol):
    """A user who looks at a list and clicks. The last axis of arrays is the rank."""

    def sample_clicks(self, labels: Labels, *, rng: np.random.Generator) -> Clicks:
        """Clicks of one user for each list.

        Parameters
        ----------
        labels : [.., k]
            Grades, in displayed order.

        Returns
        -------
        [.., k]
        """

    def click_probabilities(self, labels: Labels) -> Floats:
        """Probability of a click at each rank, over everything that is random.

        Parameters
        ----------
        labels : [.., k]
            Grades, in displayed order.

        Returns
        -------
        [.., k]
        """


class IndependentClicks(ABC):
    """Users whose click at one rank tells nothing of those at others."""

    @abstractmethod
    def click_probabilities(self, labels: Labels) -> Floats:
        """Probability of a click at each rank.

        Parameters
        ----------
        labels : [.., k]

        Returns
        -------
        [.., k]

        Raises
        ------
        ValueError
            Naming a label that is no grade of this model.
        """

    def sample_clicks(self, labels: Labels, *, rng: np.random.Generator) -> Clicks:
        """Clicks of one user for each list of `labels` [.., k], [.., k] like them."""
        probabilities = self.click_probabilities(labels)
        clicks: Clicks = rng.random(probabilities.shape) < probabilities
        return clicks


def checked_labels(labels: Labels, n_grades: int) -> npt.NDArray[np.int64]:
    """`labels` [.., k] as integers.

    Raises
    ------
    ValueError
        Naming the first label that is no grade of the model.
    """
    given = np.asarray(labels)
    is_wrong = ~((given >= 0) & (given < n_grades) & (given == np.floor(given)))
    if is_wrong.any():
        place = tuple(int(i) for i in np.argwhere(is_wrong)[0])
        label = given[place].item()
        raise ValueError(
            f"labels must be grades 0 to {n_grades - 1} of the click model; got "
            f"{label!r} at {place if len(place) > 1 else place[-1]}"
        )
    return given.astype(np.int64)


def checked_probabilities(name: str, values: npt.ArrayLike) -> Floats:
    """A table of probabilities, from `values` [n] with n at least 1.

    Raises
    ------
    ValueError
        Where one is outside [0, 1].
    """
    table = np.array(values, np.float64)
    is_wrong = ~((table >= 0.0) & (table <= 1.0))
    if table.ndim != 1 or not len(table) or is_wrong.any():
        raise ValueError(f"{name} must be probabilities in [0, 1]; got {values!r}")
    return table


def at_ranks(curve: Floats, n_ranks: int) -> Floats:
    """`curve` [n] by rank, brought to length `n_ranks`; beyond its end it is 0."""
    found = np.zeros(n_ranks)
    size = min(n_ranks, len(curve))
    found[:size] = curve[:size]
    return found
