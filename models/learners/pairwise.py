"""The pairwise baseline: preferences from clicks on lists with random insertions.

    parameters += rate * sum over pairs (i preferred to j) of
                  d (s_i - s_j) / d parameters

Every pair counts alike, whether it is ranked right already or not. What keeps it
from following its own lists is that a share of places is filled at random.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.click_preferences import n_compared
from models.kernels.compilation import compiled
from models.learners.learner import TrainingExample
from models.learners.parameters import (
    REFUSED,
    UPDATED,
    WITHOUT_PREFERENCE,
    ExampleLearner,
    LearnerConfig,
)
from models.optimisers.kernel import step
from models.rankers.layers import add_gradient, n_activations, score_rows


@dataclass(frozen=True)
class PairwiseConfig(LearnerConfig):
    """How a pairwise learner is made.

    Parameters
    ----------
    exploration
        Share of places that a random document fills, in [0, 1].
    worst_first
        Fill the other places from the *lowest* score on, as the published code did.

    References
    ----------
    Hofmann, Whiteson & de Rijke (Information Retrieval 16, 2013).
    """

    exploration: float = 0.8
    worst_first: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.exploration <= 1.0:
            raise ValueError(f"exploration must lie in [0, 1]; got {self.exploration}")


class PairwiseLearner(ExampleLearner[PairwiseConfig]):
    """The pairwise baseline as a fold over interactions, whatever made the lists."""

    policies = frozenset(
        {"plackett-luce", "deterministic", "tail-shuffle", "logged", "unknown"}
    )

    def _learn(self, example: TrainingExample) -> int:
        coefficients = np.zeros(len(example.shown))
        if not add_preferences(example.clicks, coefficients):
            return WITHOUT_PREFERENCE
        activations = np.empty((len(example.shown), n_activations(self._shape)))
        present = np.empty(len(example.shown))
        score_rows(
            self._parameters, self._shape, example.features, present, activations
        )
        self._gradient[:] = 0.0
        add_gradient(
            self._gradient,
            coefficients,
            self._parameters,
            self._shape,
            example.features,
            activations,
        )
        moved = step(self._parameters, self._gradient, self._optimiser)
        return UPDATED if moved else REFUSED


@compiled
def add_preferences(clicks: Flags, coefficients: Floats) -> int:
    """Add 1 for every pair a document wins, -1 where it loses; returns the pairs.

    Parameters
    ----------
    clicks, coefficients : [k]
        Of the shown documents, in displayed order.
    """
    end = n_compared(clicks)
    n_clicked = 0
    for x in range(end):
        n_clicked += clicks[x]
    for x in range(end):
        coefficients[x] += end - n_clicked if clicks[x] else -n_clicked
    return n_clicked * (end - n_clicked)


@compiled
def draw_exploring(
    ranking: Integers, exploration: float, rows: Integers, rng: np.random.Generator
) -> None:
    """Fill `rows`: each place at random with a chance, else the best that is left.

    Parameters
    ----------
    ranking : [n]
        All candidates, the best first.
    rows : [k]
        With k <= n.
    """
    n = ranking.shape[0]
    is_placed = np.zeros(n, np.bool_)
    best = 0
    for place in range(rows.shape[0]):
        while is_placed[ranking[best]]:
            best += 1
        chosen = ranking[best]
        if rng.random() < exploration:
            nth = min(int(rng.random() * (n - place)), n - place - 1)
            for d in range(n):
                if not is_placed[d]:
                    chosen = d
                    nth -= 1
                    if nth < 0:
                        break
        rows[place] = chosen
        is_placed[chosen] = True
