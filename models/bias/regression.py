"""Position bias where each item stands at one rank: relevance from what items share.

    P(click | item, rank) = examination[rank] * relevance(features of the item)

Where logging is deterministic no item is ever compared with itself, and clicks alone
cannot tell a bad rank from bad items. If relevance depends on features only, items of
the same features at different ranks are compared. What features do not tell, and
ranks do, is taken for bias.

It is fitted by expectation maximisation until the ratios stand still: whether those
who did not click had looked, and whether they would have clicked, is filled in; then
examination is a mean, and relevance a regression.

References
----------
Wang, Golbandi, Bendersky, Metzler & Najork (WSDM 2018), section 4.2, regression-based
expectation maximisation.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from models.bias.examination import (
    AT_BOUND,
    MOST_VARIANCE,
    NO_CLICKS,
    NO_MISSES,
    NOT_CONNECTED,
    NOT_CONVERGED,
    NOT_SHOWN,
    TOO_LITTLE,
)
from models.bias.expectation_maximisation import MOST_TURNS, Turn, ascend
from models.bias.fitted_curve import FittedCurve
from models.bias.logged_views import Cells, Floats, Integers, Views, cells_of
from models.bias.relevance_models import (
    ClassRelevance,
    LinearRelevance,
    LogisticRelevance,
    RelevanceModel,
)
from models.kernels.compilation import compiled

ZERO = 1e-9
"""Share of an eigenvalue, or of a direction, that is rounding."""

CLOSE = 1e-7
"""To 1, for an examination to be at it."""


class RegressionFit(NamedTuple):
    """Position bias, and the relevance that goes with it.

    Parameters
    ----------
    curve
        In units of the first rank.
    names, relevance : [n_items]
        Items and their probabilities of a click at rank 1; NaN where that rank is not
        known.
    log_likelihoods : [n_steps]
        Of the steps of the ascent.
    n_turns
    """

    curve: FittedCurve
    names: Integers
    relevance: Floats
    log_likelihoods: Floats
    n_turns: int


def estimate_by_class(
    views: Views,
    classes: npt.ArrayLike,
    *,
    n_ranks: int,
    confidence: float = 0.95,
    most_turns: int = MOST_TURNS,
) -> RegressionFit:
    """Examination where items of a class are equally relevant.

    Each item a class of its own gives the maximum of `estimate_examination`.

    Parameters
    ----------
    views
        Items are numbers from 0, of `classes`.
    classes : [n_items]
        A number for each item.
    confidence
        Of the intervals, in (0, 1).
    most_turns
        Of expectation maximisation.
    """
    numbers = np.asarray(classes, np.int64)
    return _estimate(
        views, len(numbers), lambda items: ClassRelevance(numbers[items]),
        n_ranks, confidence, most_turns,
    )  # fmt: skip


def estimate_by_features(
    views: Views,
    features: npt.ArrayLike,
    *,
    n_ranks: int,
    is_linear: bool = False,
    confidence: float = 0.95,
    most_turns: int = MOST_TURNS,
) -> RegressionFit:
    """Examination where relevance is a function of features.

        relevance = 1 / (1 + exp(-(w x + c)))     or, linear,     relevance = w x + c

    Intervals are those of the information, with every weight unknown. They hold where
    relevance is such a function; where it may not be, take those of a bootstrap.

    Parameters
    ----------
    views
        Items are numbers from 0, of rows of `features`.
    features : [n_items, n_features]
        Any scale; a constant is added.
    is_linear
        Whether relevance is linear. Otherwise it is logistic.
    confidence
        Of the intervals, in (0, 1).
    most_turns
        Of expectation maximisation.

    Raises
    ------
    ValueError
        Where an item has no features, features are no numbers, counts are impossible
        or a rank is out of range.
    """
    table = np.asarray(features, np.float64)
    if table.ndim != 2 or not np.isfinite(table).all():
        raise ValueError(
            "features must be finite numbers of shape [n_items, n_features]; got shape "
            f"{table.shape}, {int((~np.isfinite(table)).sum())} of them not finite"
        )
    kind = LinearRelevance if is_linear else LogisticRelevance
    return _estimate(
        views, len(table), lambda items: kind(table[items]), n_ranks, confidence,
        most_turns,
    )  # fmt: skip


def _estimate(
    views: Views,
    n_items: int,
    model_of: Callable[[Integers], RelevanceModel],
    n_ranks: int,
    confidence: float,
    most_turns: int,
) -> RegressionFit:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")
    if len(views.items) and not 0 <= views.items.min() <= views.items.max() < n_items:
        raise ValueError(
            f"items must be numbers of the {n_items} rows that describe them; got "
            f"{views.items.min()}..{views.items.max()}"
        )
    every = cells_of(views, n_ranks)
    shown = np.bincount(every.rows, every.shown, n_ranks)
    clicked = np.bincount(every.rows, every.clicked, n_ranks)
    without = np.where(clicked > 0, NOT_CONNECTED, NO_CLICKS)
    reasons: list[str] = np.where(shown > 0, without, NOT_SHOWN).tolist()
    ratios, half = np.full((2, n_ranks), np.nan)
    cells = every.at((clicked > 0)[every.rows])
    rows, numbers = np.unique(cells.rows, return_inverse=True)
    if not len(rows) or rows[0] != 0:
        none = np.full(len(cells.names), np.nan)
        return RegressionFit(
            _curve(ratios, half, reasons), cells.names, none, np.zeros(0), 0
        )
    cells = cells._replace(rows=numbers.astype(np.int64))
    model = model_of(cells.names)
    fit = _Fit(cells, model)
    start = np.concatenate([_start(cells), model.start()])
    found = ascend(
        start, fit.turn, fit.bounded, lambda x: x[: len(rows)] / x[0],
        most_turns=most_turns,
    )  # fmt: skip
    examination, relevance = fit.parts(found.point)
    why = [NOT_CONVERGED] * len(rows)
    if found.is_converged:
        variances, why = _variances(cells, model, examination, relevance, found.point)
        known = np.array([reason != NOT_CONNECTED for reason in why])
        ratios[rows[known]] = (examination / examination[0])[known]
        z = float(ndtri(0.5 + 0.5 * confidence))
        half[rows] = z * np.sqrt(variances)
    for row, reason in zip(rows.tolist(), why, strict=True):
        reasons[row] = reason
    curve = _curve(ratios, half, reasons)
    at_first = examination[0] * relevance
    return RegressionFit(
        curve, cells.names, at_first, found.log_likelihoods, found.n_turns
    )


class _Fit:
    """Turns over one table of cells: examination first, then the model's parameters."""

    def __init__(self, cells: Cells, model: RelevanceModel) -> None:
        self._cells, self._model = cells, model
        self._missed = cells.shown - cells.clicked
        self._n_ranks = int(cells.rows.max()) + 1
        self._shown_of = np.bincount(cells.items, cells.shown).astype(np.float64)
        self._shown_at = np.bincount(cells.rows, cells.shown).astype(np.float64)

    def parts(self, point: Floats) -> tuple[Floats, Floats]:
        """Examination of ranks and relevance of items."""
        examination, own = point[: self._n_ranks], point[self._n_ranks :]
        return examination, self._model.relevance(own)

    def bounded(self, point: Floats) -> Floats:
        examination = np.clip(point[: self._n_ranks], 0.0, 1.0)
        own = self._model.bounded(point[self._n_ranks :])
        return np.concatenate([examination, own])

    def turn(self, point: Floats) -> Turn:
        examination, relevance = self.parts(point)
        if not ((relevance >= 0.0) & (relevance <= 1.0)).all():
            return Turn(point, -np.inf)
        looked, liked = np.zeros(len(examination)), np.zeros(len(relevance))
        cells = self._cells
        total = _expect(
            cells.items, cells.rows, cells.clicked, self._missed, examination,
            relevance, looked, liked,
        )  # fmt: skip
        if not np.isfinite(total):
            return Turn(point, -np.inf)
        own = self._model.fitted(point[self._n_ranks :], liked, self._shown_of)
        moved = np.concatenate([np.minimum(looked / self._shown_at, 1.0), own])
        return Turn(moved, total)


