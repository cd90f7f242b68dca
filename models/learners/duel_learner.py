"""Dueling bandit gradient descent, and its multileaved form.

Candidates are the ranker plus random unit vectors. Users compare their rankings,
and the ranker moves towards the mean of those that won against it:

    parameters += rate * mean over winners of (candidate - parameters)

A duel by probabilistic interleaving is decided by its exact expected outcome, not
by sampled assignments: a candidate that ranks alike never wins.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.learners import multileaved_lists as lists
from models.learners import multileaved_verdicts as verdicts
from models.learners.learner import TrainingExample
from models.learners.parameters import (
    REFUSED,
    UPDATED,
    WITHOUT_PREFERENCE,
    ExampleLearner,
    LearnerConfig,
)
from models.optimisers.kernel import step

MGD_CANDIDATES = 49
"""Of MGD where nothing else is asked for."""

PROBABILISTIC, TEAM_DRAFT, ORACLE = range(3)

COMPARISONS = {
    "probabilistic": PROBABILISTIC,
    "team-draft": TEAM_DRAFT,
    "oracle": ORACLE,
}


@dataclass(frozen=True)
class DuelConfig(LearnerConfig):
    """How a learner by comparison is made.

    Parameters
    ----------
    n_candidates
        Rankers that each impression compares with the learner's: 1 is DBGD.
    comparison
        "probabilistic", "team-draft", or, where labels are known as in
        simulations, "oracle": the ranker with the larger DCG on the query wins.
    unit
        Length of the vectors that make candidates.
    tau
        A ranker draws its document at rank r with weight 1 / r^tau.
    n_samples
        0 for exact duels; else the noise of so many sampled assignments, with the
        winners among equals that it makes.
    own_ties
        Let every ranker break its ties by itself, so that rankers with equal scores
        may differ.

    References
    ----------
    Yue & Joachims (ICML 2009), DBGD; Schuth et al. (WSDM 2016), MGD; Oosterhuis,
    Schuth & de Rijke (ECIR 2016), P-MGD.
    """

    learning_rate: float = 0.01
    n_candidates: int = 1
    comparison: str = "probabilistic"
    unit: float = 1.0
    tau: float = 3.0
    n_samples: int = 0
    own_ties: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_candidates < 1 or self.n_samples < 0:
            raise ValueError(
                "n_candidates must be at least 1 and n_samples not negative; got "
                f"{self.n_candidates} and {self.n_samples}"
            )
        if self.comparison not in COMPARISONS:
            raise ValueError(
                f"comparison must be one of {list(COMPARISONS)}; "
                f"got {self.comparison!r}"
            )
        for name in ("unit", "tau"):
            if not 0.0 < getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} must be finite and above 0; got {getattr(self, name)}"
                )


def directions_of(
    seed: int, n_candidates: int, n_parameters: int, unit: float
) -> npt.NDArray[np.float64]:
    """Vectors of one length in random directions, as a ranker drew them from a seed.

    Returns
    -------
    [n_candidates, n_parameters]
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    drawn = rng.standard_normal((n_candidates, n_parameters))
    lengths = np.sqrt(np.square(drawn).sum(axis=1))
    directions: Floats = drawn * (unit / lengths)[:, None]
    return directions


class DuelLearner(ExampleLearner[DuelConfig]):
    """DBGD and MGD as a fold over interactions with multileaved lists.

    An example holds the ranks of the shown documents by every ranker, or their teams;
    the candidates are drawn again from its seed.
    """

    policies = frozenset({"multileave"})

    def __init__(self, config: DuelConfig) -> None:
        if config.comparison == "oracle":
            raise ValueError(
                "comparison must be probabilistic or team-draft where users decide; "
                "got 'oracle', which needs labels"
            )
        super().__init__(config)

    def _learn(self, example: TrainingExample) -> int:
        if not example.clicks.any():
            return WITHOUT_PREFERENCE
        is_winner = np.zeros(self.config.n_candidates + 1, np.bool_)
        if self.config.comparison == "team-draft":
            self._check_teams(example)
            verdicts.mark_team_winners(
                example.teams.astype(np.int64), example.clicks, is_winner
            )
        else:
            self._mark_winners(example, is_winner)
        if not is_winner.any():
            return WITHOUT_PREFERENCE
        drawn = directions_of(
            example.seed,
            self.config.n_candidates,
            self.ranker.n_parameters,
            self.config.unit,
        )
        self._gradient[:] = drawn[is_winner[1:]].mean(axis=0)
        moved = step(self._parameters, self._gradient, self._optimiser)
        return UPDATED if moved else REFUSED

    def _mark_winners(
        self, example: TrainingExample, is_winner: npt.NDArray[np.bool_]
    ) -> None:
        n, k = len(example.scores), len(example.shown)
        width = self.config.n_candidates + 1
        ranks = example.ranks.astype(np.int32)
        if ranks.shape != (k, width):
            raise ValueError(
                f"ranks must be of {k} shown documents by {width} rankers; "
                f"got shape {ranks.shape}"
            )
        if ranks.min() < 1 or ranks.max() > n:
            raise ValueError(
                f"ranks must lie in 1..{n}; got {ranks.min()} to {ranks.max()}"
            )
        if (np.diff(np.sort(ranks, axis=0), axis=0) == 0).any():
            raise ValueError("a ranker must rank documents apart; two share a rank")
        shares = np.empty(n)
        lists.fill_shares(shares, self.config.tau)
        assignment = np.empty((int(example.clicks.sum()), width))
        verdicts.fill_assignment(ranks, shares, example.clicks, assignment)
        if self.config.n_samples:
            # Seeded by the impression, so that a fold stays a function of its log.
            rng = np.random.Generator(np.random.PCG64([example.seed, 1]))
            verdicts.mark_winners_by_sample(
                assignment, self.config.n_samples, is_winner, rng
            )
        else:
            verdicts.mark_winners(assignment, is_winner)

    def _check_teams(self, example: TrainingExample) -> None:
        teams, last = example.teams, self.config.n_candidates
        if len(teams) != len(example.shown):
            raise ValueError(
                f"teams must be of {len(example.shown)} shown documents; "
                f"got {len(teams)}"
            )
        if teams.min() < lists.NO_TEAM or teams.max() > last:
            raise ValueError(
                f"teams must lie in -1..{last}; got {teams.min()} to {teams.max()}"
            )
