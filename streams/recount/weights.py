"""What corrects clicks for position, a second time: from scopes in plain dictionaries.

    weight of a click = impressions / sum of alpha     (clicks - sum of beta) / alpha

Sums are over everything that a query's scopes expected to show.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from streams.recount.query_counts import matrix_of_row
from streams.recount.scopes import CAPPED, CONVERTED, Cell, Place, ScopeKey, Scopes

LEAST_CERTAIN = 1e-6
"""Of a placement: what is less likely may be rounded."""

RELATIVE = 1e-10
ROUNDED = 2.0**-31
"""By how much fixed point may be off, each time that it is added."""

CURVES: dict[str, tuple[Sequence[float], Sequence[float]]] = {
    "1 / rank": ([1 / rank for rank in range(1, 11)], [0.0] * 10),
    "trust bias": ([0.35, 0.53, 0.55, 0.54, 0.52], [0.65, 0.26, 0.15, 0.11, 0.08]),
}
"""alpha and beta by rank; what is counted must do for any."""


class ItemWeights(NamedTuple):
    """Of an item of a query.

    Parameters
    ----------
    impressions, clicked
        Of candidate sets that have it; clicks at ranks of the curve.
    alpha, beta
        Sums of their expectations.
    slack
        By how much each of the two may be off.
    """

    impressions: int
    clicked: int
    alpha: float
    beta: float
    slack: float = 0.0

    def fields(self) -> dict[str, float]:
        """All that is compared; no weight where nothing was expected."""
        named = dict(zip(self._fields[:4], self[:4], strict=True))
        if self.alpha > 0:
            named["weight"] = self.impressions / self.alpha
            named["value"] = (self.clicked - self.beta) / self.alpha
        return named


def weights_of(scopes: Scopes, curve: str) -> dict[str, ItemWeights]:
    """Sums of each item, of cells all of whose lists have known policies."""
    alpha, beta = CURVES[curve]
    found: dict[str, ItemWeights] = {}
    for key, scope in scopes.items():
        if scope.flags & (CAPPED | CONVERTED):
            continue
        for cell in scope.cells.values():
            if cell.totals.get("without_exposure"):
                continue
            for item, one in _of_cell(key, cell, alpha, beta).items():
                before = found.get(item, ItemWeights(0, 0, 0.0, 0.0))
                both = zip(before, one, strict=True)
                found[item] = ItemWeights(*(a + b for a, b in both))  # type: ignore[arg-type]
    return found


def _of_cell(
    key: ScopeKey, cell: Cell, alpha: Sequence[float], beta: Sequence[float]
) -> dict[str, ItemWeights]:
    impressions: dict[str, int] = {}
    clicked: dict[str, int] = {}
    for (item, rank), counts in cell.pairs.items():
        impressions[item] = impressions.get(item, 0) + counts[0]
        clicked[item] = clicked.get(item, 0) + counts[1] * (rank <= len(alpha))
    if isinstance(key.candidate_set, tuple):
        impressions = dict.fromkeys(key.candidate_set, cell.totals["impressions"])
    sums: dict[str, tuple[list[float], list[float], list[float]]] = {
        item: ([], [], []) for item in impressions
    }
    expected, loose = expected_of(key, cell)
    for (item, rank), times in expected.items():
        if rank <= len(alpha):
            sums[item][0].append(alpha[rank - 1] * times)
            sums[item][1].append(beta[rank - 1] * times)
            n_loose = loose.get((item, rank), 0)
            slack = n_loose * ROUNDED + 1e-9 * (n_loose > 0)
            sums[item][2].append(slack)
    return {
        item: ItemWeights(n, clicked.get(item, 0), *map(math.fsum, sums[item]))
        for item, n in impressions.items()
    }


def expected_of(
    key: ScopeKey, cell: Cell
) -> tuple[dict[Place, float], dict[Place, int]]:
    """How often each item was expected at each rank, and how often not exactly."""
    expected, loose = dict(cell.expected), dict(cell.loose)
    for row, count in cell.rows.items():
        items = row[3] or key.candidate_set
        matrix = matrix_of_row(row, len(items))
        for number, rank in np.argwhere(matrix > 0).tolist():
            place = str(items[number]), rank + 1
            probability = float(matrix[number, rank])
            expected[place] = expected.get(place, 0.0) + count * probability
            if probability < LEAST_CERTAIN:
                loose[place] = loose.get(place, 0) + count
    return expected, loose
