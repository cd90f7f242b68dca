"""What clicks under trust bias say of each rank, and how surely.

With q the probability of a click at rank 1, and alpha[1] = 1, beta[1] = 0,

    p = alpha[rank] q(item) + beta[rank]

so that each cell is one equation. Ranks are identified where the equations of all
cells, at relevances that nobody chose, leave their alpha and beta no way to move.
"""

import numpy as np
import numpy.typing as npt
from scipy.sparse import coo_array

from models.bias.examination import NO_CLICKS, NO_MISSES, NOT_SHOWN
from models.bias.logged_views import Cells, Floats

NOT_IDENTIFIED = "no two items that differ lead from there to rank 1"

MOST_ERROR = 1.0
"""Of the ratio of alpha: an interval of 95 % would span four times rank 1."""

ZERO = 1e-9
"""Share of an eigenvalue, or of a direction, that is rounding."""

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, are as different from one another as can be."""

Flags = npt.NDArray[np.bool_]


def reasons_without(cells: Cells, n_ranks: int) -> list[str]:
    """Why there is no ratio, for ranks that do not come to have one."""
    shown = np.bincount(cells.rows, cells.shown, n_ranks)
    clicked = np.bincount(cells.rows, cells.clicked, n_ranks)
    reasons = np.where(clicked > 0, NOT_IDENTIFIED, NO_CLICKS)
    reasons = np.where((clicked > 0) & (clicked == shown), NO_MISSES, reasons)
    found: list[str] = np.where(shown > 0, reasons, NOT_SHOWN).tolist()
    return found


def identified_cells(cells: Cells, n_ranks: int) -> Flags:
    """Cells of ranks that are identified, of items seen at two of them or more.

    Items that were never clicked, or never missed, bound a curve but do not fix it.
    """
    shown = np.bincount(cells.rows, cells.shown, n_ranks)
    clicked = np.bincount(cells.rows, cells.clicked, n_ranks)
    is_rank = (clicked > 0) & (clicked < shown)
    n_items = len(cells.names)
    of_item = np.bincount(cells.items, cells.clicked, n_items)
    views = np.bincount(cells.items, cells.shown, n_items)
    tells = (of_item > 0) & (of_item < views)
    while True:
        used = is_rank[cells.rows]
        used &= (np.bincount(cells.items[used], minlength=n_items) > 1)[cells.items]
        fixing = used & tells[cells.items]
        kept = is_rank & _identified_ranks(cells.at(fixing), n_ranks)
        if not kept[0] or (kept == is_rank).all():
            return np.asarray(used & bool(kept[0]))
        is_rank = kept


def _identified_ranks(cells: Cells, n_ranks: int) -> Flags:
    """Ranks whose alpha and beta are fixed; all at least where nothing is free."""
    is_fixed = np.zeros(n_ranks, np.bool_)
    rows, places = np.unique(cells.rows, return_inverse=True)
    if not len(rows) or rows[0] != 0:
        return is_fixed
    # Any numbers do: what is fixed at some is fixed at almost all.
    q = 0.1 + 0.8 * _spread(len(cells.names), GOLDEN)
    alpha = 0.5 + _spread(len(rows), GOLDEN**2)
    one = np.ones(len(places))
    compact = cells._replace(rows=places.astype(np.int64))
    information = _profiled(compact, alpha, q, one, np.zeros(len(one)))
    values, vectors = np.linalg.eigh(_scaled(information)[0])
    free = vectors[:, values <= ZERO * max(1.0, values.max(initial=0.0))]
    moves = (free**2).sum(axis=1).reshape(2, -1).max(axis=0) > ZERO
    is_fixed[rows[0]] = True
    is_fixed[rows[1:]] = ~moves
    return is_fixed


def _spread(n: int, step: float) -> Floats:
    return np.asarray(np.arange(1.0, n + 1.0) * step % 1.0, np.float64)


def errors_of(
    cells: Cells, alpha: Floats, beta: Floats, q: Floats, is_inner: Flags
) -> Floats:
    """Standard errors of alpha and beta from the observed information, [2, n_ranks].

    Parameters
    ----------
    alpha, beta : [n_ranks]
        Where the likelihood is largest; ranks of the cells are numbers of these.
    q : [n_items]
        Probabilities of a click at rank 1.
    is_inner : [n_items]
        Items whose relevance is free to move.
    """
    errors = np.full((2, len(alpha)), np.nan)
    errors[:, 0] = 0.0
    p = alpha[cells.rows] * q[cells.items] + beta[cells.rows]
    is_used = is_inner[cells.items] & (p > ZERO) & (p < 1.0 - ZERO)
    p, missed = p[is_used], (cells.shown - cells.clicked)[is_used]
    clicked = cells.clicked[is_used]
    weights = clicked / p**2 + missed / (1.0 - p) ** 2
    slopes = clicked / p - missed / (1.0 - p)
    used = Cells(
        cells.items[is_used], cells.rows[is_used], cells.shown[is_used], clicked,
        cells.names,
    )  # fmt: skip
    information, scale = _scaled(_profiled(used, alpha, q, weights, slopes))
    values, vectors = np.linalg.eigh(information)
    is_known = values > ZERO
    inverse = (vectors[:, is_known] ** 2 / values[is_known]).sum(axis=1)
    is_fixed = (vectors[:, ~is_known] ** 2).sum(axis=1) <= ZERO
    variances = np.where(is_fixed & (inverse > 0.0), inverse / scale**2, np.nan)
    errors[:, 1:] = np.sqrt(variances).reshape(2, -1)
    return errors


def _profiled(
    cells: Cells, alpha: Floats, q: Floats, weights: Floats, slopes: Floats
) -> Floats:
    """Information on alpha and beta but the first, every q unknown, [2 k, 2 k].

    Minus the second derivative of each cell is `weights` times the product of its
    first derivatives, less `slopes` for alpha with q, which multiply each other.
    """
    k, n_items = len(alpha), len(q)
    of_item, own = q[cells.items], alpha[cells.rows]
    blocks = [
        np.diag(np.bincount(cells.rows, weights * factor, k))
        for factor in (of_item**2, of_item, np.ones(len(own)))
    ]
    whole = np.block([[blocks[0], blocks[1]], [blocks[1], blocks[2]]])
    of_q = np.bincount(cells.items, weights * own**2, n_items)
    both = np.concatenate([weights * of_item * own - slopes, weights * own])
    places = np.concatenate([cells.rows, cells.rows + k])
    items = np.concatenate([cells.items, cells.items])
    root = np.sqrt(np.where(of_q > 0.0, of_q, np.inf))
    cross = coo_array((both / root[items], (items, places)), (n_items, 2 * k)).tocsr()
    whole -= (cross.T @ cross).toarray()
    left = np.r_[1:k, k + 1 : 2 * k]
    return np.asarray(whole[np.ix_(left, left)])


def _scaled(information: Floats) -> tuple[Floats, Floats]:
    """With ones on its diagonal, and by what it was divided on each side."""
    diagonal = information.diagonal()
    scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    return information / np.outer(scale, scale), scale
