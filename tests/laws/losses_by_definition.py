"""Losses and metrics of one query, item by item, from their definitions.

Written in plain Python beside the compiled losses, so that a slip in one is none in
the other.
"""

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Definition = Callable[[Floats, Floats, Flags, int], float]


def ranks_of(scores: Floats) -> list[int]:
    """From 1; equal scores rank by row."""
    order = sorted(range(len(scores)), key=lambda row: (-scores[row], row))
    ranks = [0] * len(order)
    for place, row in enumerate(order, 1):
        ranks[row] = place
    return ranks


def discount(rank: int, cutoff: float = math.inf) -> float:
    """Of DCG@k; there is no rank 0."""
    return 1.0 / math.log2(1.0 + rank) if rank <= cutoff else 0.0


def surprise(gap: float) -> float:
    """-log2 sigma(gap)."""
    return (max(-gap, 0.0) + math.log1p(math.exp(-abs(gap)))) / math.log(2.0)


def hinge(gap: float) -> float:
    """How far an item counts as above another, by their difference."""
    return max(1.0 + gap, 0.0)


def logistic(gap: float) -> float:
    """The same without a kink."""
    return surprise(-gap)


def metric_of(cost: Callable[[int, int], float]) -> Definition:
    """What known items cost at their ranks."""

    def metric(scores: Floats, weights: Floats, where: Flags, cutoff: int) -> float:
        ranks = ranks_of(scores)
        return math.fsum(
            weights[d] * cost(ranks[d], cutoff) for d in range(len(ranks)) if where[d]
        )

    return metric


METRICS: dict[str, Definition] = {
    "arp": metric_of(lambda rank, _: float(rank)),
    "dcg": metric_of(lambda rank, _: -discount(rank)),
    "dcg-at-k": metric_of(lambda rank, k: -discount(rank, k)),
    "precision-at-k": metric_of(lambda rank, k: -1.0 / k if rank <= k else 0.0),
}
"""Of which less is better."""


def bounded(metric: str, step: Callable[[float], float]) -> Definition:
    """A metric by a bound of ranks."""

    def cost(place: float, k: int) -> float:
        if metric == "arp":
            return place
        if metric == "precision-at-k":
            return -1.0 / (k - 1.0 + place)
        return -1.0 / math.log2(1.0 + place)

    def loss(scores: Floats, weights: Floats, where: Flags, cutoff: int) -> float:
        n, ranks, total = len(scores), ranks_of(scores), 0.0
        known = [d for d in range(n) if where[d]]
        unknown = [d for d in range(n) if not where[d]]
        for d in known:
            if weights[d] >= 0.0 or metric != "arp":
                place = sum(step(scores[x] - scores[d]) for x in known)
                place += sum(ranks[x] < ranks[d] for x in unknown)
                total += weights[d] * cost(place, cutoff)
                if metric.endswith("at-k") and ranks[d] > cutoff:
                    total -= weights[d] * cost(float(cutoff), cutoff)
            else:
                from_below = sum(step(scores[d] - scores[x]) for x in known)
                from_below += sum(ranks[x] > ranks[d] for x in unknown)
                total += weights[d] * cost(n + 1.0 - from_below, cutoff)
        return total

    return loss


def paired(weight: Callable[[int, int, int], float]) -> Definition:
    """Over pairs of known items of which one has the larger weight."""

    def loss(scores: Floats, weights: Floats, where: Flags, cutoff: int) -> float:
        ranks, total = ranks_of(scores), 0.0
        for better, worse in itertools.permutations(range(len(scores)), 2):
            if where[better] and where[worse] and weights[better] > weights[worse]:
                counts = weight(ranks[better], ranks[worse], cutoff)
                gained = weights[better] - weights[worse]
                total += counts * gained * surprise(scores[better] - scores[worse])
        return total

    return loss


def delta(n: int, m: int, cutoff: float = math.inf) -> float:
    """Of LambdaLoss."""
    return discount(abs(n - m), cutoff) - discount(abs(n - m) + 1, cutoff)


def expected_worth(
    scores: Floats, weights: Floats, where: Flags, worths: Sequence[float] | Floats
) -> float:
    """Mean over all Plackett-Luce lists of as many places as there are worths."""
    total = 0.0
    for rows in itertools.permutations(range(len(scores)), len(worths)):
        log_chance = 0.0
        for x, row in enumerate(rows):
            log_chance += scores[row] - np.logaddexp.reduce(
                np.delete(scores, list(rows[:x]))
            )
        worth = sum(
            w * weights[row] for w, row in zip(worths, rows, strict=True) if where[row]
        )
        total += math.exp(log_chance) * worth
    return total


def minus_expected_dcg(
    scores: Floats, weights: Floats, where: Flags, cutoff: int
) -> float:
    """The policy gradient's loss."""
    worths = [discount(rank) for rank in range(1, min(cutoff, len(scores)) + 1)]
    return -expected_worth(scores, weights, where, worths)


DEFINITIONS: dict[str, Definition] = {
    "truncated-lambda": paired(
        lambda n, m, k: delta(n, m) if n <= k or m <= k else 0.0
    ),
    "lambda-loss-at-k": paired(delta),
    "lambda-loss": paired(lambda n, m, _: delta(n, m)),
    "lambda-rank": paired(lambda n, m, k: abs(discount(n, k) - discount(m, k))),
    "policy-gradient": minus_expected_dcg,
    # Of no other parent: `tests/laws/test_proximal.py` has those.
    "proximal": minus_expected_dcg,
    **{
        f"{metric}-{name}": bounded(metric, step)
        for metric in METRICS
        for name, step in (("linear", hinge), ("logistic", logistic))
    },
}
"""By the names of the registry."""
