"""The topic `statistics` as its readers see it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.counts.cells import CellSummary, decode_cell, merge, totals_of
from models.counts.count_tables import EXPOSURE_ONE
from models.counts.exposure_overflow import tail_shuffle_matrix
from rankstream.wire.events import (
    DETERMINISTIC,
    PLACKETT_LUCE,
    TAIL_SHUFFLE,
    decode_items,
)
from rankstream.wire.exposures import unpack_exposures
from streams.fold import statistics_keys as keys
from streams.fold.native.placing import placements_of_scores
from streams.fold.statistics_keys import Row
from streams.state_pieces import Parts

Floats = NDArray[np.float64]


class CellName(NamedTuple):
    """Which cell: query, hash of the candidate set, intervention, group."""

    query: str
    candidate_set: bytes
    intervention: str
    group: int


class Statistics:
    """What lies in the topic, the last value of each key; decoded when asked for.

    Raises
    ------
    SchemaRefused
        Where another release wrote a value.
    """

    def __init__(self, items: Iterable[tuple[bytes, bytes | None]]) -> None:
        latest: dict[bytes, bytes] = {}
        for key, value in items:
            if value:
                latest[key] = value
            else:
                latest.pop(key, None)
        self._cells: dict[CellName, bytes] = {}
        self._sets: dict[tuple[str, bytes], bytes] = {}
        self._rows: dict[tuple[str, bytes, str, bytes], bytes] = {}
        self._items: dict[tuple[str, bytes], tuple[str, ...]] = {}
        for key, value in Parts().joined(latest).items():
            kind, *rest = _decode_key(key)
            keys.check_value(kind, key, value)
            if kind == "cell":
                self._cells[CellName(*rest)] = value
            elif kind == "set":
                self._sets[tuple(rest)] = value
            elif kind == "row":
                self._rows[tuple(rest)] = value

    def __len__(self) -> int:
        return len(self._cells)

    def queries(self) -> dict[str, tuple[int, int]]:
        """Impressions and clicks of each query."""
        counts: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for name, value in self._cells.items():
            totals = totals_of(value)
            counts[name.query][0] += int(totals[0])
            counts[name.query][1] += int(totals[2])
        return {query: (shown, clicked) for query, (shown, clicked) in counts.items()}

    def names(self, query: str | None = None) -> list[CellName]:
        """The cells, of one query or of all, sorted."""
        return sorted(n for n in self._cells if query is None or n.query == query)

    def items(self, query: str, candidate_set: bytes) -> tuple[str, ...]:
        """Ids of the items of a candidate set, by number."""
        place = (query, candidate_set)
        if place not in self._items:
            self._items[place] = tuple(keys.decode_set(self._sets[place]))
        return self._items[place]

    def cell(self, name: CellName) -> CellSummary:
        """A decoded cell."""
        items = self.items(name.query, name.candidate_set)
        return decode_cell(self._cells[name], items)

    def merged(self, query: str) -> dict[tuple[bytes, str], CellSummary]:
        """Cells of a query by candidate set and intervention, groups merged."""
        parts: dict[tuple[bytes, str], list[CellSummary]] = defaultdict(list)
        for name in self.names(query):
            parts[name.candidate_set, name.intervention].append(self.cell(name))
        return {place: merge(cells) for place, cells in parts.items()}

    def row(self, name: CellName, row: bytes) -> Row:
        """An exposure row of a cell, by its name."""
        return keys.decode_row(self._rows[*name[:3], row])

    def exposures(
        self, query: str, candidate_set: bytes, intervention: str, cell: CellSummary
    ) -> dict[tuple[str, int], float]:
        """Expected number of times that each item was shown at each rank.

        Impressions without known exposures add nothing.
        """
        name = CellName(query, candidate_set, intervention, 0)
        expected: dict[tuple[str, int], float] = defaultdict(float)
        for row_name, count in zip(cell.row_names, cell.row_counts, strict=True):
            row = self.row(name, row_name)
            items = self.items(query, candidate_set)
            if row.items:
                items = tuple(decode_items(row.items))
            matrix = placement_of(row, len(items))
            for item, rank in np.argwhere(matrix > 0).tolist():
                expected[items[item], rank + 1] += int(count) * matrix[item, rank]
        for item, rank, summed in zip(
            cell.column("item"),
            cell.column("rank"),
            cell.column("exposure"),
            strict=True,
        ):
            if summed:
                expected[cell.items[item], int(rank)] += int(summed) / EXPOSURE_ONE
        return dict(expected)


def summaries_of(
    items: Iterable[tuple[bytes, bytes | None]],
) -> Iterator[tuple[CellName, CellSummary]]:
    """Every cell that stands in records of the topic, sorted by name."""
    statistics = Statistics(items)
    for name in statistics.names():
        yield name, statistics.cell(name)


def placement_of(row: Row, n_items: int) -> Floats:
    """P(item at rank) of a stored row, axes items, ranks."""
    if row.policy == PLACKETT_LUCE:
        scores = np.frombuffer(row.material, "<f4").astype(np.float64)
        matrix: Floats = placements_of_scores(scores[None, :], row.n_ranks)[0]
        return matrix
    if row.policy == TAIL_SHUFFLE:
        first = np.frombuffer(row.material, "<u2").astype(np.int32)
        return tail_shuffle_matrix(first, n_items)
    if row.policy == DETERMINISTIC:
        matrix = np.zeros((n_items, row.n_ranks))
        matrix[np.frombuffer(row.material, "<u2"), np.arange(row.n_ranks)] = 1.0
        return matrix
    exposures = unpack_exposures(row.material, n_items, row.n_ranks)
    return exposures.astype(np.float64)


_decode_key = msgspec.msgpack.Decoder().decode
