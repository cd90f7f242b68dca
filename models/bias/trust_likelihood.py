"""The largest likelihood under trust bias, by Newton's method on sums, compiled.

    p = u[rank] R(item) + v[rank] (1 - R(item))         u, v and R in [0, 1]

Given u and v each item has its best R by itself, where a concave function of one number
is largest; what is left is a function of 2 K numbers, whose slope and curvature are
sums over cells. It is flat where R' = s R + t with the u and v that belong to it: no
step is taken in directions that the likelihood does not know.

Cells lie item by item: those of item i are offsets[i] .. offsets[i + 1].

References
----------
Bertsekas (SIAM J. Control Optim. 20, 1982), section 2, for Newton's method on bounded
numbers; Nocedal & Wright (Numerical Optimization, 2006), section 3.4, for curvature
that is turned where it is negative.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.bias.logged_views import Cells
from models.bias.trust_identification import is_held
from models.kernels.compilation import compiled

LEAST_GAIN = 1e-13
"""Of the log likelihood of one interaction: what less promises is rest.

Of a million interactions that is .0005 of a standard error, squared of course."""

LEAST_MOVE = 1e-7
"""Of what is told."""

MOST_CALM = 3
"""The first of them leaves nothing, but where the likelihood is flat."""

ROUNDING = 1e-13
"""Share of a log likelihood that may be lost by rounding."""

MOST_STEPS = 200
"""Newton's method takes 5 to 30."""

FIRST_DAMPING = 1e-3
"""Added to curvatures with ones on the diagonal: far away they say little."""

MOST_DAMPING = 1e9
"""With which no step leads anywhere."""

FLAT = 1e-9
"""The least damping: what curves less is flat, as far as numbers can tell."""

ENOUGH = 1e-4
"""Share of the gain that the slopes promise with which a step is taken."""

CLOSE = 1e-12
"""To a bound of R, or share of its slope, that is rounding."""


class Sums(NamedTuple):
    """Counts of items at ranks.

    Parameters
    ----------
    offsets : [n_items + 1]
    rows : [n_cells]
        Ranks from 0.
    clicked, missed : [n_cells]
    n_ranks
    """

    offsets: Integers
    rows: Integers
    clicked: Floats
    missed: Floats
    n_ranks: int


def sums_of(cells: Cells) -> tuple[Integers, Sums]:
    """Ranks of cells from 0, and the cells with these numbered; cells are sorted."""
    rows, places = np.unique(cells.rows, return_inverse=True)
    offsets = np.searchsorted(cells.items, np.arange(len(cells.names) + 1))
    missed = cells.shown - cells.clicked
    return rows, Sums(
        offsets, places.astype(np.int64), cells.clicked, missed, len(rows)
    )


class Peak(NamedTuple):
    """Where the likelihood is largest.

    Parameters
    ----------
    relevance : [n_items]
    ends : [2 n_ranks]
        u of all ranks, then v.
    slopes : [2 n_ranks]
        Of the log likelihood there: 0, but for bounds.
    curvature : [2 n_ranks, 2 n_ranks]
        Minus its second derivative, every relevance at its best.
    log_likelihoods : [n_steps + 1]
        They never fall.
    is_converged
    """

    relevance: Floats
    ends: Floats
    slopes: Floats
    curvature: Floats
    log_likelihoods: Floats
    is_converged: bool


class Profile(NamedTuple):
    """What the likelihood is at u and v, each relevance at its best.

    Parameters
    ----------
    slopes : [2 n_ranks]
        Of the log likelihood.
    curvature : [2 n_ranks, 2 n_ranks]
        Minus its second derivative.
    relevance : [n_items]
        The best, in [0, 1].
    """

    log_likelihood: float
    slopes: Floats
    curvature: Floats
    relevance: Floats


