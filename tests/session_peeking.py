"""Experiments whose sessions have tastes, looked at after every impression.

Two rankers; compiled, and judged by the functions that verdicts call.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from models.evaluation.confidence_sequence import half_width, mixture_weights
from models.evaluation.session_sequence import largest_score, means_within
from models.evaluation.sums import N_CLASSES, N_GROUPS, class_of
from models.interleaving.pairwise_bounds import largest_preferences
from models.interleaving.pairwise_preference import LARGEST_WEIGHT, agreement, draw
from models.interleaving.team_draft import draft
from models.kernels.compilation import compiled
from rankstream.settings import ExperimentSettings

ALPHA = 0.05
PLANNED = float(ExperimentSettings(rankers={"a": "", "b": ""}).planned_impressions)
"""Impressions that the settings plan where nobody says more."""

TYPICAL = {"team-draft": 0.5, "pairwise-preference": 50.0, "ab": 2.0}
"""Mean squared preferences that verdicts plan for."""

METHODS = ("team-draft", "pairwise-preference", "ab")
LENGTHS = ("1", "5", "20", "50", "Pareto", "one session")


class World(NamedTuple):
    """Two rankings [2, k] of k documents, and users of several tastes.

    `click` [n_tastes, k, k]: P(click at rank on document); each taste is as likely as
    any other. `repeats`: impressions of a session that show one draw. `rare`: share of
    the sessions that have the first taste and this length, 0: none is special.
    """

    rankings: np.ndarray
    click: np.ndarray
    method: str
    lengths: str
    repeats: int = 1
    rare: float = 0.0


def with_rare_sessions(method: str, length: int) -> World:
    """One long session to `length` short ones of one impression; no difference.

    Long sessions like A, short ones B as much, so the impressions of both weigh alike.
    """
    world = with_tastes(method, str(length))
    return world._replace(rare=1.0 / (length + 1))


def with_tastes(method: str, lengths: str, *, repeats: int = 1) -> World:
    """A before B, or B before A; each session's user likes one: no difference."""
    attraction = np.array([[0.8, 0.1, 0.1, 0.1], [0.1, 0.8, 0.1, 0.1]])
    rankings = np.array([[0, 1, 2, 3], [1, 0, 2, 3]])
    return World(rankings, examined(attraction), method, lengths, repeats)


def with_difference(strength: float, method: str, lengths: str) -> World:
    """The first ranker is better by this much on average, for some users by more.

    Users like the document that the second ranker puts last by .3 more or less than
    on average, and for .05 and .1 half of them are better off with the second ranker.
    """
    attraction = np.full((2, 4), 0.3)
    attraction[:, 0] += strength + np.array([0.3, -0.3])
    rankings = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])
    return World(rankings, examined(attraction), method, lengths)


def examined(attraction: np.ndarray) -> np.ndarray:
    """Users who look at rank r with 1 / r."""
    theta = 1.0 / np.arange(1, attraction.shape[1] + 1)
    return np.ascontiguousarray(theta[None, :, None] * attraction[:, None, :])


