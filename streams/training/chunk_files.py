"""Queries with features and sums in a file, read back chunk by chunk.

Where chunks end depends on the queries alone: the order in which a training takes them
follows from chunks, and must not depend on the machine.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.arrays import Floats, Integers, Singles
from models.training.query_chunk import QueryChunk
from streams.statistics.value_spool import NamelessFile
from streams.training.item_tables import (
    N_SPLITS,
    N_TABLES,
    SELECTED_ON,
    TRAINED_ON,
    ItemTables,
)

CHUNK_BYTES = 16 << 20
"""Of features; a query that has more is a chunk of its own."""


class StoredQueries(NamedTuple):
    """A chunk without its features.

    Parameters
    ----------
    offsets : [n_queries + 1]
        See `QueryChunk`.
    tables : [n_tables, n_splits, n_items]
        See `streams.training.item_tables`.
    n_impressions : [n_queries, n_splits]
        Lists of each query.
    """

    offsets: Integers
    tables: Floats
    n_impressions: Integers


class _Place(NamedTuple):
    start: int
    n_queries: int
    n_items: int


class ChunkFile:
    """Queries in the order in which they came.

    Parameters
    ----------
    n_features
        Of each item.
    how
        Makes values of tables.
    chunk_bytes
        Of features, after which a chunk ends.
    """

    def __init__(
        self, n_features: int, how: ItemTables, chunk_bytes: int = CHUNK_BYTES
    ) -> None:
        self.how = how
        self._n_features = n_features
        self._most_items = max(chunk_bytes // (4 * n_features), 1)
        self._waiting: list[tuple[Singles, Floats, Integers]] = []
        self._n_waiting = 0
        self._places: list[_Place] = []
        self._file = NamelessFile("trained from")
        self.n_queries = 0
        self.n_items = 0
        self.n_impressions = np.zeros(N_SPLITS, np.int64)
        """Lists of all queries, by split."""
        self.largest_support = 0.0
        """Of an item, in the training groups."""

    def __len__(self) -> int:
        """Chunks."""
        return len(self._places)

    def add(self, features: Singles, tables: Floats, n_impressions: Integers) -> None:
        """Keep a query.

        Parameters
        ----------
        features : [n_items, n_features]
            Normalised.
        tables : [n_tables, n_splits, n_items]
            See `streams.training.item_tables`.
        n_impressions : [n_splits]
            Lists of the query.

        Raises
        ------
        RuntimeError
            Where the folder for temporary files is full.
        """
        if self._waiting and self._n_waiting + len(features) > self._most_items:
            self.settle()
        self._waiting.append((features, tables, n_impressions))
        self._n_waiting += len(features)
        self.n_queries += 1
        self.n_items += len(features)
        self.n_impressions += n_impressions
        support = np.nan_to_num(self.how.support(tables[:, TRAINED_ON]))
        self.largest_support = max(self.largest_support, float(support.max(initial=0)))

    def settle(self) -> None:
        """Write what waits, as a chunk of its own."""
        if not self._waiting:
            return
        features, tables, n_impressions = zip(*self._waiting, strict=True)
        offsets = np.cumsum([0, *(len(each) for each in features)])
        place = _Place(self._file.size, len(features), int(offsets[-1]))
        parts = (
            offsets,
            np.stack(n_impressions),
            np.concatenate(tables, axis=2),
            *(np.ascontiguousarray(each, np.float32) for each in features),
        )
        for part in parts:
            self._file.append(np.ascontiguousarray(part).tobytes())
        self._places.append(place)
        self._waiting, self._n_waiting = [], 0

    def stored(self, number: int) -> StoredQueries:
        """A chunk without its features."""
        place = self._places[number]
        n, n_items, at = place.n_queries, place.n_items, place.start
        offsets = np.empty(n + 1, np.int64)
        n_impressions = np.empty((n, N_SPLITS), np.int64)
        tables = np.empty((N_TABLES, N_SPLITS, n_items))
        for part in (offsets, n_impressions, tables):
            self._file.fill(at, part)
            at += part.nbytes
        return StoredQueries(offsets, tables, n_impressions)

    def features(self, number: int) -> Singles:
        """Features of a chunk, [n_items, n_features]."""
        place = self._places[number]
        n_before = 1 + (1 + N_SPLITS) * place.n_queries
        n_before += N_TABLES * N_SPLITS * place.n_items
        features = np.empty((place.n_items, self._n_features), np.float32)
        self._file.fill(place.start + 8 * n_before, features)
        return features


class TrainingChunks:
    """Values of the training groups, as `models.training` reads them.

    Parameters
    ----------
    file
        Its queries.
    n_impressions
        Lists of the training groups, of all queries of both sides.
    least_support
        Items with less leave the pairs.
    is_raised
        Whether averages are raised to a least one; see `ItemTables.raised`.
    """

    def __init__(
        self,
        file: ChunkFile,
        n_impressions: int,
        least_support: float,
        *,
        is_raised: bool = True,
    ) -> None:
        self._file = file
        self._n_impressions = n_impressions
        self._least_support = least_support
        self._is_raised = is_raised

    def __len__(self) -> int:
        return len(self._file)

    def __getitem__(self, number: int, /) -> QueryChunk:
        stored = self._file.stored(number)
        own, how = stored.tables[:, TRAINED_ON], self._file.how
        values = (
            how.raised(own, self._n_impressions) if self._is_raised else how.values(own)
        )
        total = self._file.n_impressions[TRAINED_ON]
        return _chunk(
            stored.offsets,
            self._file.features(number),
            values,
            is_supported(how.support(own), self._least_support),
            stored.n_impressions[:, TRAINED_ON] / total,
        )


class SelectionChunks:
    """Values of the selection groups, which a policy is judged by.

    Parameters
    ----------
    split
        Other groups, in their place.
    """

    def __init__(
        self,
        files: tuple[ChunkFile, ...],
        least_support: float,
        split: int = SELECTED_ON,
    ) -> None:
        self._places = [(file, i) for file in files for i in range(len(file))]
        self._total = sum(int(file.n_impressions[split]) for file in files)
        self._least_support, self._split = least_support, split

    @property
    def n_impressions(self) -> int:
        """Lists of these groups."""
        return self._total

    def __len__(self) -> int:
        return len(self._places)

    def __getitem__(self, number: int, /) -> QueryChunk:
        file, place = self._places[number]
        stored = file.stored(place)
        own = stored.tables[:, self._split]
        return _chunk(
            stored.offsets,
            file.features(place),
            file.how.values(own),
            is_supported(file.how.support(own), self._least_support),
            stored.n_impressions[:, self._split] / self._total,
        )


def is_supported(support: Floats, least: float) -> npt.NDArray[np.bool_]:
    """Items whose value tells anything; without `support` [n_items] none does."""
    return np.asarray((support >= least) & (support > 0.0))


def _chunk(
    offsets: Integers,
    features: Singles,
    values: Floats,
    is_kept: npt.NDArray[np.bool_],
    weights: Floats,
) -> QueryChunk:
    is_kept = is_kept & np.isfinite(values)
    return QueryChunk(
        offsets, features, np.where(is_kept, values, 0.0), is_kept, weights
    )
