"""What a training reads, brought together: sums of items beside their features."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from models.arrays import Singles
from models.counts.fixed_point import Int64
from models.estimators.splits import Splits
from models.training.query_chunk import ChunkSource
from rankstream.ranking.checked_weights import CheckedWeights
from rankstream.ranking.scoring import normalised, shifted
from rankstream.wire.models.training import FeaturesUsed, Sizes
from streams.statistics.columns import Columns
from streams.training.chunk_files import (
    CHUNK_BYTES,
    ChunkFile,
    SelectionChunks,
    TrainingChunks,
    is_supported,
)
from streams.training.feature_records import (
    FeatureRecords,
    FeaturesDigest,
    FeaturesRefused,
    QueryFeatures,
)
from streams.training.item_tables import (
    TRAINED_ON,
    ItemTables,
    QueryTables,
    query_tables,
)

QUERIES_AT_ONCE = 1_000
"""After so many it is told how far reading is."""


class Gathers(Protocol):
    """Queries that a ranker is trained on, as `Gathered` has them."""

    def chunks(self, least_support: float, /) -> tuple[ChunkSource, ChunkSource]:
        """To learn from, and held out."""

    def judging_losses(self, least_support: float, /) -> ChunkSource:
        """Those that choose."""


class Scaling(NamedTuple):
    """How a model brings features to one scale.

    Parameters
    ----------
    is_beside
        Whether features as they were logged stand before those.
    """

    weights: CheckedWeights
    normalisation: str
    is_beside: bool = False

    @property
    def n_sides(self) -> int:
        """How often each feature is there."""
        return 1 + self.is_beside

    def of(self, query: str, features: Singles) -> Singles:
        """Features of a query as the model sees them, [n_items, n_sides n_features].

        Parameters
        ----------
        features : [n_items, n_features]
            As they were logged.

        Raises
        ------
        FeaturesRefused
            Where one is not finite.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # the check is below
            moved = shifted(features, self.weights.shift, self.weights.scale)
            scaled = normalised(moved, self.normalisation)
        if not np.isfinite(scaled).all():
            raise FeaturesRefused(
                f"features must be finite, once they are shifted and normalised; those "
                f"of query {query!r:.100} are not: correct what the service logs, and "
                "count it in a new namespace"
            )
        return np.hstack([features, scaled]) if self.is_beside else scaled


class Gathered:
    """Queries with features: those that are learned from, and those held out.

    Parameters
    ----------
    scaling
        Of the parent.
    features
        Of the model's list.
    splits
        Which queries are held out.
    how
        Values are made.
    """

    def __init__(
        self,
        scaling: Scaling,
        features: FeatureRecords,
        splits: Splits,
        how: ItemTables,
    ) -> None:
        self._how = how
        self._scaling = scaling
        self._features = features
        self._splits = splits
        self._digest = FeaturesDigest(features.n_partitions)
        # A chunk has the same queries, however often each feature is there.
        n_columns = scaling.n_sides * features.n_features
        n_bytes = scaling.n_sides * CHUNK_BYTES
        self.training = ChunkFile(n_columns, how, n_bytes)
        self.held_out = ChunkFile(n_columns, how, n_bytes)
        self.n_queries = 0
        self.n_without_features = 0
        self._n_impressions = 0
        self.n_left_out = 0

    def take(
        self, chunks: Iterable[Columns], on_queries: Callable[[int], object]
    ) -> None:
        """Read all columns.

        Parameters
        ----------
        on_queries
            Is told how many queries were read, now and then; what it raises ends
            reading.

        Raises
        ------
        FeaturesRefused
        """
        for found in self._how.gatherer().of(chunks):
            self.n_left_out += found.n_left_out
            for query in query_tables(self._how, found):
                self._take(query)
                if self.n_queries % QUERIES_AT_ONCE == 0:
                    on_queries(self.n_queries)
        self.training.settle()
        self.held_out.settle()
        on_queries(self.n_queries)

    def _take(self, query: QueryTables) -> None:
        self.n_queries += 1
        self._n_impressions += int(query.n_impressions[TRAINED_ON])
        found = self._features.of(query.query, query.sets)
        if found is None:
            self.n_without_features += 1
            return
        self._digest.take(query.query, found.digests)
        is_held_out = self._splits.is_held_out(query.query)
        file = self.held_out if is_held_out else self.training
        scaled = self._scaling.of(query.query, found.features)
        tables = query.tables
        if found.items != query.items:
            tables = tables[:, :, _places(query, found)]
        file.add(scaled, tables, query.n_impressions)

    def features_used(self) -> list[FeaturesUsed]:
        """Which records of features were read, by partition."""
        return self._digest.used()

    def chunks(self, least_support: float) -> tuple[TrainingChunks, TrainingChunks]:
        """Values of the training groups: of queries to learn from, and held out."""
        n = self._n_impressions
        return (
            TrainingChunks(self.training, n, least_support),
            TrainingChunks(self.held_out, n, least_support),
        )

    def judging_losses(self, least_support: float) -> TrainingChunks:
        """Values of the training groups of queries held out, none of them raised."""
        n = self._n_impressions
        return TrainingChunks(self.held_out, n, least_support, is_raised=False)

    def judged(self, least_support: float) -> SelectionChunks:
        """Values of the selection groups, of all queries."""
        return SelectionChunks((self.training, self.held_out), least_support)

    def shown(self) -> SelectionChunks:
        """All queries as they weigh in the reward, whatever is known of items.

        By lists of the training groups where none of the selection groups may judge.
        """
        files = (self.training, self.held_out)
        judging = SelectionChunks(files, 0.0)
        if judging.n_impressions:
            return judging
        return SelectionChunks(files, 0.0, TRAINED_ON)

    def sizes(self, least_support: float) -> Sizes:
        """How much there is."""
        n_below, below, clicked = 0, 0.0, 0.0
        for file in (self.training, self.held_out):
            for number in range(len(file)):
                own = file.stored(number).tables[:, TRAINED_ON]
                is_below = ~is_supported(self._how.support(own), least_support)
                of_items = self._how.clicked(own)
                n_below += int(is_below.sum())
                clicked += float(of_items.sum())
                below += float(of_items[is_below].sum())
        return Sizes(
            n_queries=self.training.n_queries,
            n_held_out=self.held_out.n_queries,
            n_items=self.training.n_items + self.held_out.n_items,
            n_below=n_below,
            share_below=below / clicked if clicked else 0.0,
            n_without_features=self.n_without_features,
            n_left_out=self.n_left_out,
            n_clicks=round(clicked),
        )


def _places(query: QueryTables, found: QueryFeatures) -> Int64:
    """Where items with features stand among those that were counted.

    Each does: its set is one of a scope that was counted, and named by its items.
    """
    number = {item: i for i, item in enumerate(query.items)}
    return np.array([number[item] for item in found.items], np.int64)
