"""Strategies for impressions of one scope."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from models.counts.definition import ClosedImpression
from models.counts.placements import (
    DETERMINISTIC,
    LOGGED,
    MULTILEAVE,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    UNKNOWN,
)

ITEMS = tuple("abcdef")
N_ROWS = 3

_PROBABILITIES = (0.0, 1.0, 0.25, 0.3, 1e-5, 2.0**-20, 2.0**-22, 1e-9)


def matrix_of(number: int) -> Any:
    """P(item at rank) of a row, [6, 6]; never mind that columns do not add up."""
    rng = np.random.default_rng(number)
    return rng.choice(_PROBABILITIES, (len(ITEMS), len(ITEMS)))


def row_name(policy: int, number: int) -> bytes:
    """The name of a row."""
    return bytes((policy, number)) * 8


def some_impressions(seed: int, n: int) -> list[ClosedImpression]:
    """Lists of a few items, of any policy, with clicks of three classes."""
    rng = np.random.default_rng(seed)
    return [_impression(rng) for _ in range(n)]


logs = st.builds(some_impressions, st.integers(0, 2**32), st.integers(1, 30))
"""Drawn by a seed: a strategy for each number takes most of the time of a test."""


def _impression(rng: np.random.Generator) -> ClosedImpression:
    n_shown = int(rng.integers(1, len(ITEMS) + 1))
    shown = rng.permutation(len(ITEMS))[:n_shown].tolist()
    # Few lists, so that they come again with other clicks.
    if rng.random() < 0.5:
        shown = list(range(n_shown))
    rates = rng.choice((0.0, 0.3, 0.9), 3)
    clicks = {
        which: (np.flatnonzero(rng.random(n_shown) < rate) + 1).tolist() * 2
        for which, rate in enumerate(rates)
    }
    policies = (UNKNOWN, PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE, LOGGED, MULTILEAVE)
    policy, group = int(rng.choice(policies)), int(rng.integers(4))
    if policy not in (PLACKETT_LUCE, LOGGED):
        return ClosedImpression(group, shown, clicks, policy)
    number = int(rng.integers(N_ROWS))
    name, matrix = row_name(policy, number), matrix_of(number)
    return ClosedImpression(group, shown, clicks, policy, name, matrix)