def climb(
    sums: Sums,
    relevance: Floats,
    ends: Floats,
    told: Callable[[Floats], Floats],
    *,
    is_fixed: Flags | None = None,
    most_steps: int = MOST_STEPS,
) -> Peak:
    """Steps from a point of finite likelihood until it is at rest.

    At rest is where a step of Newton's method promises less than `LEAST_GAIN` for each
    interaction, and moves what is told by less than `LEAST_MOVE`; or where `MOST_CALM`
    steps promised as little, and what is told is not known to that.

    Parameters
    ----------
    relevance : [n_items]
        In [0, 1].
    ends : [2 n_ranks]
        U, then v, in [0, 1].
    told
        What is asked of u and v.
    is_fixed : [2 n_ranks]
        Ends that stay as they are; if not given none.
    most_steps
        After which it is given up.
    """
    fixed = np.zeros(len(ends), np.bool_) if is_fixed is None else is_fixed
    total = float(sums.clicked.sum() + sums.missed.sum())
    now, damping = profile_of(sums, ends, relevance), FIRST_DAMPING
    likelihoods = [now.log_likelihood]
    is_over, n_steps, n_calm = False, 0, 0
    while not is_over and n_steps < most_steps and damping < MOST_DAMPING:
        step, gain = _step(ends, now, fixed, damping)
        is_calm = is_damped = abs(gain) <= LEAST_GAIN * total
        if is_damped:
            # What is damped promises less than it could.
            step, gain = _step(ends, now, fixed, FLAT)
            move = np.abs(told(ends + step) - told(ends)).max(initial=0.0)
            is_calm = abs(gain) <= LEAST_GAIN * total
            n_calm += is_calm
            is_over = is_calm and bool(move <= LEAST_MOVE or n_calm >= MOST_CALM)
        # Slopes are known better there than what the likelihood gains.
        lost = ROUNDING * abs(now.log_likelihood) if is_calm else 0.0
        least = now.log_likelihood - lost + ENOUGH * max(gain, 0.0)
        moved = np.clip(ends + step, 0.0, 1.0)
        found = profile_of(sums, moved, now.relevance)
        n_steps += 1
        if found.log_likelihood > least:
            ends, now, damping = moved, found, max(0.1 * damping, FLAT)
            likelihoods.append(now.log_likelihood)
        else:
            # A longer step promised more, and does not lead up.
            is_over = is_damped
            damping = max(10.0 * damping, FIRST_DAMPING)
    return Peak(
        now.relevance, ends, now.slopes, now.curvature, np.array(likelihoods), is_over
    )


def _step(
    ends: Floats, now: Profile, fixed: Flags, damping: float
) -> tuple[Floats, float]:
    """A step of Newton's method within bounds, and what it promises.

    What it would lead out of bounds goes to its bound, and the others as is best then.
    """
    slopes, curvature = now.slopes, now.curvature
    held = is_held(ends, slopes) & ~fixed
    free = ~(held | fixed)
    step = np.where(held, np.rint(ends) - ends, 0.0)
    while free.any():
        inner = curvature[np.ix_(free, free)]
        diagonal = np.abs(inner.diagonal())
        scale = np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
        values, vectors = np.linalg.eigh(inner / np.outer(scale, scale))
        left = slopes[free] - curvature[np.ix_(free, ~free)] @ step[~free]
        along = vectors.T @ (left / scale) / (np.abs(values) + damping)
        step[free] = (vectors @ along) / scale
        is_out = free & ((ends + step < 0.0) | (ends + step > 1.0))
        if not is_out.any():
            break
        step[is_out] = np.where(step[is_out] < 0.0, 0.0, 1.0) - ends[is_out]
        free &= ~is_out
    return step, float(slopes @ step - 0.5 * step @ curvature @ step)


def profile_of(sums: Sums, ends: Floats, relevance: Floats) -> Profile:
    """What the likelihood is at u and v.

    Parameters
    ----------
    ends : [2 n_ranks]
        U, then v, in [0, 1].
    relevance : [n_items]
        Where each search begins.
    """
    k = sums.n_ranks
    best, slopes = relevance.copy(), np.zeros(2 * k)
    curvature = np.zeros((2 * k, 2 * k))
    total = _fill(sums, ends, best, slopes, curvature)
    return Profile(total, slopes, curvature, best)


