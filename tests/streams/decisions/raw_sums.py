"""Sums of X by the definition: list by list, over raw impressions."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from models.counts.definition import ClosedImpression, placement_of
from models.estimators.bias_curve import BiasCurve
from models.estimators.splits import Splits

CURVE = BiasCurve(np.array([0.9, 0.5, 0.3, 0.2]), np.zeros(4))
SHORT = BiasCurve(np.array([0.9, 0.5]), np.array([0.05, 0.02]))
TRUST = BiasCurve(np.array([0.7, 0.5, 0.3, 0.2]), np.array([0.2, 0.1, 0.06, 0.01]))
SPLITS = Splits(4, (0, 1), (), (2, 3), 0.0)


class Sums(NamedTuple):
    """Of a group under one policy; as `models.evaluation.differences` has them."""

    interactions: int
    length: int
    clicks: int
    gain: float
    loss: float
    largest: float
    total: float
    square: float
    click_square: float


def raw_sums(
    impressions: Iterable[ClosedImpression],
    n_items: int,
    curve: BiasCurve,
    difference: Sequence[float],
) -> tuple[dict[tuple[int, tuple[float, ...]], Sums], int]:
    """Sums by group and propensities, and how many lists no rho explains.

    `difference` [n_items] is lambda_1 - lambda_2.
    """
    of_rows: dict[tuple[int, tuple[float, ...]], list[tuple[float, ...]]] = defaultdict(
        list
    )
    facts = {}
    unsupported = 0
    for one in impressions:
        placement = placement_of(one, n_items, is_growing=False)
        assert placement is not None
        n_ranks = min(placement.shape[1], curve.n_ranks)
        rho = placement[:, :n_ranks] @ curve.alpha[:n_ranks]
        anyway = placement[:, :n_ranks] @ curve.beta[:n_ranks]
        if any(x != 0.0 and r <= 0.0 for x, r in zip(difference, rho, strict=True)):
            unsupported += 1
            continue
        w = [x / r if r > 0 else 0.0 for x, r in zip(difference, rho, strict=True)]
        constant = sum(x * b for x, b in zip(w, anyway, strict=True))
        ranks = {rank for rank in one.clicks.get(0, ()) if 0 < rank <= len(one.shown)}
        clicked = [one.shown[rank - 1] for rank in ranks if rank <= curve.n_ranks]
        x = sum(w[item] for item in clicked) - constant
        key = one.group, tuple(np.round(rho, 9).tolist())
        of_rows[key].append((x, len(clicked), sum(w[item] ** 2 for item in clicked)))
        lists = [
            sum(w[item] for item in some)
            for k in range(n_ranks + 1)
            for some in combinations(range(n_items), k)
        ]
        gain, loss = max(lists) - constant, constant - min(lists)
        facts[key] = n_ranks, gain, loss, max(map(abs, w))
    return {
        key: Sums(
            len(rows),
            facts[key][0],
            sum(int(row[1]) for row in rows),
            *facts[key][1:],
            sum(row[0] for row in rows),
            sum(row[0] ** 2 for row in rows),
            sum(row[2] for row in rows),
        )
        for key, rows in of_rows.items()
    }, unsupported
