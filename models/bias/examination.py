"""Examination by rank, from counts of shown and clicked (document, rank) pairs.

Shapes: `n_pairs` rows of (document, rank); ranks are 1-based.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import ndtri

from models.arrays import Flags, Floats, Integers
from models.bias.position_based_likelihood import Fit, Pairs, fit_position_based

NOT_SHOWN = "not shown"
NO_CLICKS = "no clicks"
NOT_CONNECTED = "not connected with rank 1"
AT_BOUND = "as large as it can be"
NO_MISSES = "clicked whenever shown"
NOT_CONVERGED = "the likelihood has no clear maximum"
FEW_VIEWS = "documents were shown too seldom"

TOO_LITTLE = "connected with rank 1 by hardly a click"

MOST_VARIANCE = 25.0
"""Of the log of a ratio: an interval of 95 % would span eight orders of magnitude."""

ENOUGH_VIEWS = 20
"""Of a document, for its relevance to be known well enough for an interval."""

MOST_FEW = 0.1
"""Share of clicks that may be on documents with fewer views."""


@dataclass(frozen=True)
class ExaminationCurve:
    """Examination of ranks over that of the first one.

    Parameters
    ----------
    ratios : [n_ranks]
        The first is 1; NaN where the data cannot tell.
    low, high : [n_ranks]
        Ends of each rank's interval; NaN where there is none.
    reasons : [n_ranks]
        Why there is no ratio or no interval; empty where there are both.
    """

    ratios: Floats
    low: Floats
    high: Floats
    reasons: tuple[str, ...]

    @property
    def n_known(self) -> int:
        """Ranks with a ratio."""
        return int(np.isfinite(self.ratios).sum())

    def without_intervals(self, reason: str) -> "ExaminationCurve":
        """The same ratios, none of them with an interval."""
        nothing = np.full(len(self.ratios), np.nan)
        reasons = np.where(np.isfinite(self.ratios), reason, self.reasons)
        return replace(self, low=nothing, high=nothing, reasons=tuple(reasons.tolist()))


def estimate_examination(
    documents: Integers,
    ranks: Integers,
    shown: Integers | Floats,
    clicked: Integers | Floats,
    *,
    n_ranks: int,
    confidence: float = 0.95,
) -> ExaminationCurve:
    """Examination relative to the first rank, under the position-based model.

        P(click) = examination(rank) * relevance(document), both in (0, 1],

    where the likelihood is largest; it is computed until the clicks that are expected
    at each rank are those that were counted, within 1e-9 of them. Only ratios to the
    first rank are identified, and they may be above 1. They rest on documents that
    were shown at several ranks, and on ranks that such documents connect with the
    first: one with clicks at both, or a ring of them. What only the bounds say, such
    as that a document is no better than certain to be clicked, is not believed.

    Intervals are those of the observed information of log ratios, each rank by
    itself, with every relevance unknown. They take clicks as independent given
    document and rank. Each relevance is estimated too, which makes ratios of ranks
    further down too large where documents are shown seldom, however many there are:
    by up to 45 % at 5 views a document, 12 % at 10, 3 % at 20. So there is no interval
    where more than `MOST_FEW` of the clicks are on documents with fewer than
    `ENOUGH_VIEWS`.

    Parameters
    ----------
    documents : [n_pairs]
        Any number for each document.
    ranks : [n_pairs]
        In 1..n_ranks.
    shown, clicked : [n_pairs]
        How often the document was shown, and clicked, at that rank; rows of the same
        document and rank are added up. Weights may be in place of counts, but have no
        such intervals.
    confidence
        Of the intervals, in (0, 1).

    Raises
    ------
    ValueError
        Where counts are negative, more was clicked than shown, a rank is out of range
        or the confidence is.

    References
    ----------
    Wang, Golbandi, Bendersky, Metzler & Najork (WSDM 2018), section 4, for the model;
    Ford (American Mathematical Monthly 64, 1957) for when such a maximum exists.
    """
    _check(ranks, shown, clicked, n_ranks, confidence)
    table = _added_up(documents, ranks - 1, shown, clicked, n_ranks)
    ratios, half = np.full((2, n_ranks), np.nan)
    reasons = _reasons(table, n_ranks)
    telling = _telling(table, n_ranks)
    if telling.any():
        rows, pairs = _pairs_of(table, telling)
        fit = fit_position_based(pairs)
        why = [NOT_CONVERGED] * len(rows)
        if fit.is_converged:
            ratios[rows] = fit.examination / fit.examination[0]
            half[rows], why = _half_widths(fit, float(ndtri(0.5 + 0.5 * confidence)))
            if _are_views_few(table, telling):
                half[rows[1:]], why[1:] = np.nan, [FEW_VIEWS] * (len(rows) - 1)
        for row, reason in zip(rows.tolist(), why, strict=True):
            reasons[row] = reason
    low, high = ratios * np.exp(-half), ratios * np.exp(half)
    return ExaminationCurve(ratios, low, high, tuple(reasons))


@dataclass(frozen=True)
class _Table:
    """Counts of each (document, rank) that was shown, sorted; ranks from 0."""

    documents: Integers
    rows: Integers
    shown: Floats
    clicked: Floats


def _check(
    ranks: Integers,
    shown: Integers | Floats,
    clicked: Integers | Floats,
    n_ranks: int,
    confidence: float,
) -> None:
    if len(ranks) and not 1 <= ranks.min() <= ranks.max() <= n_ranks:
        raise ValueError(
            f"ranks must lie in 1..{n_ranks}; got {ranks.min()}..{ranks.max()}"
        )
    wrong = np.flatnonzero((clicked < 0) | (clicked > shown))
    if len(wrong):
        raise ValueError(
            "clicked must lie in 0..shown for every pair; got "
            f"{clicked[wrong[0]]} of {shown[wrong[0]]} in row {wrong[0]}"
        )
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must lie in (0, 1); got {confidence}")


def _added_up(
    documents: Integers,
    rows: Integers,
    shown: Integers | Floats,
    clicked: Integers | Floats,
    k: int,
) -> _Table:
    _, numbers = np.unique(documents, return_inverse=True)
    keys, places = np.unique(numbers * k + rows, return_inverse=True)
    sums = np.stack([np.bincount(places, each, len(keys)) for each in (shown, clicked)])
    was_shown = sums[0] > 0
    keys, sums = keys[was_shown], sums[:, was_shown]
    return _Table(keys // k, keys % k, *sums)


def _reasons(table: _Table, n_ranks: int) -> list[str]:
    """Why there is no ratio, for ranks that do not come to have one."""
    shown = np.bincount(table.rows, table.shown, n_ranks)
    clicked = np.bincount(table.rows, table.clicked, n_ranks)
    without = np.where(clicked > 0, NOT_CONNECTED, NO_CLICKS)
    reasons: list[str] = np.where(shown > 0, without, NOT_SHOWN).tolist()
    return reasons


def _telling(table: _Table, n_ranks: int) -> Flags:
    """Pairs that say something of ratios to the first rank.

    Think of arcs from each rank to the documents shown there, and back where there
    were clicks. What cannot be reached from the first rank and back can be thought as
    much more or much less examined, or relevant, and the likelihood only grows.
    """
    n_nodes = n_ranks + int(table.documents.max(initial=-1)) + 1
    nodes = n_ranks + table.documents
    back = table.clicked > 0
    tails = np.concatenate([table.rows, nodes[back]])
    heads = np.concatenate([nodes, table.rows[back]])
    arcs = coo_array((np.ones(len(tails)), (tails, heads)), (n_nodes, n_nodes))
    _, parts = connected_components(arcs, directed=True, connection="strong")
    within = (parts[table.rows] == parts[0]) & (parts[nodes] == parts[0])
    n_ranks_of = np.bincount(table.documents[within], minlength=n_nodes)
    return np.asarray(within & (n_ranks_of[table.documents] > 1))


def _pairs_of(table: _Table, telling: Flags) -> tuple[Integers, Pairs]:
    """Ranks that take part, the first one first, and their counts."""
    rows, places = np.unique(table.rows[telling], return_inverse=True)
    _, numbers = np.unique(table.documents[telling], return_inverse=True)
    clicked = table.clicked[telling]
    return rows, Pairs(
        np.concatenate([[0], np.cumsum(np.bincount(numbers))]),
        places.astype(np.int64),
        table.shown[telling] - clicked,
        np.bincount(numbers, clicked).astype(np.float64),
        np.bincount(places, clicked).astype(np.float64),
    )


def _are_views_few(table: _Table, telling: Flags) -> bool:
    documents, clicked = table.documents[telling], table.clicked[telling]
    views = np.bincount(documents, table.shown[telling])
    few = clicked[views[documents] < ENOUGH_VIEWS].sum()
    return bool(few > MOST_FEW * clicked.sum())


def _half_widths(fit: Fit, quantile: float) -> tuple[Floats, list[str]]:
    """Half widths of the logs of ratios to the first of the ranks, and why not."""
    n = len(fit.examination)
    half, reasons = np.full(n, np.nan), [NO_MISSES] * n
    half[0], reasons[0] = 0.0, ""
    _, parts = connected_components(coo_array(fit.information != 0.0), directed=False)
    known = np.flatnonzero(parts == parts[0])[1:]
    variances = _variances(fit.information[np.ix_(known, known)])
    half[known] = quantile * np.sqrt(variances)
    for row, variance in zip(known.tolist(), variances.tolist(), strict=True):
        reasons[row] = "" if variance <= MOST_VARIANCE else TOO_LITTLE
    for row in np.flatnonzero(_is_bound(fit)).tolist():
        half[row], reasons[row] = np.nan, AT_BOUND
    return half, reasons


def _variances(information: Floats) -> Floats:
    """Those of logs of ratios; NaN where one could be anything between 0 and all."""
    scale = np.sqrt(information.diagonal())
    try:
        inverse = np.linalg.inv(information / np.outer(scale, scale)).diagonal()
    except np.linalg.LinAlgError:
        return np.full(len(scale), np.nan)
    variances = inverse / scale**2
    is_known = (inverse > 0.0) & (variances <= MOST_VARIANCE)
    return np.where(is_known, variances, np.nan)


def _is_bound(fit: Fit) -> Flags:
    """Ranks other than the first whose place is that of a bound.

    One rank has the largest examination, 1, and that binds nothing: it is the scale.
    """
    is_bound = (fit.examination >= 1.0) & (fit.slopes > 0.0)
    if is_bound.sum() == 1:
        is_bound[:] = False
    is_bound[0] = False
    return np.asarray(is_bound)
