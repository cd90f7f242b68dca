"""The fold of closed impressions into statistics that everything else reads.

What is counted, per (query, candidate set, intervention, group), is said in
`models.counts.count_kernel`; where it is stored in `streams.fold.statistics_keys`. The
result is a function of the impressions, their order, and the watermark's days;
when `flush`, `settle` or `changes` are called changes nothing.
"""

import struct
from collections.abc import Iterable, Mapping
from concurrent.futures import Executor, Future

import numpy as np

from models.counts.cells import row_names_of
from models.counts.count_kernel import Batch
from models.counts.count_tables import (
    CAPPED,
    N_CAPPED,
    N_CELLS,
    N_CLICK_PAIRS,
    N_CLIPPED,
    N_GROUPS,
    N_PAIRS,
    N_WITHOUT_EXPOSURE,
)
from models.counts.store import StatisticsStore
from rankstream.sections import LimitSettings
from rankstream.wire.topics import STATISTICS
from streams.fold import statistics_keys as keys
from streams.fold.closed_impressions import Closed, batches_of
from streams.fold.list_masks import ListMasks
from streams.fold.statistics_columns import columns_of, new_places
from streams.fold.statistics_places import Places
from streams.fold.statistics_settlement import Settlement
from streams.stage import Change
from streams.state_pieces import Parts

DAY_MS = 86_400_000
"""What was not shown for `keep_ms` leaves when the watermark enters a new day."""

FLUSH_IMPRESSIONS = 4_096
"""Impressions are counted in batches of at most this many."""


