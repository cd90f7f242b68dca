"""Curves of bias from sums of clicks, beside the same on views, one by one.

Sums have a row for each item and rank, however many clicks are in it; raw sessions have
one for each view. Users trust what stands high, and better items stand higher.

The rival fits the same model by the same steps on what a session log holds, compiled
too. It is an independent check: it must end at the same curve.
"""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.bias.examination import ExaminationCurve, estimate_examination
from models.bias.expectation_maximisation import Ascent, Turn, ascend
from models.bias.logged_views import Views
from models.bias.trust import TrustFit, estimate_trust
from models.kernels.compilation import compiled
from rankstream.lab.benchmarks.harness import Bounds, Figure, Timed, new_figure, timed

N_ITEMS, N_RANKS = 200, 10
FEW, MORE, MANY = 10**5, 10**6, 10**8
"""Clicks: what raw sessions take in seconds, in a minute, and not at all."""

APART = 1.5
"""How much rarer an item is a rank further from its usual place."""

N_REPEATS = 3

SAME = 1e-4
"""By how much alpha of both may differ: they stop at the same tolerance, elsewhere."""


def measure(*, quick: bool = False) -> list[Figure]:
    """Figures of sums by their clicks, and of sums beside raw sessions."""
    few, more = (FEW, MORE) if not quick else (20_000, 40_000)
    sums = {n: planted_sums(n, np.random.default_rng(1)) for n in (few, more, MANY)}
    timed = {n: _timed(partial(_trust, views)) for n, views in sums.items()}
    raw = {n: _raw(sums[n], 1 if quick else N_REPEATS) for n in (few, more)}
    return [
        _turns_figure(sums[MANY], timed[MANY], timed[few], few),
        _position_figure(sums[MANY], sums[few], few),
        _beside_raw(few, timed[few], raw[few]),
        _beside_raw(more, timed[more], raw[more]),
        _beside_scaled(timed[MANY], raw[more], more),
    ]


def planted_sums(n_clicks: int, rng: np.random.Generator) -> Views:
    """About so many clicks, in a row of sums for each item and rank.

    Users click with P = alpha R + beta, see `models.bias.trust`; an item is a query.
    """
    items, rows = np.divmod(np.arange(N_ITEMS * N_RANKS), N_RANKS)
    relevance = rng.permutation(np.linspace(0.05, 0.95, N_ITEMS))[items]
    looked = (1.0 + np.arange(N_RANKS))[rows] ** -0.4
    trusted = 0.3 / (1.0 + rows)
    chance = looked * ((0.95 - trusted) * relevance + trusted)
    usual = (1.0 - relevance) * (N_RANKS - 1)
    often = APART ** -np.abs(rows - usual)
    shown = np.ceil(often * (n_clicks / float(often @ chance))).astype(np.int64)
    clicked = rng.binomial(shown, chance)
    return Views(items, np.zeros_like(items), items, rows + 1, shown, clicked)


def _trust(sums: Views) -> TrustFit:
    return estimate_trust(sums, n_ranks=N_RANKS)


def _position(sums: Views) -> ExaminationCurve:
    return estimate_examination(*sums[2:], n_ranks=N_RANKS)


def _timed(work: Callable[[], Any], n_repeats: int = N_REPEATS) -> Timed[Any]:
    """The median of some repeats; kernels are compiled before."""
    work()
    runs = [timed(work) for _ in range(n_repeats)]
    return Timed(median(run.seconds for run in runs), runs[-1].result)


def _raw(sums: Views, n_repeats: int) -> Timed[Any]:
    """Views are made before the clock runs."""
    views = raw_views(sums, np.random.default_rng(2))
    return _timed(lambda: fit_raw(views, N_ITEMS, N_RANKS), n_repeats)


def _turns_figure(sums: Views, many: Timed[Any], few: Timed[Any], n_few: int) -> Figure:
    turns = [each.seconds / each.result.n_turns for each in (many, few)]
    return _figure(
        f"a turn of EM, trust bias, {_rows(sums)}, {MANY:,} clicks over {n_few:,}",
        turns[0] * 1e6,
        turns[1] * 1e6,
        "us",
        (0.8, 0.5),
    )


def _position_figure(many: Views, few: Views, n_few: int) -> Figure:
    ours, theirs = _timed(partial(_position, many)), _timed(partial(_position, few))
    return _figure(
        f"the largest likelihood, position bias, {_rows(many)}, {MANY:,} clicks over "
        f"{n_few:,}",
        ours.seconds,
        theirs.seconds,
        "s",
        (0.8, 0.5),
    )


