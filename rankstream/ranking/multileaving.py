"""Lists that compare a ranker with random candidates near it, in numpy.

What a service shows so that a DBGD or MGD learner can learn. All draws come from one
seed, candidates first: the learner draws the candidates again from the logged seed.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rankstream.ranking.scoring import scores_of

Floats = npt.NDArray[np.float64]
Singles = npt.NDArray[np.float32]
Integers = npt.NDArray[np.int64]

COMPARISONS = ("probabilistic", "team-draft")

NO_TEAM = -1


@dataclass(frozen=True)
class Multileaving:
    """How lists are made; a learner must have the same settings.

    Parameters
    ----------
    n_candidates
        Rankers beside the one that learns.
    comparison
        "probabilistic" or "team-draft".
    unit
        Length of the vectors that make candidates.
    tau
        A ranker draws its document at rank r with weight 1 / r^tau.
    """

    n_candidates: int = 1
    comparison: str = "probabilistic"
    unit: float = 1.0
    tau: float = 3.0

    def __post_init__(self) -> None:
        if self.n_candidates < 1:
            raise ValueError(
                f"n_candidates must be at least 1; got {self.n_candidates}"
            )
        if self.comparison not in COMPARISONS:
            raise ValueError(
                f"comparison must be one of {COMPARISONS}; got {self.comparison!r}"
            )


ONE_CANDIDATE = Multileaving()
"""Those of DBGD."""


@dataclass(frozen=True)
class Multileaved:
    """A list of several rankers.

    `order` [k] holds rows of the shown documents, `ranks` [k, 1 + n_candidates] where
    every ranker has them, from 1, `teams` [k] whose each is in team draft, -1 for
    nobody's; it is empty otherwise.
    """

    order: Integers
    ranks: Integers
    teams: Integers


def compare(  # noqa: PLR0913  a list depends on so much
    features: Singles,
    weights: Singles,
    hidden: list[int],
    kind: str,
    *,
    settings: Multileaving,
    cutoff: int,
    seed: int,
) -> Multileaved:
    """A list of the ranker with these weights and of candidates around it.

    Parameters
    ----------
    features : [n_documents, n_features]
    weights : [n_weights]
    hidden, kind
        Of the ranker; see `rankstream.ranking.scoring.scores_of`.

    Raises
    ------
    ValueError
        Where a candidate gives scores that are not finite, or cutoff is below 1.
    """
    if cutoff < 1:
        raise ValueError(f"cutoff must be at least 1; got {cutoff}")
    rng = np.random.Generator(np.random.PCG64(seed))
    directions = directions_of(rng, settings.n_candidates, len(weights), settings.unit)
    everybody = [weights, *(weights + directions).astype(np.float32)]
    columns = [scores_of(features, near, hidden, kind) for near in everybody]
    scores = np.stack(columns, axis=1).astype(np.float64)
    if not np.isfinite(scores).all():
        raise ValueError("scores of candidates must be finite; some are not")
    return multileave(scores, settings, cutoff=cutoff, rng=rng)


def directions_of(
    rng: np.random.Generator, n_candidates: int, n_weights: int, unit: float
) -> Floats:
    """Vectors of one length in random directions, [n_candidates, n_weights]."""
    drawn = rng.standard_normal((n_candidates, n_weights))
    lengths = np.sqrt(np.square(drawn).sum(axis=1))
    directions: Floats = drawn * (unit / lengths)[:, None]
    return directions


def multileave(
    scores: Floats, settings: Multileaving, *, cutoff: int, rng: np.random.Generator
) -> Multileaved:
    """A list of rankers with these `scores` [n_documents, n_rankers].

    Equal scores stand in one random order, the same for all rankers.
    """
    n, n_rankers = scores.shape
    ties = rng.permutation(n)
    ranks = np.empty((n, n_rankers), np.int64)
    for r in range(n_rankers):
        ranks[np.lexsort((ties, -scores[:, r])), r] = np.arange(1, n + 1)
    k = min(cutoff, n)
    if settings.comparison == "team-draft":
        order, teams = _drafted(ranks, k, rng)
    else:
        order, teams = _drawn(ranks, k, settings.tau, rng), np.empty(0, np.int64)
    return Multileaved(order, ranks[order], teams)


def _drawn(ranks: Integers, k: int, tau: float, rng: np.random.Generator) -> Integers:
    shares = ranks.astype(np.float64) ** -tau
    order = np.empty(k, np.int64)
    left = np.arange(len(ranks))
    for place in range(k):
        r = int(rng.integers(ranks.shape[1]))
        # Summed again at each place: a difference would lose the small shares.
        reached = np.cumsum(shares[left, r])
        at = int(np.searchsorted(reached, rng.random() * reached[-1], side="right"))
        at = min(at, len(left) - 1)
        order[place] = left[at]
        left = np.delete(left, at)
    return order


def _drafted(
    ranks: Integers, k: int, rng: np.random.Generator
) -> tuple[Integers, Integers]:
    rankings = np.argsort(ranks, axis=0).T
    agree = (rankings == rankings[0]).all(axis=0)
    n_common = int(np.argmin(agree)) if not agree.all() else len(agree)
    order = list(rankings[0, : min(n_common, k)].tolist())
    teams = [NO_TEAM] * len(order)
    placed = set(order)
    while len(order) < k:
        for r in rng.permutation(len(rankings)).tolist():
            if len(order) == k:
                break
            row = next(row for row in rankings[r].tolist() if row not in placed)
            order.append(row)
            teams.append(r)
            placed.add(row)
    return np.array(order, np.int64), np.array(teams, np.int64)
