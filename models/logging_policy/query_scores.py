"""LogOpt where a query is known: scores of its items, optimised one by one, compiled.

Scores begin where a list of one item would be best shown: P(looked at) in proportion to
the size of lambda times the root of zeta. From there Adam goes down E[x^2].

References
----------
Oosterhuis & de Rijke (ICTIR 2020), algorithm 1, for one query; the gradient is that of
`models.logging_policy.second_moment`.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.kernels.compilation import compiled
from models.logging_policy.compared_query import ComparedQuery
from models.logging_policy.floor import LEAST, checked_floor, floored
from models.logging_policy.second_moment import add_second_moment
from models.optimisers import kernel
from models.optimisers.optimiser import OptimiserConfig, optimiser_of

LAST_RATE = 0.05
"""Share of the rate that the last step has."""

LEAST_SHARE = 0.02
"""Of the most that an item begins with, which one that tells nothing begins with."""


@dataclass(frozen=True)
class ScoresPlan:
    """How scores of a query are optimised.

    Parameters
    ----------
    steps
        At least 1.
    learning_rate
        What the first step moves a score by, about; finite and above 0.
    n_lists
        Drawn in each step where there are many items, at least 2.
    floor
        Least P(looked at) of an item that matters; see `models.logging_policy.floor`.

    Raises
    ------
    ValueError
        Where a number is outside its range.
    """

    steps: int = 30
    learning_rate: float = 0.3
    n_lists: int = 50
    floor: float = LEAST

    def __post_init__(self) -> None:
        if self.steps < 1 or self.n_lists < 2:
            raise ValueError(
                "steps must be at least 1, and n_lists 2; got "
                f"{self.steps} and {self.n_lists}"
            )
        if not 0.0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be finite and above 0; got {self.learning_rate}"
            )
        checked_floor(self.floor)


def optimised_scores(
    query: ComparedQuery, plan: ScoresPlan, *, rng: np.random.Generator
) -> Floats:
    """Log scores of the Plackett-Luce policy that a query is best logged by, [n].

    Where no click tells anything, all policies are as good: scores are equal then, and
    nothing is drawn.

    Raises
    ------
    ValueError
        Where no policy meets the floor.
    """
    n = len(query.relevance)
    if not query.matters.any():
        return np.zeros(n)
    gains = np.abs(query.differences) * np.sqrt(query.relevance)
    scores = np.log(np.maximum(gains / gains.max(), LEAST_SHARE))
    decay = LAST_RATE ** (1.0 / plan.steps)
    config = OptimiserConfig("adam", plan.learning_rate, decay)
    _descend(scores, *query, plan.steps, plan.n_lists, optimiser_of(config, n), rng)
    return floored(scores, query, plan.floor)


@compiled
def _descend(  # noqa: PLR0913  a kernel takes plain arrays
    scores: Floats,
    relevance: Floats,
    differences: Floats,
    examination: Floats,
    steps: int,
    n_lists: int,
    optimiser: kernel.Optimiser,
    rng: np.random.Generator,
) -> None:
    """Go down E[x^2]; `scores` [n] are moved."""
    n = scores.shape[0]
    order, slopes, propensities = np.empty(n, np.int64), np.zeros(n), np.empty(n)
    for _ in range(steps):
        slopes[:] = 0.0
        add_second_moment(
            scores, relevance, differences, examination, n_lists, order, slopes,
            propensities, rng,
        )  # fmt: skip
        kernel.step(scores, -slopes, optimiser)
