"""Simulated experiments that somebody looks at again and again.

Two rankers, pairwise preference or team draft, compiled: thousands of experiments of
thousands of impressions each.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from models.evaluation.confidence_sequence import half_width, mixture_weights
from models.evaluation.sums import N_CLASSES, class_of
from models.interleaving.pairwise_bounds import largest_preferences
from models.interleaving.pairwise_preference import LARGEST_WEIGHT, agreement, draw
from models.interleaving.team_draft import draft
from models.kernels.compilation import compiled

ALPHA = 0.05
Z_975, Z_80 = 1.959963984540054, 0.8416212335729143


@dataclass(frozen=True)
class World:
    """Users and rankers of a simulation.

    `rankings` [n_queries, 2, n_documents]; `click` [n_queries, k, n_documents] is
    P(click at rank on document); `session` impressions in a row are of the same
    query and of a user who decides alike at each rank; where `learns`, the second
    ranker puts the document that was clicked last on top. Lists are drawn and
    credited by pairwise preference with these options, or by team draft.
    """

    rankings: np.ndarray
    click: np.ndarray
    session: int = 1
    learns: bool = False
    is_draft: bool = False
    largest_weight: float = LARGEST_WEIGHT
    largest_preference: float = 0.0


@dataclass
class Looks:
    """What was seen by looking after every 100 impressions."""

    sequence_erred: int = 0
    fixed_erred: int = 0
    decisions: list[float] = field(default_factory=list)
    outcome_share: float = 0.0
    mean: float = 0.0
    variance: float = 0.0


def without_relevance(n_queries: int, k: int, *, seed: int) -> World:
    """Different lists at every query, clicks by rank alone."""
    rng = np.random.default_rng(seed)
    rankings = np.array(
        [[rng.permutation(k), rng.permutation(k)] for _ in range(n_queries)]
    )
    theta = 0.8 / np.arange(1, k + 1) ** 0.5
    return World(rankings, np.tile(theta[:, None], (n_queries, 1, k)))


def rotated(k: int) -> World:
    """One list is the other, turned by one: weights up to 2^(k - 1)."""
    first = np.arange(k)
    rankings = np.array([[first, np.roll(first, -1)]])
    theta = 0.6 / np.arange(1, k + 1) ** 0.7
    return World(rankings, np.tile(theta[:, None], (1, 1, k)))


def with_difference(strength: float) -> World:
    """Four documents, one better than the rest, that the second ranker puts last."""
    rankings = np.array([[[0, 1, 2, 3], [1, 2, 3, 0]]])
    theta = 1.0 / np.arange(1, 5)
    attraction = np.array([0.3 + strength, 0.3, 0.3, 0.3])
    return World(rankings, (theta[:, None] * attraction)[None])


def of_ten(noise: float, **options: Any) -> World:
    """50 queries of 20 documents in three grades; both rankers show ten.

    The first knows grades fairly, the second with this much noise on top. Further
    options are those of `World`.
    """
    rng = np.random.default_rng(1)
    grades = rng.choice(3, (50, 20), p=[0.6, 0.25, 0.15])
    scores = grades + 0.7 * rng.standard_normal(grades.shape)
    worse = scores + noise * rng.standard_normal(grades.shape)
    rankings = np.argsort(-np.stack([scores, worse], axis=1), axis=2)[:, :, :10]
    theta = 1.0 / np.arange(1, 11)
    click = theta[:, None] * np.array([0.05, 0.3, 0.6])[grades][:, None, :]
    return World(np.ascontiguousarray(rankings), click, **options)


def look(
    world: World,
    n_experiments: int,
    n_impressions: int,
    *,
    truth: float,
    planned_squares: float,
    seed: int,
) -> Looks:
    """Run the experiments, looking after every 100 impressions."""
    weights = mixture_weights(planned_squares, ALPHA)
    found = Looks()
    rng = np.random.default_rng(seed)
    outcomes = 0.0
    moments = np.zeros(2)
    for _ in range(n_experiments):
        counts = np.zeros(4)
        _experiment(
            world.rankings.copy(),
            world.click,
            np.array([n_impressions, world.session, world.learns, world.is_draft]),
            truth,
            np.array([world.largest_weight, world.largest_preference]),
            weights,
            counts,
            moments,
            rng,
        )
        found.sequence_erred += int(counts[0] > 0)
        found.fixed_erred += int(counts[1] > 0)
        found.decisions.append(counts[2] or math.inf)
        outcomes += counts[3]
    total = n_experiments * n_impressions
    found.mean = moments[0] / total
    found.variance = moments[1] / total - found.mean**2
    found.outcome_share = outcomes / n_experiments
    return found


@compiled
def _experiment(  # noqa: PLR0912, PLR0913, PLR0915  one loop, compiled
    rankings,
    click,
    plan,
    truth,
    options,
    weights,
    counts,
    moments,
    rng,
):
    k, n_queries = click.shape[1], rankings.shape[0]
    squares = np.zeros(N_CLASSES)
    possible = np.zeros(N_CLASSES, np.int64)
    total = sum_of_squares = 0.0
    n_clicked = n_outcomes = 0
    clicks = np.zeros(k, np.bool_)
    draws = np.empty(k)
    query = 0
    for i in range(plan[0]):
        if i % plan[1] == 0:
            query = int(rng.random() * n_queries)
            for place in range(k):
                draws[place] = rng.random()
        lists = rankings[query]
        if plan[3]:
            shown, teams = draft(lists, k, rng)
        else:
            shown = draw(lists, k, rng)
        is_clicked = False
        for place in range(k):
            clicks[place] = draws[place] < click[query, place, shown[place]]
            is_clicked |= clicks[place]
        bound = 1.0 if plan[3] else largest_preferences(lists, k, options[0])[0, 1]
        share = 1.0
        if bound > options[1] > 0.0:
            share = options[1] / bound
        bound *= share
        row = class_of(bound)
        possible[row] += bound > 0.0
        value = 0.0
        if plan[3]:
            balance = 0
            for place in range(k):
                balance += clicks[place] * ((teams[place] == 0) - (teams[place] == 1))
            value = float(np.sign(balance))
        elif is_clicked:
            credit = agreement(lists, shown, clicks, options[0], False)
            value = share * (credit[0] - credit[1])
        n_clicked += is_clicked
        n_outcomes += value != 0.0
        total += value
        squares[row] += value * value
        sum_of_squares += value * value
        moments[0] += value
        moments[1] += value * value
        if plan[2] and is_clicked:
            for place in range(k):
                if clicks[place]:
                    best = shown[place]
            at = 0
            while lists[1, at] != best:
                at += 1
            while at > 0:
                lists[1, at] = lists[1, at - 1]
                at -= 1
            lists[1, 0] = best
        n = i + 1
        if n % 100 == 0:
            width = half_width(squares, possible, weights, ALPHA)
            if abs(total - n * truth) >= width:
                counts[0] = 1.0
            deviation = math.sqrt(max(sum_of_squares / n - (total / n) ** 2, 0.0) / n)
            if abs(total / n - truth) > Z_975 * deviation:
                counts[1] = 1.0
            if counts[2] == 0.0 and abs(total) >= width:
                counts[2] = n
    counts[3] = n_outcomes / max(1, n_clicked)


def fixed_size(mean: float, variance: float) -> float:
    """Impressions that find this difference with power .8 at level .05."""
    return (Z_975 + Z_80) ** 2 * variance / mean**2
