"""What clicks under trust bias say of each rank, and how surely.

With q the probability of a click at rank 1, and alpha[1] = 1, beta[1] = 0,

    p = alpha[rank] q(item) + beta[rank]

so that each cell is one equation. Ranks are identified where the equations of all
cells, at relevances that nobody chose, leave their alpha and beta no way to move.
"""

import numpy as np
from scipy.sparse import coo_array

from models.arrays import Flags, Floats
from models.bias.examination import NO_CLICKS, NO_MISSES, NOT_SHOWN
from models.bias.logged_views import Cells

NOT_IDENTIFIED = "no two items that differ lead from there to rank 1"

MOST_ERROR = 1.0
"""Of the ratio of alpha: an interval of 95 % would span four times rank 1."""

ZERO = 1e-9
"""Share of an eigenvalue, or of a direction, that is rounding."""

AT_END = 1e-7
"""From 0 or 1, for a probability to be there."""

GOLDEN = 0.6180339887498949
"""Multiples of it, modulo 1, are as different from one another as can be."""


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


def errors_of(ends: Floats, slopes: Floats, curvature: Floats) -> Floats:
    """Standard errors of alpha and beta from the observed information, [2, n_ranks].

    A click probability that would leave [0, 1] if it could is taken as known to be at
    its end: the information there is of no inner maximum.

    Parameters
    ----------
    ends : [2 n_ranks]
        Click probabilities of what is relevant, and of what is not, where the
        likelihood is largest.
    slopes : [2 n_ranks]
        Of the log likelihood there.
    curvature : [2 n_ranks, 2 n_ranks]
        Minus its second derivative, every relevance at its best.
    """
    k = len(ends) // 2
    free = ~is_held(ends, slopes)
    information, scale = _scaled(curvature[np.ix_(free, free)])
    values, vectors = np.linalg.eigh(information)
    along = (_derivatives(ends)[:, free] / scale) @ vectors
    is_known = values > ZERO
    variances = (along[:, is_known] ** 2 / values[is_known]).sum(axis=1)
    unknown = (along[:, ~is_known] ** 2).sum(axis=1)
    is_fixed = unknown <= ZERO * (along**2).sum(axis=1)
    errors = np.sqrt(np.where(is_fixed, variances, np.nan)).reshape(2, k)
    errors[:, 0] = 0.0
    return np.asarray(errors)


def is_held(ends: Floats, slopes: Floats) -> Flags:
    """Click probabilities at an end that they would leave if they could.

    Parameters
    ----------
    ends, slopes : [2 n_ranks]
        U and v, and slopes of the log likelihood in them.

    Returns
    -------
    [2 n_ranks]
    """
    is_low, is_high = ends <= AT_END, ends >= 1.0 - AT_END
    return np.asarray((is_low & (slopes <= 0.0)) | (is_high & (slopes >= 0.0)))


def _derivatives(ends: Floats) -> Floats:
    """Of alpha of all ranks, then beta, with regard to `ends`; [2 k, 2 k]."""
    u, v = np.split(ends, 2)
    one, zero = np.eye(len(u)), np.zeros((len(u), len(u)))
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha = (u - v) / (u[0] - v[0])
        by_u = (one - np.outer(alpha, one[0])) / (u[0] - v[0])
    of_alpha = np.hstack([by_u, -by_u])
    of_beta = np.hstack([zero, one - np.outer(alpha, one[0])]) - v[0] * of_alpha
    return np.vstack([of_alpha, of_beta])


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
