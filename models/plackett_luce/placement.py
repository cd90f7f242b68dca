"""Exact probability of each document at each rank under Plackett-Luce.

Plackett-Luce is a race of exponential clocks: document d arrives at a time with rate
exp(score_d), and the ranking is the order of arrival. So

    P(rank(d) = r) = integral of rate_d exp(-rate_d t) P(r - 1 others arrived by t) dt

and the second factor is a Poisson-binomial, of which the first `cutoff` terms take a
recursion over documents. The integral is taken by the trapezoidal rule after a double
exponential substitution, where it converges geometrically: no randomness, and the
same bits every time.

Shapes: scores are [n_lists, n_documents], results [n_lists, n_documents, cutoff].

References
----------
Takahasi & Mori (Publ. RIMS 9, 1974) for the substitution.
"""

import math

import numpy as np
import numpy.typing as npt

from models.kernels.compilation import compiled

Floats = npt.NDArray[np.float64]

STEP_AT_RANK_ONE = 0.22
"""Largest step of the trapezoidal rule, in the logarithm of time."""

STEP_TIMES_ROOT_OF_RANK = 0.62
"""Step times the root of the cutoff: late ranks are narrow in the log of time."""

FIRST_NODE = -2.7
"""Before this node less than 1e-8 documents have arrived, of the second rank on."""

WIDEST_GAP = 50.0
"""Scores further apart than this are as good as certain: 1e-21 for each pair."""

NOBODY_LEFT = 1e-14
"""Integration ends where fewer than `cutoff` arrivals are less likely than this."""


def placement_probabilities(scores: npt.ArrayLike, cutoff: int) -> Floats:
    """P(document at rank) for one list.

    Parameters
    ----------
    scores : [n_documents]
        Finite; only differences matter.
    cutoff
        Ranks 1..cutoff are computed, at most as many as there are documents.

    Returns
    -------
    [n_documents, cutoff]
        Columns sum to 1; absolute error below 1e-9.

    Raises
    ------
    ValueError
        Where a score is not finite or the cutoff asks for more ranks than documents.

    Examples
    --------
    >>> placement_probabilities([0.0, 0.0], 2).round(6)
    array([[0.5, 0.5],
           [0.5, 0.5]])
    """
    result: Floats = placement_batch(np.asarray(scores, np.float64)[None, :], cutoff)[0]
    return result


def placement_batch(scores: Floats, cutoff: int) -> Floats:
    """P(document at rank) for lists of one length, without the interpreter's lock.

    Parameters
    ----------
    scores : [n_lists, n_documents]
    cutoff
        In 1..n_documents.

    Returns
    -------
    [n_lists, n_documents, cutoff]

    Raises
    ------
    ValueError
        As `placement_probabilities`.
    """
    values = np.ascontiguousarray(scores, np.float64)
    if values.ndim != 2:
        raise ValueError(f"scores must be lists by documents; got {values.ndim} axes")
    if not 1 <= cutoff <= values.shape[1]:
        raise ValueError(
            f"cutoff must lie in 1..{values.shape[1]}, the documents; got {cutoff}"
        )
    if not np.isfinite(values).all():
        raise ValueError("scores must be finite")
    placements = np.zeros((values.shape[0], values.shape[1], cutoff))
    _fill(_without_wide_gaps(values), placements)
    return placements


def _without_wide_gaps(scores: Floats) -> Floats:
    """Scores that give the same probabilities, and soon an end of the race.

    Who is behind a gap comes first with a probability below exp(-gap): how wide it
    is beyond `WIDEST_GAP` changes nothing, but the race would last as long.
    """
    if not scores.size or np.ptp(scores) <= WIDEST_GAP:
        return scores
    order = np.argsort(scores, axis=1)
    sorted_scores = np.take_along_axis(scores, order, axis=1)
    gaps = np.diff(sorted_scores, axis=1)
    has_wide = gaps.max(axis=1) > WIDEST_GAP
    if not has_wide.any():
        return scores
    narrowed = np.empty_like(scores)
    ends = np.cumsum(np.minimum(gaps, WIDEST_GAP), axis=1)
    ends = np.concatenate([np.zeros((len(scores), 1)), ends], axis=1)
    np.put_along_axis(narrowed, order, ends, axis=1)
    # List by list: who else is in a batch must not change a bit.
    result: Floats = np.where(has_wide[:, None], narrowed, scores)
    return result


