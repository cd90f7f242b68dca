"""Trust bias by rank, from counts of shown and clicked (item, rank) cells.

    P(click | item, rank) = R(item) if_relevant[rank] + (1 - R(item)) if_not[rank]

all in [0, 1]; so alpha = if_relevant - if_not, and beta = if_not. Clicks are the same
for every R' = s R + t with the alpha and beta that belong to it. So what they identify
is what no s and t change:

    alpha[r] / alpha[1]        beta[r] - beta[1] alpha[r] / alpha[1]

The rest takes an `Anchor`, which says what two relevances are clicked at rank 1. One
known relevance is not enough: where R of what is surely relevant is held at 1, the
other end is still free, and theta[r] / theta[1] is known as soon as theta[1] is.

References
----------
Agarwal, Wang, Li, Bendersky & Najork (WWW 2019), section 4, for the model and for
expectation maximisation, with which a search begins; Vardasbi, Oosterhuis & de Rijke
(CIKM 2020), section 3, for alpha and beta.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from models.arrays import Floats, Integers
from models.bias.examination import FEW_VIEWS, NOT_CONVERGED
from models.bias.expectation_maximisation import Ascent, Turn, ascend
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Cells, Views, cells_of
from models.bias.trust_identification import (
    MOST_ERROR,
    errors_of,
    identified_cells,
    is_held,
    reasons_without,
)
from models.bias.trust_likelihood import MOST_STEPS, Peak, climb, sums_of
from models.kernels.compilation import compiled

TOO_ALIKE = "items that lead from there to rank 1 are too much alike"
REVERSED = "what is more relevant is not clicked more there"
AT_BOUND = "one of its click probabilities is 0 or 1"

LEAST_CLICKS = 100
"""At a rank and at the first one, on items that lead from one to the other. With fewer
ratios are off by half, and intervals are not what they say."""

_FEW = f"fewer than {LEAST_CLICKS} clicks at {{}}, on items that stood at both"
FEW_CLICKS = _FEW.format("a rank beside rank 1")
FEW_AT_FIRST = _FEW.format("rank 1 beside any other")

ENOUGH_VIEWS = 40
"""Of an item, for its relevance to be known well enough for an interval."""

MOST_FEW = 0.1
"""Share of clicks that may be on items with fewer views."""

LEAST_SLOPE = 1e-7
"""Of the log likelihood of one interaction, for an end to bind it."""

FIRST_TURNS = 20
"""Of expectation maximisation, which gets near from everywhere, and then no further."""

MOST_TURNS = FIRST_TURNS + MOST_STEPS


@dataclass(frozen=True)
class TrustFit:
    """Trust bias as clicks tell it.

    Parameters
    ----------
    curve
        In units of the first rank.
    names, relevance : [n_items]
        Items that took part, and their probabilities of a click at rank 1 as the
        curve extrapolates them.
    log_likelihoods : [n_steps]
        Of the steps of the ascent.
    n_turns
    """

    curve: FittedCurve
    names: Integers
    relevance: Floats
    log_likelihoods: Floats
    n_turns: int


def estimate_trust(
    views: Views,
    *,
    n_ranks: int,
    confidence: float = 0.95,
    most_turns: int = MOST_TURNS,
) -> TrustFit:
    """Alpha and beta of ranks in units of the first, where the likelihood is largest.

    A rank takes part where items of different relevance were seen both there and at
    ranks that lead to the first: two items at least, one for alpha and one for beta.
    They must have `LEAST_CLICKS` clicks there, and at rank 1.
    Where those items are so much alike that the ratio could as well be another, the
    rank is refused too.

    Intervals are those of the observed information, with every relevance unknown, and
    take clicks as independent given item and rank. A click probability that would leave
    [0, 1] if it could is taken as known there, and its rank has none. Nor has any where
    more than `MOST_FEW` of the clicks are on items with fewer than `ENOUGH_VIEWS`
    views: what is not known of each relevance makes ratios too small.

    Parameters
    ----------
    views
        Items may be classes of documents.
    confidence
        Of the intervals, in (0, 1).
    most_turns
        Of expectation maximisation, then steps of Newton's method.

    Raises
    ------
    ValueError
        Where counts are impossible, a rank is out of range or the confidence is.
    """
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")
    every = cells_of(views, n_ranks)
    alpha, beta, alpha_half, beta_half = np.full((4, n_ranks), np.nan)
    reasons = reasons_without(every, n_ranks)
    cells = told_cells(every, reasons)
    if not len(cells.rows):
        curve = _curve(alpha, beta, alpha_half, beta_half, reasons)
        return TrustFit(curve, cells.names, np.zeros(0), np.zeros(0), 0)
    best = _maximum(cells, most_turns)
    why = [NOT_CONVERGED] * len(best.rows)
    if best.is_converged:
        why = _reasons(cells, best)
        z = float(ndtri(0.5 + 0.5 * confidence))
        alpha[best.rows], beta[best.rows] = best.alpha, best.beta
        alpha_half[best.rows], beta_half[best.rows] = z * best.errors
    for row, reason in zip(best.rows.tolist(), why, strict=True):
        reasons[row] = reason
        if reason:
            alpha_half[row] = beta_half[row] = np.nan
        if reason in (REVERSED, TOO_ALIKE):
            alpha[row] = beta[row] = np.nan
    curve = replace(
        _curve(alpha, beta, alpha_half, beta_half, reasons),
        log_likelihood=float(best.likelihoods[-1]),
        n_turns=best.n_turns,
    )
    return TrustFit(curve, cells.names, best.relevance, best.likelihoods, best.n_turns)


class _Maximum(NamedTuple):
    """Where the likelihood of some cells is largest, and how sharply.

    `alpha`, `beta` and `errors` are of `rows`; `relevance` is in units of the first
    rank. `is_bound` are ranks where a click probability would leave [0, 1].
    """

    likelihoods: Floats
    n_turns: int
    is_converged: bool
    rows: Integers
    alpha: Floats
    beta: Floats
    relevance: Floats
    errors: Floats
    is_bound: npt.NDArray[np.bool_]

    @property
    def is_vague(self) -> npt.NDArray[np.bool_]:
        """Ranks whose ratio could as well be another."""
        return np.asarray(~(self.errors[0] <= MOST_ERROR))


def told_cells(every: Cells, reasons: list[str]) -> Cells:
    """The cells of ranks that are told; says why others are not."""
    while True:
        cells = every.at(identified_cells(every, len(reasons)))
        clicks = np.bincount(cells.rows, cells.clicked, len(reasons))
        is_rare = np.bincount(cells.rows, minlength=len(reasons)) > 0
        is_rare &= clicks < LEAST_CLICKS
        if not is_rare.any():
            return cells
        for row in np.flatnonzero(is_rare).tolist():
            reasons[row] = FEW_CLICKS
        if is_rare[0]:
            for row in np.unique(cells.rows[cells.rows > 0]).tolist():
                reasons[row] = reasons[row] if is_rare[row] else FEW_AT_FIRST
        every = every.at(~is_rare[every.rows])


def _maximum(cells: Cells, most_turns: int) -> _Maximum:
    """Where the likelihood is largest: some turns to get near, then Newton's method."""
    rows, sums = sums_of(cells)
    turns = _near(cells, sums.rows, min(FIRST_TURNS, most_turns))
    relevance, ends = np.split(turns.point, [len(cells.names)])
    most_steps = min(MOST_STEPS, most_turns - turns.n_turns)
    found = climb(sums, relevance, ends, ratios_of, most_steps=most_steps)
    if_relevant, if_not = np.split(found.ends, 2)
    alpha, beta = _ratios(if_relevant, if_not)
    q = (if_relevant[0] - if_not[0]) * found.relevance + if_not[0]
    errors = errors_of(found.ends, found.slopes, found.curvature)
    likelihoods = np.concatenate([turns.log_likelihoods, found.log_likelihoods])
    n_turns = turns.n_turns + len(found.log_likelihoods) - 1
    is_bound = _bound(found, _added_up(sums.rows, cells.shown, len(rows)))
    return _Maximum(
        likelihoods, n_turns, found.is_converged, rows, alpha, beta, q, errors, is_bound
    )