@compiled
def _fill(  # noqa: C901  one pass over cells, compiled
    sums: Sums,
    ends: Floats,
    relevance: Floats,
    slopes: Floats,
    curvature: Floats,
) -> float:
    """Add up what all items say, and fill in the best relevance of each."""
    k, rows = len(ends) // 2, sums.rows
    total = 0.0
    cross = np.empty(2 * k)
    for item in range(len(relevance)):
        begin, end = sums.offsets[item], sums.offsets[item + 1]
        r, is_inner = _best(sums, item, ends, relevance[item])
        relevance[item] = r
        own = 0.0
        for i in range(begin, end):
            row = rows[i]
            a = ends[row] - ends[row + k]
            p = r * ends[row] + (1.0 - r) * ends[row + k]
            c, m = sums.clicked[i], sums.missed[i]
            if (c > 0.0 and p <= 0.0) or (m > 0.0 and p >= 1.0):
                return -np.inf
            slope, weight = 0.0, 0.0
            if c > 0.0:
                total += c * np.log(p)
                slope += c / p
                weight += c / (p * p)
            if m > 0.0:
                total += m * np.log1p(-p)
                slope -= m / (1.0 - p)
                weight += m / ((1.0 - p) * (1.0 - p))
            slopes[row] += slope * r
            slopes[row + k] += slope * (1.0 - r)
            curvature[row, row] += weight * r * r
            both = weight * r * (1.0 - r)
            curvature[row, row + k] += both
            curvature[row + k, row] += both
            curvature[row + k, row + k] += weight * (1.0 - r) * (1.0 - r)
            cross[i - begin] = weight * r * a - slope
            cross[i - begin + k] = weight * (1.0 - r) * a + slope
            own += weight * a * a
        if not is_inner or own <= 0.0:
            continue
        for i in range(begin, end):
            for side in range(2):
                one = cross[i - begin + side * k] / own
                for j in range(begin, end):
                    for other in range(2):
                        curvature[rows[i] + side * k, rows[j] + other * k] -= (
                            one * cross[j - begin + other * k]
                        )
    return total


@compiled
def _best(sums: Sums, item: int, ends: Floats, r: float) -> tuple[float, bool]:
    """The relevance in [0, 1] of the largest likelihood, and whether it is inside.

    Newton's method on the slope, which falls, within bounds that close in.
    """
    if _slope(sums, item, ends, 0.0)[0] <= 0.0:
        return 0.0, False
    if _slope(sums, item, ends, 1.0)[0] >= 0.0:
        return 1.0, False
    low, high = 0.0, 1.0
    r = r if low < r < high else 0.5
    for _ in range(200):
        slope, fall, size = _slope(sums, item, ends, r)
        if abs(slope) <= CLOSE * 0.01 * size:
            break
        low, high = (r, high) if slope > 0.0 else (low, r)
        moved = r + slope / fall if fall > 0.0 else 0.5 * (low + high)
        if not low < moved < high:
            moved = 0.5 * (low + high)
        if moved in (r, low, high):
            break
        r = moved
    return r, True


@compiled
def _slope(sums: Sums, item: int, ends: Floats, r: float) -> tuple[float, float, float]:
    """Slope in R, how fast it falls, and the size of what it is made of."""
    k = len(ends) // 2
    slope, fall, size = 0.0, 0.0, 0.0
    for i in range(sums.offsets[item], sums.offsets[item + 1]):
        u, v = ends[sums.rows[i]], ends[sums.rows[i] + k]
        a, p = u - v, r * u + (1.0 - r) * v
        c, m = sums.clicked[i], sums.missed[i]
        if a == 0.0:
            continue
        if (c > 0.0 and p <= 0.0) or (m > 0.0 and p >= 1.0):
            return (np.inf if (p <= 0.0) == (a > 0.0) else -np.inf), np.inf, np.inf
        by_click = a * c / p if c > 0.0 else 0.0
        by_miss = a * m / (1.0 - p) if m > 0.0 else 0.0
        slope += by_click - by_miss
        size += abs(by_click) + abs(by_miss)
        fall += by_click * a / p if c > 0.0 else 0.0
        fall += by_miss * a / (1.0 - p) if m > 0.0 else 0.0
    return slope, fall, size