@compiled
def _fill(scores: Floats, placements: Floats) -> None:
    n_lists, n_documents = scores.shape
    for row in range(n_lists):
        largest = scores[row].max()
        total = 0.0
        for d in range(n_documents):
            total += math.exp(scores[row, d] - largest)
        # Before anything is added: far from 0 a sum would round differences away.
        logs = scores[row] - largest
        logs -= math.log(total)
        _integrate(logs, placements[row])
        for d in range(n_documents):
            placements[row, d, 0] = math.exp(logs[d])


@compiled
def _integrate(logs: Floats, placements: Floats) -> None:  # noqa: C901  one loop
    """Sum the integrand of ranks 2..cutoff; `logs` are log rates that sum to 1."""
    n_documents, cutoff = placements.shape
    if cutoff == 1:
        return
    step = min(STEP_AT_RANK_ONE, STEP_TIMES_ROOT_OF_RANK / math.sqrt(cutoff))
    arrived = np.empty(n_documents)
    density = np.empty(n_documents)
    others = np.empty(cutoff)
    everyone = np.empty(cutoff)
    early = np.empty(n_documents, np.int64)
    stack = np.empty((66, cutoff))
    bounds = np.empty((66, 3), np.int64)
    node = 0
    while True:
        v = FIRST_NODE + node * step
        node += 1
        slope = math.exp(-v)
        log_time = v - slope
        weight = step * (1.0 + slope)
        for d in range(n_documents):
            # Beyond this everybody has arrived, as far as a float can tell.
            passed = math.exp(min(logs[d] + log_time, 6.5))
            arrived[d] = -math.expm1(-passed)
            density[d] = weight * passed * (1.0 - arrived[d])
        everyone[:] = 0.0
        everyone[0] = 1.0
        n_early = 0
        for d in range(n_documents):
            if arrived[d] < 0.5:
                _add(everyone, arrived[d])
            else:
                early[n_early] = d
                n_early += 1
        if n_early:
            others[:] = everyone
            _leave_each_out(
                others, early[:n_early], arrived, density, placements, stack, bounds
            )
            for i in range(n_early):
                _add(everyone, arrived[early[i]])
        for d in range(n_documents):
            if arrived[d] < 0.5:
                _without(everyone, arrived[d], density[d], placements[d])
        left = 0.0
        for r in range(cutoff):
            left += everyone[r]
        if left < NOBODY_LEFT and v > 0.0:
            return


@compiled
def _add(counts: Floats, p: float) -> None:
    """Let one more document arrive with probability p."""
    q = 1.0 - p
    for r in range(len(counts) - 1, 0, -1):
        counts[r] = counts[r] * q + counts[r - 1] * p
    counts[0] *= q


@compiled
def _without(counts: Floats, p: float, density: float, placements: Floats) -> None:
    """Add density times the counts of all others, where p is below one half.

    The recursion forwards through the counts is stable there.
    """
    inverse = 1.0 / (1.0 - p)
    ratio = p * inverse
    before = counts[0] * inverse
    for r in range(1, len(counts)):
        before = counts[r] * inverse - ratio * before
        placements[r] += density * max(before, 0.0)


@compiled
def _leave_each_out(  # noqa: PLR0913  scratch is passed in, not allocated
    counts: Floats,
    early: npt.NDArray[np.int64],
    arrived: Floats,
    density: Floats,
    placements: Floats,
    stack: Floats,
    bounds: npt.NDArray[np.int64],
) -> None:
    """The same for documents with p of one half or more, by halving.

    Each half of them is completed with the other half until one is left out; nothing
    is divided, so nothing cancels.
    """
    stack[0] = counts
    bounds[0, 0], bounds[0, 1] = 0, len(early)
    top = 1
    while top:
        top -= 1
        low, high = bounds[top, 0], bounds[top, 1]
        if high - low == 1:
            d = early[low]
            for r in range(1, len(counts)):
                placements[d, r] += density[d] * stack[top, r]
            continue
        middle = (low + high) // 2
        stack[top + 1] = stack[top]
        for i in range(low, middle):
            _add(stack[top + 1], arrived[early[i]])
        for i in range(middle, high):
            _add(stack[top], arrived[early[i]])
        bounds[top, 0], bounds[top, 1] = low, middle
        bounds[top + 1, 0], bounds[top + 1, 1] = middle, high
        top += 2
