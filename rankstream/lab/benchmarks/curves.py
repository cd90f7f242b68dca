"""Curves of bias from sums of clicks, beside the same on views, one by one.

Sums have a row for each item and rank, however many clicks are in it; raw sessions have
one for each view. Users trust what stands high, and better items stand higher.
"""

import time
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.examination import ExaminationCurve, estimate_examination
from models.bias.logged_views import Views
from models.bias.trust import TrustFit, estimate_trust
from rankstream.lab.benchmarks.curves_rival import fit_raw, raw_views

Floats = npt.NDArray[np.float64]

N_ITEMS, N_RANKS = 200, 10
FEW, MORE, MANY = 10**5, 10**6, 10**8
"""Clicks: what raw sessions take in seconds, in a minute, and not at all."""

APART = 1.5
"""How much rarer an item is a rank further from its usual place."""

N_REPEATS = 3

SAME = 1e-4
"""By how much alpha of both may differ: they stop at the same tolerance, elsewhere."""


class Timed(NamedTuple):
    """CPU seconds of something, and what it gave."""

    seconds: float
    result: Any


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
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


def _timed(work: Callable[[], Any], n_repeats: int = N_REPEATS) -> Timed:
    """The median of some repeats; kernels are compiled before."""
    result = work()
    seconds = []
    for _ in range(n_repeats):
        started_s = time.process_time()
        result = work()
        seconds.append(time.process_time() - started_s)
    return Timed(median(seconds), result)


def _raw(sums: Views, n_repeats: int) -> Timed:
    """Views are made before the clock runs."""
    views = raw_views(sums, np.random.default_rng(2))
    return _timed(lambda: fit_raw(views, N_ITEMS, N_RANKS), n_repeats)


def _turns_figure(sums: Views, many: Timed, few: Timed, n_few: int) -> dict[str, Any]:
    turns = [each.seconds / each.result.n_turns for each in (many, few)]
    return _figure(
        f"a turn of EM, trust bias, {_rows(sums)}, {MANY:,} clicks over {n_few:,}",
        turns[0] * 1e6,
        turns[1] * 1e6,
        "us",
        goal=0.8,
        floor=0.5,
    )


def _position_figure(many: Views, few: Views, n_few: int) -> dict[str, Any]:
    ours, theirs = _timed(partial(_position, many)), _timed(partial(_position, few))
    return _figure(
        f"the largest likelihood, position bias, {_rows(many)}, {MANY:,} clicks over "
        f"{n_few:,}",
        ours.seconds,
        theirs.seconds,
        "s",
        goal=0.8,
        floor=0.5,
    )


def _beside_raw(n_clicks: int, ours: Timed, raw: Timed) -> dict[str, Any]:
    alpha, way = raw.result
    agrees = float(np.abs(alpha - ours.result.curve.alpha).max()) < SAME
    found = _figure(
        f"EM to the end, {n_clicks:,} clicks, {ours.result.n_turns} turns, over "
        f"{way.n_turns} on raw sessions",
        ours.seconds,
        raw.seconds,
        "s",
        goal=None,
        floor=10.0,
    )
    return found if agrees else found | {"ratio": None}


def _beside_scaled(ours: Timed, raw: Timed, n_raw: int) -> dict[str, Any]:
    """What raw sessions would take: as many turns, each for so many more views."""
    a_turn = raw.seconds / raw.result[1].n_turns * (MANY / n_raw)
    n_turns = ours.result.n_turns
    return _figure(
        f"EM to the end, {MANY:,} clicks, {n_turns} turns, over as many on raw "
        f"sessions by scaling from {n_raw:,}",
        ours.seconds,
        a_turn * n_turns,
        "s",
        goal=None,
        floor=1_000.0,
    )


def _rows(sums: Views) -> str:
    return f"{int((sums.shown > 0).sum()):,} non-zero rows"


def _figure(
    name: str,
    value: float,
    rival: float,
    unit: str,
    *,
    goal: float | None,
    floor: float,
) -> dict[str, Any]:
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "rival": rival,
        "ratio": rival / value,
        "goal": goal,
        "floor": floor,
    }
