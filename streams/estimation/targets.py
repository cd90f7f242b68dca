"""Policies that are to be valued: where they would put the items of a candidate set."""

from collections.abc import Container, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from models.arrays import Floats, Singles
from rankstream.ranking.checked_weights import checked_weights
from rankstream.wire.envelope import Snapshot
from streams.native.placing import placements_of_scores
from streams.training.feature_records import FeatureRecords
from streams.training.gathering import Scaling


class Candidates(NamedTuple):
    """A candidate set of a query.

    Parameters
    ----------
    query
        Its id.
    name
        Of the set.
    is_growing
        Whether lists named no candidates: other items could have been shown too.
    items : [n_items]
        Ids.
    n_ranks
        Ranks that lists of it have.
    of_query
        Ids that some set of the query has. Others are new: no list could show them.
        None: those of other sets are not known, and whatever is not among `items`
        was not to be had.
    """

    query: str
    name: bytes
    is_growing: bool
    items: Sequence[str]
    n_ranks: int
    of_query: Container[str] | None = None


class Placed(NamedTuple):
    """Where a policy puts items.

    Parameters
    ----------
    items : [n_items, n_ranks]
        P(item at rank).
    absent : [n_ranks]
        P(what is none of the items at rank).
    """

    items: Floats
    absent: Floats


class Target(Protocol):
    """A policy that is to be valued."""

    def placed(self, candidates: Candidates) -> Placed | None:
        """Where it puts them; None where it says nothing of them.

        Raises
        ------
        ValueError
            Where what it is made of is spoilt.
        """


class QueryRanking(NamedTuple):
    """What a policy does with one query.

    Parameters
    ----------
    items : [n]
        Ids, the first one first.
    scores : [n]
        Of Plackett-Luce, over the temperature; None where the order is sure.
    """

    items: tuple[str, ...]
    scores: Floats | None = None


class RankingTarget:
    """Rankings by query, or scores of which lists are drawn.

    Of a closed set it ranks those items that the set has, and those that no set of the
    query has, which nobody could see. Of lists without candidates it ranks all that it
    names.
    """

    def __init__(self, rankings: Mapping[str, QueryRanking]) -> None:
        self._rankings = rankings

    @property
    def queries(self) -> list[str]:
        """Ids of the queries that it ranks."""
        return [*self._rankings]

    def items_of(self, query: str) -> tuple[str, ...]:
        """Ids that it ranks of a query; none of a query that it does not rank."""
        ranking = self._rankings.get(query)
        return () if ranking is None else ranking.items

    def placed(self, candidates: Candidates) -> Placed | None:
        """See `Target`."""
        ranking = self._rankings.get(candidates.query)
        if ranking is None:
            return None
        number = {item: i for i, item in enumerate(candidates.items)}
        places = np.array([number.get(item, -1) for item in ranking.items], np.int64)
        is_there = places >= 0
        if candidates.is_growing:
            is_there[:] = True
        elif candidates.of_query is not None and is_there.any():
            is_there |= [item not in candidates.of_query for item in ranking.items]
        kept = np.flatnonzero(is_there)
        n_ranks = min(candidates.n_ranks, len(kept))
        if not n_ranks:
            return None
        scores = None if ranking.scores is None else ranking.scores[kept]
        return _placed(scores, places[kept], len(candidates.items), n_ranks)


class SnapshotTarget:
    """A snapshot that ranks candidates by the features that were logged of them.

    Parameters
    ----------
    features
        Of the snapshot's list.
    temperature
        What scores are divided by; 0 where the best always goes first.

    Raises
    ------
    SnapshotError
        Where its weights cannot be used.
    """

    def __init__(
        self, snapshot: Snapshot, features: FeatureRecords, temperature: float = 1.0
    ) -> None:
        weights = checked_weights(snapshot, None)
        self._scaling = Scaling(weights, snapshot.normalisation)
        self._snapshot = snapshot
        self._features = features
        self._temperature = temperature

    def placed(self, candidates: Candidates) -> Placed | None:
        """See `Target`; None where no features were logged of the set.

        Raises
        ------
        FeaturesRefused
        """
        found = self._scored(candidates)
        if found is None:
            return None
        places, scores = found
        n_ranks = min(candidates.n_ranks, len(places))
        if not self._temperature:
            places = places[np.argsort(-scores, kind="stable")]
            return _placed(None, places, len(candidates.items), n_ranks)
        scores /= self._temperature
        return _placed(scores, places, len(candidates.items), n_ranks)

    def scores(self, candidates: Candidates) -> Floats | None:
        """Scores of the items, [n_items], before any temperature; errors as `placed`.

        None where no features were logged of the set.
        """
        found = self._scored(candidates)
        if found is None:
            return None
        places, scores = found
        ordered = np.empty(len(places))
        ordered[places] = scores
        return ordered

    def _scored(self, candidates: Candidates) -> tuple[np.ndarray, Floats] | None:
        """Numbers of the items, and the score of each."""
        if candidates.is_growing:
            return None
        found = self._features.of(candidates.query, [candidates.name])
        if found is None:
            return None
        number = {item: i for i, item in enumerate(candidates.items)}
        places = np.array([number[item] for item in found.items], np.int64)
        scores = self._of_features(candidates.query, found.features)
        return places, scores.astype(np.float64)

    def _of_features(self, query: str, features: Singles) -> Singles:
        scaled = self._scaling.of(query, features)
        return self._scaling.weights.scores(scaled, self._snapshot)


def _placed(
    scores: Floats | None, places: np.ndarray, n_items: int, n_ranks: int
) -> Placed:
    """Placements of what stands at `places`, -1 for what is no candidate."""
    if scores is None:
        own = np.eye(len(places), n_ranks)
    else:
        own = placements_of_scores(scores[None, :], n_ranks)[0]
    is_there = places >= 0
    table = np.zeros((n_items, n_ranks))
    table[places[is_there]] = own[is_there]
    return Placed(table, own[~is_there].sum(axis=0))