@compiled
def _expect(  # noqa: PLR0913  a kernel takes plain arrays
    items: Integers,
    rows: Integers,
    clicked: Floats,
    missed: Floats,
    examination: Floats,
    relevance: Floats,
    looked: Floats,
    liked: Floats,
) -> float:
    """Log likelihood; adds up looks by rank, and relevance by item."""
    total = 0.0
    for i in range(len(items)):
        theta, gamma = examination[rows[i]], relevance[items[i]]
        p = theta * gamma
        if (clicked[i] > 0.0 and p <= 0.0) or (missed[i] > 0.0 and p >= 1.0):
            return -np.inf
        looked[rows[i]] += clicked[i]
        liked[items[i]] += clicked[i]
        if clicked[i] > 0.0:
            total += clicked[i] * np.log(p)
        if missed[i] > 0.0:
            total += missed[i] * np.log1p(-p)
            looked[rows[i]] += missed[i] * (theta - p) / (1.0 - p)
            liked[items[i]] += missed[i] * (gamma - p) / (1.0 - p)
    return total


def _start(cells: Cells) -> Floats:
    """Examination as clicks tell it if all were equally relevant."""
    rates = np.bincount(cells.rows, cells.clicked) / np.bincount(
        cells.rows, cells.shown
    )
    return np.asarray(0.9 * rates / rates.max(), np.float64)


