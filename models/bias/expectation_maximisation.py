"""Expectation maximisation to convergence, with steps that are extrapolated.

A turn never lowers the likelihood, but may take thousands to get anywhere near its
maximum. Two turns tell how they shrink, and so how far they would lead in the end:
that far is gone at once, and taken back where the likelihood is lower there.

References
----------
Dempster, Laird & Rubin (J. R. Statist. Soc. B 39, 1977), theorem 1, for why it never
falls; Varadhan & Roland (Scand. J. Statist. 35, 2008), scheme S3, for the step.
"""

from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats

TOLERANCE = 1e-8
"""How far what is told may still move, by what two turns promise."""

MOST_TURNS = 30_000

ROUNDING = 1e-12
"""Share of a log likelihood that may be lost by rounding."""

N_CALM = 2
"""Steps in a row that must promise so little."""

N_REMEMBERED = 10
"""Steps whose longest length counts: a short one may see what shrinks fast only."""


class Turn(NamedTuple):
    """What one turn makes of a point.

    Parameters
    ----------
    point : [n]
        Where it leads.
    log_likelihood
        Of the point that it began at; minus infinity where that is none.
    """

    point: Floats
    log_likelihood: float


class Ascent(NamedTuple):
    """Where turns end.

    Parameters
    ----------
    point : [n]
    log_likelihoods : [n_steps]
        Where each step began; they never fall.
    n_turns
    is_converged
    """

    point: Floats
    log_likelihoods: Floats
    n_turns: int
    is_converged: bool


def ascend(
    start: Floats,
    turn: Callable[[Floats], Turn],
    bounded: Callable[[Floats], Floats],
    told: Callable[[Floats], Floats],
    *,
    most_turns: int = MOST_TURNS,
) -> Ascent:
    """Take turns until what is told stands still.

    Parameters
    ----------
    start : [n]
        Of a finite likelihood.
    turn
        One turn of expectation and maximisation.
    bounded
        The nearest point within bounds.
    told
        What is asked of a point: only this must converge.
    most_turns
        After which it is given up.
    """
    point, n_turns, n_calm = start, 0, 0
    likelihoods: list[float] = []
    lengths: deque[float] = deque(maxlen=N_REMEMBERED)
    while n_turns < most_turns and n_calm < N_CALM:
        first = turn(point)
        second = turn(first.point)
        n_turns += 2
        likelihoods.append(first.log_likelihood)
        change = first.point - point
        bend = (second.point - first.point) - change
        size, curved = float(np.linalg.norm(change)), float(np.linalg.norm(bend))
        length = max(1.0, size / curved) if curved > 0.0 else 1.0
        lengths.append(length)
        moved = float(np.abs(told(first.point) - told(point)).max(initial=0.0))
        n_calm = n_calm + 1 if moved * max(lengths) <= TOLERANCE else 0
        ahead = second.point
        while length > 1.0 and n_turns < most_turns:
            further = bounded(point + 2.0 * length * change + length**2 * bend)
            third = turn(further)
            n_turns += 1
            least = second.log_likelihood
            if third.log_likelihood >= least - ROUNDING * abs(least):
                ahead = third.point
                break
            length = 0.5 * (length + 1.0) if length > 2.0 else 1.0
        point = ahead
    return Ascent(point, np.array(likelihoods), n_turns, n_calm >= N_CALM)
