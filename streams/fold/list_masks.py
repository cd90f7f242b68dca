"""Counts of (shown list, clicked ranks) per cell, at most a number of each."""

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from models.counts.count_kernel import Batch
from models.counts.count_tables import N_GROUPS
from streams.fold import statistics_keys as keys
from streams.fold.statistics_places import Scope

ListMask = tuple[bytes, bytes]
"""Item numbers as int32, and the clicked ranks as bits, rank 1 the lowest."""


class ListMasks:
    """The optional part (f) of statistics; with `limit` 0 nothing is counted.

    A cell takes the first `limit` distinct pairs of list and mask; impressions
    with others are counted in `n_dropped`.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.n_dropped = 0
        self._cells: dict[int, dict[ListMask, int]] = {}
        self._changed: dict[int, None] = {}
        self._tombstones: dict[bytes, None] = {}

    def count(
        self, batch: Batch, scopes: NDArray[np.int32], is_capped: NDArray[np.bool_]
    ) -> None:
        """Count a batch; `scopes` and `is_capped` [n] are those of its impressions."""
        masks: dict[int, int] = {}
        for owner, rank in zip(
            batch.click_owners.tolist(), batch.click_ranks.tolist(), strict=True
        ):
            masks[owner] = masks.get(owner, 0) | 1 << (rank - 1)
        starts = batch.starts.tolist()
        for i in np.flatnonzero(~is_capped).tolist():
            items = batch.items[starts[i] : starts[i + 1]].astype(np.int32)
            if batch.map_starts[i] >= 0:
                items = batch.maps[batch.map_starts[i] + items]
            n_bytes = (len(items) + 7) // 8
            mask = masks.get(i, 0).to_bytes(n_bytes, "little")
            slot = int(scopes[i]) * N_GROUPS + int(batch.groups[i])
            self._add(slot, (items.tobytes(), mask))

    def changes(
        self, scopes: Mapping[int, Scope]
    ) -> Iterator[tuple[bytes, bytes | None]]:
        """Keys and values of what changed since the last call."""
        yield from self._tombstones.items()
        self._tombstones.clear()
        for slot in self._changed:
            rows = [[*pair, n] for pair, n in self._cells[slot].items()]
            yield _key(scopes, slot), keys.encode([keys.SCHEMA, rows])
        self._changed.clear()

    def remove(self, slot: int, scopes: Mapping[int, Scope]) -> None:
        """Remove what is kept of a cell."""
        if self._cells.pop(slot, None) is not None:
            self._changed.pop(slot, None)
            self._tombstones[_key(scopes, slot)] = None

    def restore(self, slot: int, value: bytes) -> None:
        """Take back the value of a cell."""
        (rows,) = keys.checked(keys.decode(value))
        self._cells[slot] = {(shown, mask): n for shown, mask, n in rows}

    def _add(self, slot: int, pair: ListMask) -> None:
        counts = self._cells.setdefault(slot, {})
        if pair not in counts and len(counts) >= self.limit:
            self.n_dropped += 1
            return
        counts[pair] = counts.get(pair, 0) + 1
        self._changed[slot] = None


def _key(scopes: Mapping[int, Scope], slot: int) -> bytes:
    scope, group = divmod(slot, N_GROUPS)
    owner = scopes[scope]
    parts = (owner.query, owner.candidate_set.name, owner.intervention)
    return keys.prefix("masks", *parts) + bytes((group,))
