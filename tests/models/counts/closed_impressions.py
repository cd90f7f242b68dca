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


@st.composite
def impressions(draw: st.DrawFn) -> ClosedImpression:
    """A list of a few items, of any policy, with clicks of three classes."""
    n_shown = draw(st.integers(1, len(ITEMS)))
    shown = draw(st.permutations(range(len(ITEMS))))[:n_shown]
    ranks = st.lists(st.integers(1, n_shown), max_size=4)
    policies = (UNKNOWN, PLACKETT_LUCE, DETERMINISTIC, TAIL_SHUFFLE, LOGGED, MULTILEAVE)
    policy = draw(st.sampled_from(policies))
    clicks = {which: draw(ranks) for which in range(3)}
    group = draw(st.integers(0, 3))
    if policy not in (PLACKETT_LUCE, LOGGED):
        return ClosedImpression(group, shown, clicks, policy)
    number = draw(st.integers(0, N_ROWS - 1))
    name, matrix = row_name(policy, number), matrix_of(number)
    return ClosedImpression(group, shown, clicks, policy, name, matrix)