def session_lengths(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Impressions of each session, for `n` impressions at least."""
    if kind == "Pareto":
        return np.ceil(rng.pareto(1.2, n) + 1e-9).astype(np.int64)
    return np.full(n, n if kind == "one session" else int(kind), np.int64)


class Seen(NamedTuple):
    """After how many impressions there was a winner; 0: never.

    `came`: the exact interval for sessions that came excluded 0; `winner`: that and
    the one for sessions to come did, on the same side; `total`: the sum of all
    preferences.
    """

    came: int
    winner: int
    total: float


def look(world: World, n: int, *, seed: int, to_the_end: bool = False) -> Seen:
    """One experiment of `n` impressions, looked at after every one.

    Parameters
    ----------
    to_the_end
        Look at the exact interval too, every tenth impression, as it is slow to look
        at; else the experiment ends with its winner.
    """
    rng = np.random.default_rng(seed)
    found = np.zeros(3)
    _experiment(
        world.rankings,
        world.click,
        np.array([n, METHODS.index(world.method), world.repeats, to_the_end]),
        world.rare,
        session_lengths(world.lengths, n, rng),
        mixture_weights(TYPICAL[world.method] * PLANNED, ALPHA),
        found,
        rng,
    )
    return Seen(int(found[0]), int(found[1]), float(found[2]))


def false_winners(world: World, n_runs: int, n: int) -> float:
    """Share of experiments without a difference that ever name a winner."""
    return sum(look(world, n, seed=seed).winner > 0 for seed in range(n_runs)) / n_runs


def fixed_sessions(world: World, n_sessions: int, *, seed: int) -> float:
    """Sessions of a sample of fixed size, cluster-robust, of power .8 at level .05."""
    each = int(world.lengths)
    totals = np.array(
        [
            look(world, each, seed=seed + i, to_the_end=True).total
            for i in range(n_sessions)
        ]
    )
    z_975, z_80 = 1.959963984540054, 0.8416212335729143
    return float((z_975 + z_80) ** 2 * totals.var() / totals.mean() ** 2)


def median_sessions(world: World, n_runs: int, n: int) -> float:
    """Sessions to a decision, at the median; infinite where there is none."""
    found = [look(world, n, seed=seed).winner or math.inf for seed in range(n_runs)]
    return float(np.median(found)) / int(world.lengths)


@compiled
def _experiment(  # noqa: PLR0912, PLR0913, PLR0915  one loop, compiled
    rankings: Any,
    click: Any,
    plan: Any,
    rare: float,
    lengths: Any,
    weights: Any,
    found: Any,
    rng: Any,
) -> None:
    k = click.shape[1]
    n_planned, method, repeats, is_exact = plan
    totals, sizes = np.zeros(N_GROUPS), np.zeros(N_GROUPS)
    moments = np.zeros(6)
    squares = np.zeros(N_CLASSES)
    possible = np.zeros(N_CLASSES, np.int64)
    clicks = np.zeros(k, np.bool_)
    shown, teams = rankings[0].copy(), np.zeros(k, np.int64)
    session = left = group = taste = used = 0
    bound = 1.0
    if method == 1:
        bound = largest_preferences(rankings, k, LARGEST_WEIGHT)[0, 1]
    elif method == 2:
        bound = 2.0 * k
    row = class_of(bound)
    for i in range(n_planned):
        if left == 0:
            left = lengths[session]
            session += 1
            group = int(rng.random() * N_GROUPS)
            taste = int(rng.random() * click.shape[0])
            if rare > 0.0:
                taste = int(rng.random() >= rare)
                if taste == 1:
                    left = 1
            used = 0
        left -= 1
        if used == 0:
            if method == 0:
                shown, teams = draft(rankings, k, rng)
            elif method == 1:
                shown = draw(rankings, k, rng)
            else:
                ranker = int(rng.random() * 2)
                shown, teams = rankings[ranker].copy(), np.full(k, ranker)
        used = (used + 1) % repeats
        is_clicked = False
        for place in range(k):
            clicks[place] = rng.random() < click[taste, place, shown[place]]
            is_clicked |= clicks[place]
        value = 0.0
        if method == 1 and is_clicked:
            credit = agreement(rankings, shown, clicks, LARGEST_WEIGHT, False)
            value = credit[0] - credit[1]
        elif method != 1:
            for place in range(k):
                value += clicks[place] * (
                    (teams[place] == 0) - 1.0 * (teams[place] == 1)
                )
            value = 2.0 * value if method == 2 else float(np.sign(value))
        moments[0] += value
        moments[1] += 1.0
        moments[2] += 2.0 * totals[group] * value + value * value
        moments[3] += totals[group] + value * (sizes[group] + 1.0)
        moments[4] += 2.0 * sizes[group] + 1.0
        moments[5] += abs(totals[group] + value) - abs(totals[group])
        totals[group] += value
        sizes[group] += 1.0
        possible[row] += 1
        squares[row] += value * value
        n = i + 1
        if found[1] == 0.0:
            low, high = means_within(moments, largest_score(n / PLANNED, ALPHA))
            if (low > 0.0 or high < 0.0) and abs(moments[0]) > half_width(
                squares, possible, weights, ALPHA
            ):
                found[1] = n
                if not is_exact:
                    break
        if (
            is_exact
            and found[0] == 0.0
            and n % 10 == 0
            and abs(moments[0]) > half_width(squares, possible, weights, ALPHA)
        ):
            found[0] = n
    found[2] = moments[0]
