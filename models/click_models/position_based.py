"""Users who look at each rank by chance, whatever stands above.

References
----------
Craswell, Zoeter, Taylor & Ramsey (WSDM 2008), the examination hypothesis.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.click_models.click_model import (
    IndependentClicks,
    Labels,
    at_ranks,
    checked_labels,
    checked_probabilities,
)


@dataclass(frozen=True)
class PositionBasedModel(IndependentClicks):
    """P(click at rank r) = examination[r - 1] * relevance[grade].

    Parameters
    ----------
    examination
        By rank; nobody looks at ranks beyond its end.
    relevance
        P(click | looked at), by grade.

    Examples
    --------
    >>> model = PositionBasedModel((1.0, 0.5), (0.0, 0.8))
    >>> model.click_probabilities(np.array([1, 1, 1]))
    array([0.8, 0.4, 0. ])
    """

    examination: tuple[float, ...]
    relevance: tuple[float, ...]

    def __post_init__(self) -> None:
        checked_probabilities("examination", self.examination)
        checked_probabilities("relevance", self.relevance)

    def click_probabilities(self, labels: Labels) -> Floats:
        """Probability of a click at each rank, [.., k] like the labels."""
        grades = checked_labels(labels, len(self.relevance))
        looked = at_ranks(np.array(self.examination), grades.shape[-1])
        return np.asarray(looked * np.array(self.relevance)[grades])


def position_based_of(
    n_grades: int,
    *,
    n_ranks: int = 100,
    severity: float = 1.0,
    relevance: Sequence[float] | None = None,
) -> PositionBasedModel:
    """Examination (1 / rank) ** severity, and relevance by grade.

    Parameters
    ----------
    relevance
        By grade; evenly from 0.1 to 1 where it is not given.
    """
    by_grade = np.linspace(0.1, 1.0, n_grades) if relevance is None else relevance
    if len(by_grade) != n_grades:
        raise ValueError(
            f"relevance must have {n_grades} grades; got {len(by_grade)} values"
        )
    examination = np.arange(1.0, n_ranks + 1) ** -severity
    return PositionBasedModel(
        tuple(examination.tolist()), tuple(float(value) for value in by_grade)
    )
