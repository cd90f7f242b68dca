"""Exposure rows of `statistics` as matrices of P(item at rank)."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rankstream.wire.events import LOGGED, PLACKETT_LUCE, POLICIES, decode_items
from rankstream.wire.exposures import unpack_exposures
from streams.fold.native.placing import placements_of_scores
from streams.fold.statistics_keys import Row

Floats = NDArray[np.float64]


def placement_of(row: Row, n_items: int) -> Floats:
    """P(item at rank) of a stored row, axes items, ranks.

    `n_items` is the number of items that its material refers to.

    Raises
    ------
    ValueError
        If its policy is none that has rows.
    """
    if row.policy == PLACKETT_LUCE:
        scores = np.frombuffer(row.material, "<f4").astype(np.float64)
        matrix: Floats = placements_of_scores(scores[None, :], row.n_ranks)[0]
        return matrix
    if row.policy != LOGGED:
        raise ValueError(
            "policy of an exposure row must be plackett-luce or logged; got "
            f"{POLICIES[row.policy]}"
        )
    exposures = unpack_exposures(row.material, n_items, row.n_ranks)
    return exposures.astype(np.float64)


def placement_in_set(row: Row, items: Sequence[str]) -> Floats:
    """P(item at rank) of a stored row, [n_items, n_ranks], of `items` [n_items]."""
    if not row.items:
        return placement_of(row, len(items))
    own = decode_items(row.items)
    number = {item: i for i, item in enumerate(items)}
    matrix = np.zeros((len(items), row.n_ranks))
    for item, placed in zip(own, placement_of(row, len(own)), strict=True):
        if item in number:
            matrix[number[item]] = placed
    return matrix
