"""Users who read from the top, click by grade, and at some point stop.

References
----------
Guo, Liu & Wang (WSDM 2009), the dependent click model; the tables by grade are
those of Oosterhuis & de Rijke (CIKM 2018), table 2, and of their published
software for two and three grades.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.click_models.click_model import (
    Clicks,
    Labels,
    checked_labels,
    checked_probabilities,
)

Table = tuple[tuple[float, ...], tuple[float, ...]]

TABLES: dict[int, dict[str, Table]] = {
    2: {
        "perfect": ((0.0, 1.0), (0.0, 0.0)),
        "navigational": ((0.05, 0.95), (0.2, 0.9)),
        "informational": ((0.4, 0.9), (0.1, 0.5)),
        "almost_random": ((0.4, 0.6), (0.5, 0.5)),
    },
    3: {
        "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        "almost_random": ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
    },
    5: {
        "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
        "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "almost_random": ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}
"""P(click | grade) and P(stop | grade) by number of grades and kind of user."""

CASCADES = tuple(TABLES[5])
"""Kinds of users."""


@dataclass(frozen=True)
class CascadeModel:
    """A cascade with two tables by grade.

    Parameters
    ----------
    click
        P(click | looked at, grade), by grade.
    stop
        P(stop | grade), by grade.
    stop_requires_click
        Whether only a click lets a user stop, as the text of the literature says;
        otherwise every document may, as the software behind its tables does.

    Examples
    --------
    >>> CascadeModel((0.0, 1.0), (0.0, 1.0)).click_probabilities(np.array([0, 1, 1]))
    array([0., 1., 0.])
    """

    click: tuple[float, ...]
    stop: tuple[float, ...]
    stop_requires_click: bool = True

    def __post_init__(self) -> None:
        checked_probabilities("click", self.click)
        checked_probabilities("stop", self.stop)
        if len(self.click) != len(self.stop):
            raise ValueError(
                "click and stop must share their grades; got "
                f"{len(self.click)} and {len(self.stop)}"
            )

    def sample_clicks(self, labels: Labels, *, rng: np.random.Generator) -> Clicks:
        """Clicks of one user for each list, as in `ClickModel.sample_clicks`.

        Raises
        ------
        ValueError
            Naming a label that is no grade of this model.
        """
        grades = checked_labels(labels, len(self.click))
        draws = rng.random((2, *grades.shape))
        would_click = draws[0] < np.array(self.click)[grades]
        stops = draws[1] < np.array(self.stop)[grades]
        if self.stop_requires_click:
            stops &= would_click
        stopped_above = np.cumsum(stops, axis=-1) - stops
        clicks: Clicks = would_click & (stopped_above == 0)
        return clicks

    def click_probabilities(self, labels: Labels) -> Floats:
        """P(click) at each rank, as in `ClickModel.click_probabilities`."""
        grades = checked_labels(labels, len(self.click))
        click, stop = np.array(self.click)[grades], np.array(self.stop)[grades]
        goes_on = 1.0 - (click * stop if self.stop_requires_click else stop)
        looked = np.ones(grades.shape)
        looked[..., 1:] = np.cumprod(goes_on[..., :-1], axis=-1)
        return np.asarray(looked * click)


def cascade_of(
    kind: str, n_grades: int, *, stop_requires_click: bool = True
) -> CascadeModel:
    """A cascade user of the literature.

    Parameters
    ----------
    kind
        "perfect", "navigational", "informational" or "almost_random".
    n_grades
        2, 3 or 5.
    """
    if n_grades not in TABLES:
        raise ValueError(f"n_grades must be one of {list(TABLES)}; got {n_grades}")
    if kind not in TABLES[n_grades]:
        raise ValueError(f"kind must be one of {list(TABLES[n_grades])}; got {kind!r}")
    click, stop = TABLES[n_grades][kind]
    return CascadeModel(click, stop, stop_requires_click)