def _beside_raw(n_clicks: int, ours: Timed[Any], raw: Timed[Any]) -> Figure:
    alpha, way = raw.result
    agrees = float(np.abs(alpha - ours.result.curve.alpha).max()) < SAME
    found = _figure(
        f"EM to the end, {n_clicks:,} clicks, {ours.result.n_turns} turns, over "
        f"{way.n_turns} on raw sessions",
        ours.seconds,
        raw.seconds,
        "s",
        (None, 10.0),
    )
    return found if agrees else found | {"ratio": None}


def _beside_scaled(ours: Timed[Any], raw: Timed[Any], n_raw: int) -> Figure:
    """What raw sessions would take: as many turns, each for so many more views."""
    a_turn = raw.seconds / raw.result[1].n_turns * (MANY / n_raw)
    n_turns = ours.result.n_turns
    return _figure(
        f"EM to the end, {MANY:,} clicks, {n_turns} turns, over as many on raw "
        f"sessions by scaling from {n_raw:,}",
        ours.seconds,
        a_turn * n_turns,
        "s",
        (None, 1_000.0),
    )


def _rows(sums: Views) -> str:
    return f"{int((sums.shown > 0).sum()):,} non-zero rows"


def _figure(name: str, value: float, rival: float, unit: str, bounds: Bounds) -> Figure:
    return new_figure(name, value, unit, rival, rival / value, bounds)


class RawViews(NamedTuple):
    """One row each time that an item was shown.

    Parameters
    ----------
    items, rows : [n_views]
        Numbers of items, and ranks, from 0.
    clicked : [n_views]
    """

    items: Integers
    rows: Integers
    clicked: Flags


def raw_views(views: Views, rng: np.random.Generator) -> RawViews:
    """Views one by one, in any order, that add up to sums of items from 0."""
    times = np.stack([views.clicked, views.shown - views.clicked], axis=1).ravel()
    order = rng.permutation(np.repeat(np.arange(len(times)), times))
    of_sums = order // 2
    return RawViews(views.items[of_sums], views.ranks[of_sums] - 1, order % 2 == 0)


def fit_raw(views: RawViews, n_items: int, n_ranks: int) -> tuple[Floats, Ascent]:
    """Alpha in units of the first rank, [n_ranks], and the way there."""
    shown_of = np.bincount(views.items, minlength=n_items)
    shown_at = np.bincount(views.rows, minlength=n_ranks)
    clicks_of = np.bincount(views.items, views.clicked, n_items)
    clicks_at = np.bincount(views.rows, views.clicked, n_ranks)

    def turn(point: Floats) -> Turn:
        sums = np.zeros((2, n_items + n_ranks))
        total = raw_turn(*views, point, sums)
        if not np.isfinite(total):
            return Turn(point, -np.inf)
        relevant, clicked = sums
        at = relevant[n_items:], clicked[n_items:]
        moved = (
            relevant[:n_items] / shown_of,
            at[1] / at[0],
            (clicks_at - at[1]) / (shown_at - at[0]),
        )
        return Turn(np.clip(np.concatenate(moved), 0.0, 1.0), total)

    def alpha_of(point: Floats) -> Floats:
        if_relevant, if_not = np.split(point[n_items:], 2)
        alpha = if_relevant - if_not
        return np.asarray(alpha / alpha[0])

    rates = clicks_at / shown_at
    usual = np.bincount(views.items, rates[views.rows], n_items)
    relevance = (clicks_of + 1.0) / (clicks_of + usual + 2.0)
    found = ascend(
        np.concatenate([relevance, np.minimum(1.5 * rates, 0.9), 0.5 * rates]),
        turn,
        lambda point: np.clip(point, 0.0, 1.0),
        alpha_of,
    )
    return alpha_of(found.point), found


@compiled
def raw_turn(
    items: Integers, rows: Integers, clicked: Flags, point: Floats, sums: Floats
) -> float:
    """Log likelihood of a point; adds up who was relevant, and clicked for it.

    Parameters
    ----------
    items, rows, clicked : [n_views]
    point : [n_items + 2 * n_ranks]
        Relevance of items, and chances of a click by rank on what is relevant and on
        what is not.
    sums : [2, n_items + n_ranks]
        Views of something relevant, and clicks among them; by item, and by rank.
    """
    n_ranks = len(point) - sums.shape[1]
    n_items = sums.shape[1] - n_ranks
    total = 0.0
    for i in range(len(items)):
        item, row = items[i], n_items + rows[i]
        relevance = point[item]
        if_relevant = relevance * point[row]
        p = if_relevant + (1.0 - relevance) * point[row + n_ranks]
        if clicked[i]:
            if p <= 0.0:
                return -np.inf
            total += np.log(p)
            share = if_relevant / p
            sums[1, row] += share
        else:
            if p >= 1.0:
                return -np.inf
            total += np.log1p(-p)
            share = (relevance - if_relevant) / (1.0 - p)
        sums[0, item] += share
        sums[0, row] += share
    return total