def _variances(
    cells: Cells,
    model: RelevanceModel,
    examination: Floats,
    relevance: Floats,
    point: Floats,
) -> tuple[Floats, list[str]]:
    """Variances of log ratios to the first rank, and why there is none."""
    k = len(examination)
    p = examination[cells.rows] * relevance[cells.items]
    is_used = (p > ZERO) & (p < 1.0 - ZERO)
    weights = np.where(is_used, cells.shown * p / np.maximum(1.0 - p, ZERO), 0.0)
    slopes = model.slopes_of_logs(point[k:])
    own, owner = slopes.shape[1], cells.items
    information = np.zeros((k + own, k + own))
    np.add.at(information, (cells.rows, cells.rows), weights)
    across = np.zeros((k, own))
    np.add.at(across, cells.rows, weights[:, None] * slopes[owner])
    information[:k, k:], information[k:, :k] = across, across.T
    of_item = np.bincount(owner, weights, len(slopes))
    information[k:, k:] = slopes.T @ (of_item[:, None] * slopes)
    at_bound = examination >= 1.0 - CLOSE
    held = int(examination.argmax()) if at_bound.any() else -1
    contrasts = np.eye(k + own)[:k]
    contrasts[:, 0] -= 1.0
    free = np.arange(k + own) != held
    # The largest examination is 1, which fixes the scale and no ratio.
    inner = information[np.ix_(free, free)]
    scale = np.sqrt(np.where(inner.diagonal() > 0.0, inner.diagonal(), 1.0))
    values, vectors = np.linalg.eigh(inner / np.outer(scale, scale))
    turned = (contrasts[:, free] / scale) @ vectors
    is_known = values > ZERO
    variances = (turned[:, is_known] ** 2 / values[is_known]).sum(axis=1)
    lost = (turned[:, ~is_known] ** 2).sum(axis=1)
    lost /= np.maximum((turned**2).sum(axis=1), np.finfo(np.float64).tiny)
    reasons = [""] * k
    varies = np.bincount(cells.rows, weights, k) > 0.0
    for row in range(1, k):
        if not varies[row]:
            reasons[row] = NO_MISSES
        elif lost[row] > CLOSE:
            reasons[row] = NOT_CONNECTED
        elif at_bound[row] and row != held:
            reasons[row] = AT_BOUND
        elif variances[row] > MOST_VARIANCE:
            reasons[row] = TOO_LITTLE
    is_told = np.array([not reason for reason in reasons])
    return np.where(is_told, variances, np.nan), reasons


def _curve(ratios: Floats, half: Floats, reasons: list[str]) -> FittedCurve:
    zero = np.where(np.isfinite(ratios), 0.0, np.nan)
    no_interval = np.where(np.isfinite(half), 0.0, np.nan)
    return FittedCurve(
        ratios, zero, ratios * np.exp(-half), ratios * np.exp(half), no_interval,
        no_interval, tuple(reasons),
    )  # fmt: skip
