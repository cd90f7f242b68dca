"""Policies that are compared with those of single queries: what they would show.

Each is told as the expected weight of every item of every candidate set, and the groups
whose clicks it came from. None of these may be judged by.
"""

from collections.abc import Collection
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.decisions.tied_orders import TiedOrders, expected_weights, tied_orders
from rankstream.wire.envelope import Snapshot
from streams.decisions.closed_sets import CandidateSets
from streams.estimation.targets import Candidates, SnapshotTarget, Target
from streams.training.feature_records import FeatureRecords


class SureRanking(NamedTuple):
    """Orders of a policy that puts the best first, and shuffles equal scores.

    Parameters
    ----------
    orders
        Of each candidate set.
    weights : [n_items of all sets]
        Expected weight of each item; NaN, for all items of a set, where it says nothing
        of them.
    """

    orders: TiedOrders
    weights: Floats


class DeclaredPolicy(NamedTuple):
    """A policy for all queries.

    Parameters
    ----------
    weights : [n_items of all sets]
        Expected weight of each item; NaN, for all items of a set, where it says nothing
        of them. None for the policy that logged each list, whichever it was.
    groups
        Whose clicks it came from, its ancestors' included; empty where from none, None
        where that is not known.
    ranking
        What is served of it where a single set is left to it, whatever the temperature
        of its lists; None where that is not known.
    """

    weights: Floats | None
    groups: frozenset[int] | None = frozenset()
    ranking: SureRanking | None = None

    def refuse_fitted_on(self, selection: Collection[int]) -> None:
        """Refuse a policy that knows clicks which it is to be judged by.

        Parameters
        ----------
        selection
            Numbers of groups.

        Raises
        ------
        ValueError
        """
        if self.groups is None:
            raise ValueError(
                "a policy must tell whose clicks it came from to be judged by those of "
                "selection groups; this one does not: train it with `statistics.groups`"
                " split, or name the groups that it may learn from"
            )
        both = sorted(self.groups & {*selection})
        if both:
            raise ValueError(
                "a policy must not come from clicks that it is judged by; this one "
                f"knows those of selection groups {both[:5]}: take one that was "
                "trained on training groups alone"
            )


def snapshot_policy(
    snapshot: Snapshot,
    features: FeatureRecords,
    sets: CandidateSets,
    weights: Floats,
    temperature: float = 0.0,
) -> DeclaredPolicy:
    """What a snapshot would show, of sets whose features were logged.

    Parameters
    ----------
    features
        Of the snapshot's list.
    weights : [n_ranks]
        lambda by rank.
    temperature
        Of lists that are drawn by Plackett-Luce; at 0 the best goes first, and equal
        scores are shuffled.

    Raises
    ------
    SnapshotError
        Where its weights cannot be used.
    FeaturesRefused
        Where features are spoilt.
    """
    groups: frozenset[int] | None = frozenset(snapshot.groups)
    if snapshot.updates and not groups:
        groups = None
    target = SnapshotTarget(snapshot, features, temperature)
    ranking = _ranking(target, sets, weights)
    own = target_weights(target, sets, weights) if temperature else ranking.weights
    return DeclaredPolicy(own, groups, ranking)


def _ranking(
    target: SnapshotTarget, sets: CandidateSets, weights: Floats
) -> SureRanking:
    scores = np.full(int(sets.starts[-1]), np.nan)
    for number, asked in enumerate(_asked(sets, len(weights))):
        found = target.scores(asked)
        if found is not None:
            scores[sets.starts[number] : sets.starts[number + 1]] = found
    orders = tied_orders(scores, sets.starts)
    expected = expected_weights(orders, weights)
    return SureRanking(orders, np.where(np.isnan(scores), np.nan, expected))


def target_weights(target: Target, sets: CandidateSets, weights: Floats) -> Floats:
    """Expected weight of the items of all sets, [n_items of all sets].

    NaN where the policy says nothing of a set.

    Parameters
    ----------
    weights : [n_ranks]
        lambda by rank.

    Raises
    ------
    ValueError
        Where what the policy is made of is spoilt.
    """
    expected = np.full(int(sets.starts[-1]), np.nan)
    for number, asked in enumerate(_asked(sets, len(weights))):
        placed = target.placed(asked)
        if placed is not None:
            own = slice(int(sets.starts[number]), int(sets.starts[number + 1]))
            expected[own] = placed.items @ weights[: placed.items.shape[1]]
    return expected


def _asked(sets: CandidateSets, n_ranks: int) -> list[Candidates]:
    return [
        Candidates(query, name, False, items, min(n_ranks, len(items)))
        for query, name, items in zip(*sets[:3], strict=True)
    ]
