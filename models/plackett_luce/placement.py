"""Exact probability of each document at each rank under Plackett-Luce.

Plackett-Luce is a race of exponential clocks: document d arrives at a time with rate
exp(score_d), and the ranking is the order of arrival. So

    P(rank(d) = r) = integral of rate_d exp(-rate_d t) P(r - 1 others arrived by t) dt

and the second factor is a Poisson-binomial, of which the first `cutoff` terms take a
recursion over documents. The integral is taken by the trapezoidal rule after a double
exponential substitution, where it converges geometrically: no randomness, and the
same bits every time.

This is the definition, in plain numpy. The fold computes it in C (`placement.c` in
`streams/native`), and is held to every bit of it: the order of operations counts.

Shapes: scores are [n_lists, n_documents], results [n_lists, n_documents, cutoff].
`LANES` nodes of the integral are computed side by side, and are the last axis.

References
----------
Takahasi & Mori (Publ. RIMS 9, 1974) for the substitution.
"""

import math
from typing import NamedTuple

import numpy as np

from models.arrays import Floats

LANES = 8

LARGEST_STEP = 0.24
"""Of the trapezoidal rule, in v, where the logarithm of time is v - exp(-BEND v)."""

STEP_TIMES_ROOT = 0.68
"""Step times the root of the cutoff: late ranks are narrow in the log of time."""

BEND = 1.5
"""More leaves out early times sooner, but narrows the strip of convergence."""

FIRST_NODE = -1.64
"""Before this node less than 1e-12 documents have arrived, of the second rank on."""

STRAIGHT = 100.0
"""From here on no float can tell v from the logarithm of time."""

WIDEST_GAP = 32.0
"""Neighbouring scores further apart are as good as certain: 1e-14 for each pair."""

FAR_BELOW, ARRIVED = -37.0, 3.6
"""Logarithms of rate times time outside of which a document has surely not arrived, or
has: 1e-16, and 1e-15."""

NEVER, NO_LONGER = 1e-15, 1e-13
"""So unlikely counts of arrivals are left out: at the latest node still, and at the
earliest already."""

NOBODY_LEFT = 1e-11
"""Integration ends where fewer than `cutoff` arrivals are less likely than this."""

SMALL = 0.125
"""Below this 1 - exp(-x) is summed as a series."""

REACH = 300.0
"""Rates are kept within so many powers of e of the time."""

LOWEST = -708.0
"""Of the logarithms of normal numbers."""

PER_LOG_2, LOG_2 = 1.4426950408889634, 0.6931471805599453
LOG_2_HIGH, LOG_2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10
ROUNDER = 6755399441055744.0
"""1.5 * 2^52: added to a number, its last bits are that number, rounded."""


def placement_batch(scores: Floats, cutoff: int) -> Floats:
    """P(document at rank) for lists of one length.

    Parameters
    ----------
    scores : [n_lists, n_documents]
        Finite; only differences matter.
    cutoff
        Ranks 1..cutoff are computed, at most as many as there are documents.

    Returns
    -------
    [n_lists, n_documents, cutoff]
        Columns of a list sum to 1; absolute error below 1e-9.

    Raises
    ------
    ValueError
        Where a score is not finite or the cutoff asks for more ranks than documents.

    Examples
    --------
    >>> placement_batch(np.zeros((1, 2)), 2).round(6)
    array([[[0.5, 0.5],
            [0.5, 0.5]]])
    """
    values = checked_scores(scores, cutoff)
    placements = np.zeros((*values.shape, cutoff))
    for one, placement in zip(values, placements, strict=True):
        _fill(one, placement)
    return placements