def ratios_of(ends: Floats) -> Floats:
    """Alpha and beta in units of the first rank, of u and v.

    Parameters
    ----------
    ends : [2 n_ranks]
        Click probabilities of what is relevant at each rank, u, then of what is not, v.

    Returns
    -------
    [2 n_ranks]
    """
    return np.concatenate(_ratios(*np.split(ends, 2)))


def near_maximum(cells: Cells, places: Integers) -> Floats:
    """Relevance of items, u and v where a search begins.

    Parameters
    ----------
    places : [n_cells]
        Numbers of the ranks of cells, from 0 without a gap.

    Returns
    -------
    [n_items + 2 n_ranks]
    """
    return _near(cells, places, FIRST_TURNS).point


def _bound(found: Peak, shown_at: Floats) -> npt.NDArray[np.bool_]:
    """Ranks at which a click probability would be below 0, or above 1, if it could.

    One that lies at its end by chance of units has no slope there.
    """
    is_bound = is_held(found.ends, found.slopes)
    is_bound &= np.abs(found.slopes) > LEAST_SLOPE * np.tile(shown_at, 2)
    return np.asarray(is_bound.reshape(2, -1).any(axis=0))


def _near(cells: Cells, places: Integers, most_turns: int) -> Ascent:
    """Near the maximum, by expectation maximisation."""
    n_items, k = len(cells.names), int(places.max()) + 1
    missed = cells.shown - cells.clicked
    shown_of = _added_up(cells.items, cells.shown, n_items)
    shown_at = _added_up(places, cells.shown, k)
    clicked_at = _added_up(places, cells.clicked, k)

    def turn(point: Floats) -> Turn:
        moved = np.zeros(len(point))
        total = _turn(cells.items, places, cells.clicked, missed, point, moved)
        if not np.isfinite(total):
            return Turn(point, -np.inf)
        _, sure, noise = _parts(point, n_items)
        of_items, all_relevant, of_relevant = _parts(moved, n_items)
        return Turn(
            np.concatenate([
                of_items / shown_of,
                _divided(of_relevant, all_relevant, sure),
                _divided(clicked_at - of_relevant, shown_at - all_relevant, noise),
            ]),
            total,
        )  # fmt: skip

    return ascend(
        _start(cells, shown_of, clicked_at / shown_at, places),
        turn,
        lambda x: np.clip(x, 0.0, 1.0),
        lambda point: point[n_items:],
        most_turns=most_turns,
    )


