"""Policy gradients of expected utility under Plackett-Luce, from estimated relevance.

The gradient is that of `models.plackett_luce.list_gradient`. Relevance is estimated
from one interaction, clicks over the chance that users look at the rank, so that many
interactions together give an unbiased gradient of the utility as users would see it.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats
from models.learners.learner import TrainingExample
from models.learners.parameters import (
    REFUSED,
    UPDATED,
    WITHOUT_PREFERENCE,
    ExampleLearner,
    LearnerConfig,
)
from models.optimisers.kernel import step
from models.plackett_luce.list_gradient import score_gradient


@dataclass(frozen=True)
class PlRankConfig(LearnerConfig):
    """How a PL-Rank learner is made.

    Parameters
    ----------
    n_samples
        Rankings that an update samples.
    cutoff
        Places that count in the utility.
    examination
        P(users look at rank r), by rank, each above 0; where it is empty, 1 / r.

    References
    ----------
    Oosterhuis (SIGIR 2021), PL-Rank; Oosterhuis (SIGIR 2022), PL-Rank-3.
    """

    learning_rate: float = 0.01
    n_samples: int = 100
    cutoff: int = 10
    examination: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_samples < 1 or self.cutoff < 1:
            raise ValueError(
                "n_samples and cutoff must be at least 1; got "
                f"{self.n_samples} and {self.cutoff}"
            )
        if not all(0.0 < chance <= 1.0 for chance in self.examination):
            raise ValueError(f"examination must lie in (0, 1]; got {self.examination}")


class PlRankLearner(ExampleLearner[PlRankConfig]):
    """PL-Rank as a fold over interactions that logged all candidates' features."""

    policies = frozenset({"plackett-luce", "tail-shuffle", "deterministic", "logged"})
    needs_candidates = True

    def _learn(self, example: TrainingExample) -> int:
        # The only candidate is first whatever it scores.
        if not example.clicks.any() or len(example.scores) < 2:
            return WITHOUT_PREFERENCE
        features = example.candidates.astype(np.float64)
        scores = self.ranker.score(self._parameters, features)
        if not np.isfinite(scores).all():
            return REFUSED
        relevance = np.zeros(len(scores))
        relevance[example.shown] = example.clicks / self._looked(len(example.shown))
        rng = np.random.Generator(np.random.PCG64([example.seed, 2]))
        slopes = score_gradient(
            scores,
            relevance,
            rank_weights(min(self.config.cutoff, len(scores))),
            n_samples=self.config.n_samples,
            rng=rng,
        )
        self._gradient[:] = self.ranker.accumulate(self._parameters, features, slopes)
        moved = step(self._parameters, self._gradient, self._optimiser)
        return UPDATED if moved else REFUSED

    def _looked(self, n_shown: int) -> Floats:
        chances = 1.0 / np.arange(1.0, n_shown + 1)
        given = self.config.examination[:n_shown]
        chances[: len(given)] = given
        return chances


def rank_weights(cutoff: int) -> Floats:
    """Those of DCG: 1 / log2(rank + 1), [cutoff]."""
    return np.asarray(1.0 / np.log2(np.arange(2.0, cutoff + 2)))