class StatisticsFold:
    """Statistics of one partition of the canonical log.

    Use it from one thread at a time. `settle` may run in another thread while
    this one does something else; it holds the interpreter's lock only between
    kernels.

    Parameters
    ----------
    beside
        Counts full batches while the log is read on.
    """

    topic = STATISTICS

    def __init__(
        self, limits: LimitSettings, keep_ms: int, beside: Executor | None = None
    ) -> None:
        self._limit = limits.exposure_rows
        self._keep_ms = keep_ms
        self._pending: list[Closed] = []
        self._n_pending = 0
        self._beside = beside
        self._counting: Future[None] | None = None
        self._store = StatisticsStore()
        self._places = Places(limits, self._store)
        self._settlement = Settlement(self._places, self._store)
        self._masks = ListMasks(0)
        self._parts = Parts()
        self._tombstones: dict[bytes, None] = {}
        self._n_taken = 0
        self._n_expired = 0
        self._day = -1
        self._next_day_ms = 0
        self._written_counts: tuple[int, ...] = (0,) * 7 + (-1,)

    def take(self, closed: Closed) -> None:
        """Take closed impressions, in closing order."""
        self._pending.append(closed)
        self._n_pending += len(closed)
        if self._n_pending >= FLUSH_IMPRESSIONS:
            if self._beside is None:
                self.flush()
            else:
                self._counting = self._beside.submit(self._count_all, self._taken())

    def advance(self, watermark_ms: int) -> None:
        """Hear of the watermark, after all that it closed was taken."""
        if watermark_ms < self._next_day_ms:
            return
        self._day = watermark_ms // DAY_MS
        self._next_day_ms = (self._day + 1) * DAY_MS
        self._expire(self._day * DAY_MS - self._keep_ms)

    def flush(self) -> None:
        """Count what was taken."""
        self._count_all(self._taken())

    def _taken(self) -> list[Closed]:
        """What waits to be counted, once all that came before it is."""
        if self._counting is not None:
            self._counting.result()
            self._counting = None
        pending, self._pending = self._pending, []
        self._n_pending = 0
        return pending

    def _count_all(self, pending: list[Closed]) -> None:
        for batch in batches_of(pending, FLUSH_IMPRESSIONS):
            self._n_taken += len(batch)
            self._places.trim()
            self._count(batch)

    def settle(self) -> None:
        """Compute the placement probabilities that counting has asked for."""
        self.flush()
        self._settlement.settle()

    def changes(self, _outcomes: Mapping[str, int] | None = None) -> list[Change]:
        """What changed since the last call, each key once."""
        self.settle()
        places = self._places
        changed: dict[bytes, bytes | None] = {**self._tombstones}
        self._tombstones.clear()
        changed.update(places.changes())
        scopes = places.scopes
        for slot, value in self._store.written():
            scope, group = divmod(slot, N_GROUPS)
            changed[scopes[scope].cell_prefix() + bytes((group,))] = value
        changed.update(self._masks.changes(scopes))
        counts = self._counts()
        if counts != self._written_counts:
            self._written_counts = counts
            changed[keys.COUNTS_KEY] = keys.encode([keys.SCHEMA, *counts])
        return self._as_records(changed)

    def restore(self, items: Iterable[Change]) -> None:
        """Take back what `changes` gave, into a fold that took nothing yet.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        """
        latest: dict[bytes, bytes] = {}
        for topic, key, value in items:
            if topic != STATISTICS:
                continue
            if value is None:
                latest.pop(key, None)
            else:
                latest[key] = value
        by_kind: dict[str, list[tuple[list[object], bytes]]] = {}
        for key, value in self._parts.joined(latest).items():
            kind, *rest = keys.decode(key)
            keys.check_value(kind, key, value)
            by_kind.setdefault(kind, []).append((rest, value))
        self._sets: dict[tuple[str, bytes], bytes] = {}
        self._restore_places(by_kind)
        self._restore_cells(by_kind.get("cell", []))
        for (query, name, intervention, group), value in by_kind.get("masks", []):
            scope = self._scope(query, name, intervention)
            self._masks.restore(scope * N_GROUPS + group, value)  # type: ignore[operator]
        del self._sets
        for _, value in by_kind.get("counts", []):
            self._restore_counts(keys.checked(keys.decode(value)))

    def fingerprint(self) -> bytes:
        """What two equal states share: how much was taken, and what it made."""
        self.flush()
        size = self._store.size
        return struct.pack(
            "<6q",
            self._n_taken,
            self._day,
            self._n_expired,
            size(N_CELLS),
            size(N_CAPPED),
            size(N_CLICK_PAIRS),
        )

    def counters(self) -> dict[str, int]:
        """Counts since the beginning of the log, and sizes."""
        self.flush()
        size = self._store.size
        return {
            "statistics_impressions": self._n_taken,
            "statistics_capped": size(N_CAPPED),
            "statistics_clipped": size(N_CLIPPED),
            "statistics_without_exposure": size(N_WITHOUT_EXPOSURE),
            "statistics_masks_dropped": self._masks.n_dropped,
            "statistics_expired": self._n_expired,
            "statistics_cells": size(N_CELLS),
            "statistics_pairs": size(N_PAIRS),
            "statistics_exposure_rows": len(self._places.rows),
            "statistics_waiting_placements": self._settlement.n_waiting,
        }

    def _counts(self) -> tuple[int, ...]:
        size = self._store.size
        return (
            self._n_taken,
            size(N_CAPPED),
            size(N_CLIPPED),
            size(N_WITHOUT_EXPOSURE),
            self._masks.n_dropped,
            self._n_expired,
            0,
            self._day,
        )

    def _restore_counts(self, counts: list[int]) -> None:
        self._written_counts = tuple(counts)
        sizes = self._store.tables.sizes
        self._n_taken, sizes[N_CAPPED], sizes[N_CLIPPED] = counts[:3]
        sizes[N_WITHOUT_EXPOSURE] = counts[3]
        self._masks.n_dropped, self._n_expired = counts[4:6]
        self._day = counts[7]
        self._next_day_ms = (self._day + 1) * DAY_MS

    def _restore_places(
        self, by_kind: dict[str, list[tuple[list[object], bytes]]]
    ) -> None:
        places = self._places
        for (query, name), value in by_kind.get("set", []):
            items = places.restore_set(query, name, value)  # type: ignore[arg-type]
            self._sets[query, name] = items  # type: ignore[index]
        self._named: dict[tuple[int, bytes], int] = {}
        rows = by_kind.get("row", [])
        places.make_room(len(rows))
        for (query, name, intervention, row), value in rows:
            scope = self._scope(query, name, intervention)
            place = places.add_row(scope, keys.decode_row(value))
            self._named[scope, row] = place  # type: ignore[index]

    def _scope(self, query: object, name: object, intervention: object) -> int:
        items = self._sets[query, name]  # type: ignore[index]
        return self._places.scope(query, items, intervention)  # type: ignore[arg-type]

    def _restore_cells(self, cells: list[tuple[list[object], bytes]]) -> None:
        named, slots, rows, values = self._named, [], [], []
        for (query, name, intervention, group), value in cells:
            scope = self._scope(query, name, intervention)
            slots.append(scope * N_GROUPS + group)  # type: ignore[operator]
            rows += [named[scope, row] for row in row_names_of(value)]
            values.append(value)
        del self._named
        if values:
            self._store.load(slots, rows, values)

    def _expire(self, before_ms: int) -> None:
        self.settle()
        slots, n_removed = self._store.expire(before_ms)
        self._n_expired += n_removed
        if not slots:
            return
        places = self._places
        places.forget_unrowed()
        for slot, key in zip(slots, places.cell_keys(iter(slots)), strict=True):
            self._tombstones[key] = None
            self._masks.remove(slot, places.scopes)
        unreferred = places.unreferred_rows()
        for place in unreferred:
            self._settlement.forget(place)
        places.remove_rows(unreferred)
        places.remove_empty_scopes({slot // N_GROUPS for slot in slots})

    def _as_records(self, changed: dict[bytes, bytes | None]) -> list[Change]:
        parts = self._parts
        records: list[Change] = []
        for key, value in changed.items():
            if parts.is_plain(key, value):
                records.append(Change(STATISTICS, key, value))
            else:
                records += [
                    Change(STATISTICS, *part) for part in parts.split(key, value)
                ]
        return records

    def _count(self, closed: Closed) -> None:
        places = self._places
        places.make_room(len(closed))
        columns, lists = columns_of(closed, places.table, N_GROUPS)
        places.add_all(new_places(closed, columns))
        map_starts, maps = places.maps_of(columns.places)
        batch = Batch(
            places=columns.places,
            groups=columns.groups,
            times_ms=columns.times_ms,
            starts=np.concatenate(([0], np.cumsum(columns.lengths))),
            map_starts=map_starts,
            maps=maps,
            **lists._asdict(),
        )
        self._settlement.add(self._store.count(batch, limit=self._limit))
        if self._masks.limit:
            tables = self._store.tables
            self._masks.count(
                batch,
                tables.place_scope[batch.places],
                tables.places[batch.places, 0] == CAPPED,
            )