@compiled
def _turn(
    items: Integers,
    places: Integers,
    clicked: Floats,
    missed: Floats,
    point: Floats,
    moved: Floats,
) -> float:
    """Log likelihood; adds up how often items were relevant, by item and by rank.

    `moved` is filled with those of items, those of ranks, and clicks among the latter.
    """
    n_ranks = places.max() + 1
    n_items = len(point) - 2 * n_ranks
    total = 0.0
    for i in range(len(items)):
        item, row = items[i], n_items + places[i]
        relevant = point[item] * point[row]
        p = relevant + (1.0 - point[item]) * point[row + n_ranks]
        if (clicked[i] > 0.0 and p <= 0.0) or (missed[i] > 0.0 and p >= 1.0):
            return -np.inf
        if clicked[i] > 0.0:
            total += clicked[i] * np.log(p)
            share = clicked[i] * relevant / p
            moved[item] += share
            moved[row] += share
            moved[row + n_ranks] += share
        if missed[i] > 0.0:
            total += missed[i] * np.log1p(-p)
            share = missed[i] * (point[item] - relevant) / (1.0 - p)
            moved[item] += share
            moved[row] += share
    return total


def _start(cells: Cells, shown_of: Floats, rates: Floats, places: Integers) -> Floats:
    """Relevance by how much more was clicked than is usual at the same ranks."""
    n_items = len(shown_of)
    clicked = np.bincount(cells.items, cells.clicked, n_items)
    usual = np.bincount(cells.items, cells.shown * rates[places], n_items)
    relevance = (clicked + 1.0) / (clicked + usual + 2.0)
    more, less = np.minimum(1.5 * rates, 0.5 + 0.5 * rates), 0.5 * rates
    return np.concatenate([relevance, more, less])


def _parts(point: Floats, n_items: int) -> tuple[Floats, Floats, Floats]:
    sure, noise = np.split(point[n_items:], 2)
    return point[:n_items], sure, noise


def _ratios(if_relevant: Floats, if_not: Floats) -> tuple[Floats, Floats]:
    difference = if_relevant - if_not
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = np.nan_to_num(difference / difference[0])
    return alpha, np.nan_to_num(if_not - if_not[0] * alpha)


def _added_up(places: Integers, counts: Floats, n: int) -> Floats:
    return np.bincount(places, counts, n).astype(np.float64)


def _divided(above: Floats, below: Floats, otherwise: Floats) -> Floats:
    quotient = otherwise.copy()
    np.divide(above, below, out=quotient, where=below > 0.0)
    return np.clip(quotient, 0.0, 1.0)


def _reasons(cells: Cells, best: _Maximum) -> list[str]:
    """Why ranks that took part have no ratio or no interval."""
    views = np.bincount(cells.items, cells.shown)
    few = cells.clicked[views[cells.items] < ENOUGH_VIEWS].sum()
    is_few = few > MOST_FEW * cells.clicked.sum()
    found = [""] * len(best.rows)
    for row in range(1, len(found)):
        if best.is_vague[row]:
            found[row] = TOO_ALIKE
        elif best.alpha[row] <= 0.0:
            found[row] = REVERSED
        elif is_few:
            found[row] = FEW_VIEWS
        elif best.is_bound[row]:
            found[row] = AT_BOUND
    return found


def _curve(
    alpha: Floats,
    beta: Floats,
    alpha_half: Floats,
    beta_half: Floats,
    reasons: list[str],
) -> FittedCurve:
    return FittedCurve(
        alpha, beta, alpha - alpha_half, alpha + alpha_half, beta - beta_half,
        beta + beta_half, tuple(reasons),
    )  # fmt: skip
