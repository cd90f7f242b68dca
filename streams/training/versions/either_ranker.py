"""Weights of features, and leaves of trees beside them, as one ranker: one side is 0.

A training that chooses a kind goes on from a parent of either, and what it gives is of
either. So that all that looks at both sees parameters of one ranker, these have a place
for each side. Items have their features twice: as they were logged, which trees split,
and then as weights see them.
"""

from dataclasses import dataclass

import numpy as np

from models.arrays import Floats, Singles
from models.rankers.ranker import Scorer
from models.rankers.registry import LinearRanker
from models.training.query_chunk import ChunkSource, QueryChunk
from streams.training.gathering import Gathered
from streams.training.versions.forest_ranker import ForestRanker


@dataclass(frozen=True)
class Columns:
    """Queries by some columns of their features."""

    chunks: ChunkSource
    columns: slice

    def __len__(self) -> int:
        return len(self.chunks)

    def __getitem__(self, number: int, /) -> QueryChunk:
        chunk = self.chunks[number]
        return chunk._replace(features=_columns(chunk.features, self.columns))


@dataclass(frozen=True)
class Side:
    """What was gathered, as one kind sees it."""

    gathered: Gathered
    columns: slice

    def chunks(self, least_support: float) -> tuple[Columns, Columns]:
        """As `Gathered.chunks`."""
        training, held_out = self.gathered.chunks(least_support)
        return Columns(training, self.columns), Columns(held_out, self.columns)

    def judging_losses(self, least_support: float) -> Columns:
        """As `Gathered.judging_losses`."""
        return Columns(self.gathered.judging_losses(least_support), self.columns)


class EitherRanker:
    """What scores items by weights [n_features], or by leaves [n_leaves] after them.

    Parameters
    ----------
    n_features
        Of an item; each is there twice.
    forest
        Whose leaves they are.
    """

    def __init__(self, n_features: int, forest: ForestRanker) -> None:
        self._n_features = n_features
        self._linear = LinearRanker(n_features)
        self._forest = forest

    @property
    def n_parameters(self) -> int:
        """Of both sides."""
        return self._n_features + self._forest.n_parameters

    @property
    def proportional(self) -> slice:
        """All of them."""
        return slice(None)

    def item_scores(self, parameters: Floats, features: Singles) -> Floats:
        """Scores of items, [n_items], as `models.rankers.ranker.Scorer` says.

        `parameters` [n_parameters]; `features` [n_items, 2 n_features].
        """
        ranker, own = self.side(parameters)
        is_trees = ranker is self._forest
        columns = columns_of(self._n_features, is_trees=is_trees)
        return ranker.item_scores(own, _columns(features, columns))

    def side(self, parameters: Floats) -> tuple[Scorer, Floats]:
        """The ranker of the side that is not 0, and its parameters.

        Where both are 0 it is that of weights; `parameters` [n_parameters].
        """
        weights, leaves = self._sides(parameters)
        return (self._forest, leaves) if leaves.any() else (self._linear, weights)

    def has_way(self, first: Floats, second: Floats) -> bool:
        """Whether all that lies between is of one side.

        Parameters
        ----------
        first, second : [n_parameters]
        """
        weights, leaves = self._sides(np.abs(first) + np.abs(second))
        return not (weights.any() and leaves.any())

    def _sides(self, parameters: Floats) -> tuple[Floats, Floats]:
        return parameters[: self._n_features], parameters[self._n_features :]


def columns_of(n_features: int, *, is_trees: bool) -> slice:
    """Where the features of a side stand."""
    return slice(0, n_features) if is_trees else slice(n_features, 2 * n_features)


def _columns(features: Singles, columns: slice) -> Singles:
    return np.ascontiguousarray(features[:, columns])
