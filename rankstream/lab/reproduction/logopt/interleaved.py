"""What interleaving prefers in the end, by expectation over clicks.

Given a list, clicks are independent, and so are the steps by which two rankers' clicks
differ: the expected sign over all clicks is exact. Lists of optimized interleaving have
known chances; those of the others are drawn.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.interleaving.optimized import Optimized
from models.interleaving.probabilistic import (
    assignment_shares,
    expected_signs,
)
from models.interleaving.probabilistic import draw as draw_soft
from models.interleaving.team_draft import draft
from models.kernels.compilation import compiled
from rankstream.lab.reproduction.logopt.plan import (
    OPTIMIZED,
    TEAM_DRAFT,
)

N_DRAWN = 200
"""Lists of each query."""

TAU = 4.0
"""Of probabilistic interleaving of two rankers."""


class Preference(NamedTuple):
    """Mean preference of one list for the first ranker, and its standard error."""

    mean: float
    error: float

    @property
    def is_told(self) -> bool:
        """Whether its sign is not by chance."""
        return abs(self.mean) > 2.0 * self.error


def preference_of(
    method: str,
    rankings: Sequence[Integers],
    relevance: Sequence[Floats],
    examination: Floats,
    *,
    rng: np.random.Generator,
) -> Preference:
    """The mean over queries, each as likely.

    Parameters
    ----------
    rankings : [2, n]
        Of each query.
    relevance : [n]
        Of each query.
    examination : [n_ranks]
        P(looked at | rank).
    """
    found = np.array(
        [
            _of_query(method, lists, zeta, examination[: lists.shape[1]], rng)
            for lists, zeta in zip(rankings, relevance, strict=True)
        ]
    )
    error = np.sqrt(found[:, 1].sum()) / len(found)
    return Preference(float(found[:, 0].mean()), float(error))


def _of_query(
    method: str,
    rankings: Integers,
    relevance: Floats,
    examination: Floats,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """Mean, and the variance of that mean by lists that were drawn."""
    k = len(examination)
    if (rankings[0, :k] == rankings[1, :k]).all():
        return 0.0, 0.0
    if method == OPTIMIZED:
        optimized = Optimized()
        lists, chances, _ = optimized.distribution(rankings, k, rng=rng)
        credit = optimized.credit_of(rankings, np.arange(rankings.shape[1]))
        gaps = (credit[0] - credit[1])[lists] * relevance[lists]
        return float(chances @ (gaps @ examination[: lists.shape[1]])), 0.0
    is_draft = method == TEAM_DRAFT
    signs = _drawn_signs(is_draft, rankings, relevance, examination, N_DRAWN, rng)
    return float(signs.mean()), float(signs.var(ddof=1) / len(signs))


@compiled
def _drawn_signs(
    is_draft: bool,
    rankings: Integers,
    relevance: Floats,
    examination: Floats,
    n_lists: int,
    rng: np.random.Generator,
) -> Floats:
    """Expected sign given each of some drawn lists, of probabilistic ones or drafts."""
    k = examination.shape[0]
    signs = np.empty(n_lists)
    for i in range(n_lists):
        steps = np.zeros((k, 2))
        if is_draft:
            shown, teams = draft(rankings, k, rng)
            for place in range(shown.shape[0]):
                if teams[place] >= 0:
                    steps[place, teams[place]] = 1.0
        else:
            shown = draw_soft(rankings, k, TAU, rng)
            steps = assignment_shares(rankings, shown, np.ones(k, np.bool_), TAU)
        for place in range(shown.shape[0]):
            steps[place] *= examination[place] * relevance[shown[place]]
        signs[i] = expected_signs(steps)[0, 1]
    return signs
