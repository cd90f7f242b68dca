"""Policy gradients of expected utility under Plackett-Luce, from estimated relevance.

The utility of a ranking is the sum of rank weights times relevance over its first k
places. Its gradient in the scores is estimated from sampled rankings in
O(n log n + samples * (n + k)), with the sums of PL-Rank-3.

As a learner: relevance is estimated from one interaction, clicks over the chance that
users look at the rank, so that many interactions together give an unbiased gradient of
the utility as users would see it.
"""

import math
from dataclasses import dataclass

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.kernels.compilation import compiled
from models.kernels.exponentials import largest_of
from models.learners.learner import TrainingExample
from models.learners.parameters import (
    REFUSED,
    UPDATED,
    WITHOUT_PREFERENCE,
    ExampleLearner,
    LearnerConfig,
)
from models.learners.reversed_pairs import log_sum, rest_log
from models.optimisers.kernel import step
from models.plackett_luce.list_sampler import BLOCK, sample_list


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


def score_gradient(
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    *,
    n_samples: int,
    rng: np.random.Generator,
) -> Floats:
    """Estimated gradient of the expected utility in the scores.

    Parameters
    ----------
    scores, relevance : [n]
    weights : [k]
        Of the first k <= n ranks.

    Returns
    -------
    [n]
    """
    gradient = np.zeros(len(scores))
    add_sampled_gradients(scores, relevance, weights, n_samples, gradient, rng)
    return gradient / n_samples


@compiled
def add_sampled_gradients(
    scores: Floats,
    relevance: Floats,
    weights: Floats,
    n_samples: int,
    gradient: Floats,
    rng: np.random.Generator,
) -> None:
    """Add what sampled lists say of the gradient.

    Parameters
    ----------
    scores, relevance, gradient : [n]
    weights : [k]
        Of the first k <= n ranks.
    """
    n = scores.shape[0]
    masses = np.empty(n)
    blocks = np.empty((n + BLOCK - 1) // BLOCK)
    rows = np.empty(weights.shape[0], np.int64)
    for _ in range(n_samples):
        sample_list(scores, masses, blocks, rows, rng)
        add_list_gradient(scores, relevance, weights, rows, gradient)


@compiled
def add_list_gradient(
    scores: Floats, relevance: Floats, weights: Floats, rows: Integers, gradient: Floats
) -> None:
    """Add what one sampled top k says of the gradient.

    With S_x the mass that is left before place x, and U_x the utility from place x
    on, a document d that stands at place r, or below all k, gets

        U_(r+1) + sum over x = 1 .. min(r, k) of
                  exp(score of d) / S_x * (weight_x * relevance of d - U_x)

    Both sums over x are carried from place to place, measured by the mass there, so
    that no factor is above 1.

    Parameters
    ----------
    scores, relevance, gradient : [n]
    weights, rows : [k]
        Of the first k <= n ranks, and the documents there.
    """
    n, k = scores.shape[0], rows.shape[0]
    is_placed = np.zeros(n, np.bool_)
    is_placed[rows] = True
    # Only differences matter, and logs of sums round them away far from 0.
    relative = scores - largest_of(scores)
    logs = left_logs(relative, rows, is_placed)
    after = np.zeros(k + 1)
    for x in range(k - 1, -1, -1):
        after[x] = after[x + 1] + weights[x] * relevance[rows[x]]
    direct, given_up = 0.0, 0.0
    for x in range(k):
        if x > 0:
            shrink = math.exp(logs[x] - logs[x - 1])
            direct *= shrink
            given_up *= shrink
        direct += weights[x]
        given_up += after[x]
        d = rows[x]
        size = math.exp(relative[d] - logs[x])
        gradient[d] += after[x + 1] + size * (relevance[d] * direct - given_up)
    for d in range(n):
        if not is_placed[d]:
            size = math.exp(relative[d] - logs[k - 1])
            gradient[d] += size * (relevance[d] * direct - given_up)


@compiled
def left_logs(scores: Floats, rows: Integers, is_placed: Flags) -> Floats:
    """Log of the mass that is left before each place, summed from the bottom up.

    Parameters
    ----------
    scores, is_placed : [n]
    rows : [k]
        The placed documents, from the top.
    """
    k = rows.shape[0]
    below = rest_log(scores, is_placed)
    logs = np.empty(k)
    for x in range(k - 1, -1, -1):
        below = log_sum(below, scores[rows[x]])
        logs[x] = below
    return logs