def checked_scores(scores: Floats, cutoff: int) -> Floats:
    """The same scores in one piece; `scores` [n_lists, n_documents], as the result.

    Raises
    ------
    ValueError
        As `placement_batch`.
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
    return values


def _fill(scores: Floats, placements: Floats) -> None:
    order = np.argsort(-scores, kind="stable")
    logs = _logs_of(scores[order])
    rates = _rates(logs, 0.0)
    total = float(np.cumsum(rates)[-1])
    falling = np.zeros_like(placements)
    if placements.shape[1] > 1:
        # The first node need not be exact: a chord will do for the logarithm.
        mantissa, exponent = math.frexp(total)
        shift = LOG_2 * (exponent + 2.0 * mantissa - 2.0)
        _integrate(logs - shift, falling)
    falling[:, 0] = rates / total
    placements[order] = np.maximum(falling, 0.0)


def _logs_of(falling: Floats) -> Floats:
    """Logarithms of rates, the largest 0, of falling scores.

    Who is behind a gap comes first with a probability below exp(-gap): how wide it
    is beyond `WIDEST_GAP` changes nothing, but the race would last as long.
    """
    with np.errstate(over="ignore"):
        gaps = falling[:-1] - falling[1:]
        if gaps.max(initial=0.0) > WIDEST_GAP:
            return -np.cumsum(np.minimum([0.0, *gaps], WIDEST_GAP))
    # Before anything is added: far from 0 a sum would round differences away.
    return np.asarray(falling - falling[0])


def _rates(logs: Floats, offset: float) -> Floats:
    """exp(logs + offset), and 0 for the smallest."""
    values = logs + offset
    result: Floats = _exponentials(np.maximum(values, LOWEST)) * (values > LOWEST)
    return result


def _exponentials(values: Floats) -> Floats:
    """As `models.kernels.exponentials`, where results are normal numbers."""
    powers = values * PER_LOG_2 + ROUNDER
    k = powers - ROUNDER
    r = (values - k * LOG_2_HIGH) - k * LOG_2_LOW
    p = r * (1.0 / 479001600.0) + 1.0 / 39916800.0
    for n in range(10, -1, -1):
        p = p * r + 1.0 / math.factorial(n)
    bits = (powers.view(np.int64) + 1023) << 52
    return np.asarray(p * bits.view(np.float64))


class _Clocks(NamedTuple):
    """Documents that may arrive about now. [n_documents, LANES] each.

    Rate times time; the probability that it has not, and that it has, arrived.
    """

    passed: Floats
    silent: Floats
    rung: Floats

    def after(self, n: int) -> "_Clocks":
        """Without the first n."""
        return _Clocks(self.passed[n:], self.silent[n:], self.rung[n:])


class _Counts(NamedTuple):
    """P(so many arrived), of which low..high matter. `at` [cutoff, LANES]."""

    at: Floats
    low: int
    high: int


def _clocks_of(rates: Floats, times: Floats) -> _Clocks:
    passed = rates[:, None] * times
    rest = 1.0 / 5040.0 - passed * (1.0 / 40320.0)
    for n in range(6, 0, -1):
        rest = 1.0 / math.factorial(n) - passed * rest
    is_small = passed[:, -1:] < SMALL
    rung = np.where(is_small, passed * rest, 1.0 - _exponentials(-passed))
    return _Clocks(passed, 1.0 - rung, rung)


def _integrate(logs: Floats, placements: Floats) -> None:
    """Sum the integrand of ranks 2..cutoff; `logs` fall, and rates sum to about 1."""
    n_documents, cutoff = placements.shape
    step = min(LARGEST_STEP, STEP_TIMES_ROOT / math.sqrt(cutoff))
    # Recursions of documents that passed less multiply errors by 1e3 at most.
    stable = 0.69 + 3.0 / (cutoff + 1.5)
    first, end, node, offset = 0, 0, 0, 0.0
    rates = _rates(logs, offset)
    while True:
        v = FIRST_NODE + np.arange(node, node + LANES) * step
        node += LANES
        slopes = _exponentials(-BEND * np.minimum(v, STRAIGHT))
        log_times, weights = v - slopes, step * (1.0 + BEND * slopes)
        while first < n_documents and logs[first] + log_times[0] > ARRIVED:
            first += 1
        if first >= cutoff:
            return
        while end < n_documents and logs[end] + log_times[-1] >= FAR_BELOW:
            end += 1
        if log_times[-1] > offset + REACH:
            offset = float(log_times[-1])
            rates[first:] = _rates(logs[first:], offset)
        clocks = _clocks_of(rates[first:end], _exponentials(log_times - offset))
        n_early = int((clocks.passed[:, -1] > stable).sum())
        others = _Counts(np.zeros((cutoff, LANES)), first, first)
        others.at[first] = weights
        others = _with_all(others, clocks.after(n_early))
        everyone = _with_all(others, _Clocks(*(each[:n_early] for each in clocks)))
        left = np.cumsum(everyone.at[everyone.low : everyone.high + 1, 0])
        if not left.size or left[-1] < NOBODY_LEFT * weights[0]:
            return
        late = placements[first + n_early : end]
        _leave_out(everyone, clocks.after(n_early), late)
        _leave_each_out(others, clocks, (0, n_early), placements[first:end])


def _with_all(counts: _Counts, clocks: _Clocks) -> _Counts:
    """One more document after the other may have arrived."""
    at, low, high = counts.at.copy(), counts.low, counts.high
    for silent, rung in zip(clocks.silent, clocks.rung, strict=True):
        if low > high:
            break
        if high + 1 < len(at) and at[high, -1] * rung[-1] > NEVER:
            high += 1
            at[high] = 0.0
        more = at[low:high] * rung
        at[low : high + 1] *= silent
        at[low + 1 : high + 1] += more
        while low <= high and at[low, 0] < NO_LONGER:
            low += 1
    return _Counts(at, low, high)


def _leave_out(everyone: _Counts, clocks: _Clocks, placements: Floats) -> None:
    """Divide each document out of everyone's counts, those of the others are left.

    The recursion forwards through the counts is stable for documents that are not
    likely to have arrived. `placements` [n_documents, cutoff] are added to.
    """
    odds = clocks.rung / clocks.silent
    others = np.zeros_like(odds)
    for r in range(everyone.low, everyone.high + 1):
        others = everyone.at[r] - odds * others
        placements[:, r] += _sum(clocks.passed * others)


def _leave_each_out(
    counts: _Counts, clocks: _Clocks, place: tuple[int, int], placements: Floats
) -> None:
    """The same for likely documents, at these places, by halving.

    Each half of them is completed with the other half until one is left out; nothing
    is divided, so nothing cancels. `placements` [n_documents, cutoff] are added to.
    """
    begin, end = place
    if end - begin > 1:
        middle = (begin + end) // 2
        for own, other in (
            ((begin, middle), slice(middle, end)),
            ((middle, end), slice(begin, middle)),
        ):
            with_other = _with_all(counts, _Clocks(*(each[other] for each in clocks)))
            _leave_each_out(with_other, clocks, own, placements)
    elif end > begin:
        density = clocks.passed[begin] * clocks.silent[begin]
        which = slice(counts.low, counts.high + 1)
        placements[begin, which] += _sum(counts.at[which] * density)


def _sum(values: Floats) -> Floats:
    """Over lanes, [..., LANES]."""
    fours = values[..., :4] + values[..., 4:]
    twos = fours[..., :2] + fours[..., 2:]
    return np.asarray(twos[..., 0] + twos[..., 1])
