"""Counterfactual online learning to rank: candidates judged by reweighted clicks.

Random unit vectors around the ranker are candidates. What the user passed over, the
unclicked documents above the last click, is a risk that a candidate may share less:

    risk(c) = sum over shown x of  w_x * risk_x / sum over shown x of w_x,
    w_x = P(document at x | those above, candidate) / P(the same | logged scores)

Both probabilities have the denominators of their own model. The ranker moves towards
the mean of the candidates whose risk, with a margin for its variance, is lower.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.learners.duel_learner import directions_of
from models.learners.learner import TrainingExample
from models.learners.parameters import (
    REFUSED,
    UPDATED,
    WITHOUT_PREFERENCE,
    ExampleLearner,
    LearnerConfig,
)
from models.optimisers.kernel import step


@dataclass(frozen=True)
class ColtrConfig(LearnerConfig):
    """How a COLTR learner is made.

    Parameters
    ----------
    n_candidates
        Vectors that are tried at each interaction.
    unit
        Their length.
    variance_weight
        How many deviations a candidate has to be better by.

    References
    ----------
    Zhuang & Zuccon (ECIR 2020).
    """

    learning_rate: float = 0.05
    n_candidates: int = 50
    unit: float = 1.0
    variance_weight: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_candidates < 1:
            raise ValueError(
                f"n_candidates must be at least 1; got {self.n_candidates}"
            )
        if not 0.0 < self.unit < np.inf or not 0.0 <= self.variance_weight < np.inf:
            raise ValueError(
                "unit must be above 0 and variance_weight not negative, both finite; "
                f"got {self.unit} and {self.variance_weight}"
            )


class ColtrLearner(ExampleLearner[ColtrConfig]):
    """COLTR as a fold over interactions that logged all candidates' features."""

    policies = frozenset({"plackett-luce"})
    needs_candidates = True

    def _learn(self, example: TrainingExample) -> int:
        risk = risks_of(example.clicks)
        if example.clicks.all() or not risk.any():
            return WITHOUT_PREFERENCE
        is_finite = np.isfinite(example.scores).all()
        if not (is_finite and np.isfinite(example.candidates).all()):
            return REFUSED
        directions = directions_of(
            example.seed,
            self.config.n_candidates,
            self.ranker.n_parameters,
            self.config.unit,
        )
        is_better = self._better(example, risk, directions)
        if not is_better.any():
            return WITHOUT_PREFERENCE
        self._gradient[:] = directions[is_better].mean(axis=0)
        moved = step(self._parameters, self._gradient, self._optimiser)
        return UPDATED if moved else REFUSED

    def _better(
        self, example: TrainingExample, risk: Floats, directions: Floats
    ) -> Flags:
        shown = example.shown.astype(np.int64)
        logged = placement_logs(example.scores.astype(np.float64), shown)
        threshold = margin_of(risk, np.ones(len(risk)), self.config.variance_weight)
        found = np.zeros(len(directions), np.bool_)
        for at, direction in enumerate(directions):
            scores = self.ranker.score(
                self._parameters + direction, example.candidates.astype(np.float64)
            )
            # Only ratios to each other count, so the largest may be 1.
            logs = placement_logs(scores, shown) - logged
            ratios = np.exp(logs - logs.max())
            margin = margin_of(risk, ratios, self.config.variance_weight)
            found[at] = margin < threshold
        return found


def risks_of(clicks: Flags) -> Floats:
    """1 for each unclicked document above the last click, [k].

    Parameters
    ----------
    clicks : [k]
        In displayed order.
    """
    is_above = np.cumsum(clicks[::-1])[::-1] > 0
    return (is_above & ~clicks).astype(np.float64)


def placement_logs(scores: Floats, shown: Integers) -> Floats:
    """Log P(each shown document | those above it) under Plackett-Luce.

    Parameters
    ----------
    scores : [n]
    shown : [k]

    Returns
    -------
    [k]
    """
    is_below = np.ones(len(scores), np.bool_)
    is_below[shown] = False
    # Only differences matter, and logs of sums round them away far from 0.
    relative = scores - scores.max()
    rest = np.logaddexp.reduce(relative[is_below]) if is_below.any() else -np.inf
    placed = relative[shown]
    left = np.logaddexp.accumulate(np.append(rest, placed[::-1]))[:0:-1]
    return np.asarray(placed - left)


def margin_of(risk: Floats, ratios: Floats, variance_weight: float) -> float:
    """Self-normalised risk, and its deviation on top.

    Parameters
    ----------
    risk, ratios : [k]
    """
    total = ratios.sum()
    mean = (risk * ratios).sum() / total
    variance = (np.square(risk - mean) * np.square(ratios)).sum() / total**2
    return float(mean + variance_weight * np.sqrt(variance / len(risk)))
