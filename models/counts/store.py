"""The tables of one partition: room for what comes, counting, writing, reading.

What is counted depends on the impressions only, never on how they are cut into
batches or on when cells are written.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from models.counts import count_tables as t
from models.counts.cell_codec import load_cells, write_cells, written_sizes
from models.counts.count_kernel import Batch, Later, count_batch
from models.counts.count_rows import add_inverses, index_pairs, slot_of
from models.counts.count_tables import Int32, Tables, empty_tables, enlarged
from models.counts.expiry import without_expired
from models.counts.exposure_overflow import Placements, add_exposures
from models.kernels.compilation import compiled

LARGEST_LOAD = 0.6
"""A hash table grows beyond this share of its slots."""

WRITE_BYTES = 1 << 22
"""Cells are written in pieces of about this size."""

SPREAD_PLACEMENTS = 1 << 16
"""Evicted rows are summed in pieces of about as many placements."""


class StatisticsStore:
    """Counts of all cells, with the rows of exposures that they refer to.

    Places and scopes are numbered by the caller; a place is an exposure row, or
    stands for impressions without one.
    """

    def __init__(self) -> None:
        self.tables: Tables = empty_tables()

    def size(self, which: int) -> int:
        """One of the sizes, `count_tables.N_...`."""
        return int(self.tables.sizes[which])

    def reserve_scope(self, scope: int) -> None:
        """Make room for the cells of a scope."""
        n_slots = (scope + 1) * t.N_GROUPS
        if n_slots > self.tables.cell_of.shape[0]:
            cell_of = enlarged(self.tables.cell_of, n_slots, fill=-1)
            self.tables = self.tables._replace(cell_of=cell_of)

    def set_places(self, new: Int32) -> None:
        """Say what places are; columns of `new` [n, 3]: place, its scope, its kind."""
        if not len(new):
            return
        n_places = int(new[:, 0].max()) + 1
        if n_places > self.tables.place_scope.shape[0]:
            self.tables = self.tables._replace(
                place_scope=enlarged(self.tables.place_scope, n_places),
                places=enlarged(self.tables.places, n_places),
                hashes=enlarged(self.tables.hashes, n_places),
            )
        tables = self.tables
        tables.place_scope[new[:, 0]] = new[:, 1]
        tables.places[new[:, 0], 0] = new[:, 2]
        tables.places[new[:, 0], 1] = 0

    def name_place(self, place: int, name: bytes) -> None:
        """Give an exposure row the 16-byte name under which cells refer to it."""
        self.tables.hashes[place] = np.frombuffer(name, np.uint8)

    def is_referred(self, places: Int32) -> NDArray[np.bool_]:
        """Whether some cell counts the exposure rows `places` [n]."""
        referred: NDArray[np.bool_] = self.tables.places[places, 1] > 0
        return referred

    def slots(self, cells: Int32) -> NDArray[np.int64]:
        """The slot of each of `cells` [n]: scope * N_GROUPS + group."""
        slots: NDArray[np.int64] = self.tables.cells[cells, t.SLOT]
        return slots

    def cell_of_slot(self, slot: int) -> int:
        """The cell at a slot, -1 if there is none."""
        if slot >= self.tables.cell_of.shape[0]:
            return -1
        return int(self.tables.cell_of[slot])

    def count(self, batch: Batch, *, limit: int) -> Later:
        """Count closed impressions; what it returns comes back by `overflow`."""
        n_impressions, n_shown = len(batch.places), int(batch.starts[-1])
        n_clicks = len(batch.click_owners)
        clicks_of = np.bincount(batch.click_owners, minlength=n_impressions)
        lengths = np.diff(batch.starts)
        # A rank that is clicked again is counted once.
        ranks_of = np.minimum(clicks_of, lengths)
        self._make_room(
            n_cells=n_impressions,
            n_pairs=n_shown,
            n_items=int(lengths[clicks_of > 0].sum()),
            n_click_pairs=int((ranks_of * (ranks_of - 1) // 2).sum()),
            n_entries=n_impressions,
        )
        later = Later(
            np.empty((n_impressions, 3), np.int32),
            np.empty((n_clicks, 5), np.int32),
            np.zeros(3, np.int64),
        )
        count_batch(self.tables, batch, limit, later)
        _check(fits=not later.sizes[2])
        return Later(
            later.evicted[: later.sizes[0]],
            later.waiting[: later.sizes[1]],
            later.sizes,
        )

    def overflow(self, evicted: Int32, rows: Placements) -> None:
        """Sum evicted exposure rows.

        `evicted` [n, 3] columns: cell, number among `rows`, count.
        """
        lengths = np.diff(rows.starts)[evicted[:, 1]]
        pieces = np.cumsum(lengths) // SPREAD_PLACEMENTS
        cuts = np.flatnonzero(np.diff(pieces)) + 1
        for piece in np.split(np.arange(len(evicted)), cuts):
            self._make_room(n_pairs=int(lengths[piece].sum()))
            add_exposures(self.tables, evicted[piece], rows)

    def add_inverses(
        self, cells: Int32, items: Int32, probabilities: NDArray[np.float64]
    ) -> None:
        """Add the inverse sums of clicks whose probabilities came later.

        `cells`, `items`, `probabilities` [n_clicks].
        """
        self._make_room(n_items=len(cells))
        _check(fits=add_inverses(self.tables, cells, items, probabilities))

    def written(self) -> Iterator[tuple[int, bytes]]:
        """Slot and bytes of each cell that changed since the last call."""
        sizes = self.tables.sizes
        cells = self.tables.dirty[: sizes[t.N_DIRTY]].copy()
        self.tables.cells[cells, t.IS_DIRTY] = 0
        sizes[t.N_DIRTY] = 0
        slots = self.slots(cells).tolist()
        out = np.empty(WRITE_BYTES, np.uint8)
        done = 0
        while done < len(cells):
            ends = np.zeros(len(cells) - done, np.int64)
            n_written = write_cells(self.tables, cells[done:], out, ends)
            if n_written == 0:
                out = np.empty(2 * out.shape[0], np.uint8)
                continue
            last = int(ends[n_written - 1])
            buffer, start = out[:last].tobytes(), 0
            for slot, end in zip(
                slots[done : done + n_written], ends[:n_written].tolist(), strict=True
            ):
                yield slot, buffer[start:end]
                start = end
            done += n_written

    def load(
        self, slots: Sequence[int], places: Sequence[int], values: Sequence[bytes]
    ) -> None:
        """Take written cells; `places` are those of all their exposure rows."""
        source = np.frombuffer(b"".join(values), np.uint8)
        lengths = np.fromiter(map(len, values), np.int64, len(values))
        starts = np.cumsum(lengths) - lengths
        n_pairs, n_items, n_click_pairs, n_entries = written_sizes(source, starts)
        self._make_room(
            n_cells=len(slots),
            n_pairs=int(n_pairs),
            n_items=int(n_items),
            n_click_pairs=int(n_click_pairs),
            n_entries=int(n_entries),
        )
        load_cells(
            self.tables,
            np.array(slots, np.int64),
            np.array(places, np.int32),
            source,
            starts,
        )

    def expire(self, before_ms: int) -> tuple[list[int], int]:
        """Remove items last shown before a time, and cells left without any.

        Returns the slots of removed cells, and how many items were removed.
        """
        tables, slots, n_removed = without_expired(self.tables, before_ms)
        if n_removed:
            self.tables = tables
            self._index(force=True)
        return slots, n_removed

    def _make_room(
        self,
        n_cells: int = 0,
        n_pairs: int = 0,
        n_items: int = 0,
        n_click_pairs: int = 0,
        n_entries: int = 0,
    ) -> None:
        tables, sizes = self.tables, self.tables.sizes.tolist()
        needed = (
            ("cells", sizes[t.N_CELLS] + n_cells),
            ("dirty", sizes[t.N_CELLS] + n_cells),
            ("pairs", sizes[t.N_PAIRS] + n_pairs),
            ("items", sizes[t.N_ITEMS] + n_items),
            ("click_pairs", sizes[t.N_CLICK_PAIRS] + n_click_pairs),
            ("entries", sizes[t.N_ENTRIES] + n_entries),
        )
        changed = {}
        for name, n_rows in needed:
            array = getattr(tables, name)
            if n_rows > array.shape[0]:
                changed[name] = enlarged(array, n_rows)
        if changed:
            if "pairs" in changed:
                changed["pairs_wide"] = changed["pairs"].view(np.int64)
            self.tables = tables._replace(**changed)
        self._index(n_pairs, n_items, n_click_pairs)

    def _index(
        self,
        n_pairs: int = 0,
        n_items: int = 0,
        n_click_pairs: int = 0,
        *,
        force: bool = False,
    ) -> None:
        sizes = self.tables.sizes.tolist()
        # A new pair may bring all pairs of its cell into the table.
        n_brought = sizes[t.N_INDEXED] + (t.MOST_CHAINED + 1) * n_pairs
        n_indexed = sizes[t.N_PAIRS] if force else min(sizes[t.N_PAIRS], n_brought)
        for name, kind, n_rows in (
            ("pair_index", 0, n_indexed + n_pairs),
            ("item_index", 1, sizes[t.N_ITEMS] + n_items),
            ("click_pair_index", 2, sizes[t.N_CLICK_PAIRS] + n_click_pairs),
        ):
            n_slots = getattr(self.tables, name).shape[0]
            if not force and n_rows <= LARGEST_LOAD * n_slots:
                continue
            while n_rows > LARGEST_LOAD * n_slots:
                n_slots *= 2
            index = np.full(n_slots, -1, np.int32)
            self.tables = self.tables._replace(**{name: index})
            _fill_index(self.tables, kind)


def _check(*, fits: bool) -> None:
    if not fits:
        raise OverflowError(
            "a cell must hold fewer than 2^31 impressions and inverse sums below "
            "2^46; a counter would overflow"
        )


@compiled
def _fill_index(tables: Tables, kind: int) -> None:
    """Enter all rows of pairs (0), items (1) or click pairs (2)."""
    if kind == 0:
        tables.sizes[t.N_INDEXED] = 0
        for cell in range(tables.sizes[t.N_CELLS]):
            if tables.cells[cell, t.N_OWN_PAIRS] > t.MOST_CHAINED:
                index_pairs(tables, cell)
        return
    n_rows, index = tables.sizes[t.N_ITEMS], tables.item_index
    if kind == 2:
        n_rows, index = tables.sizes[t.N_CLICK_PAIRS], tables.click_pair_index
    mask = index.shape[0] - 1
    for row in range(n_rows):
        if kind == 1:
            item = tables.items[row]
            slot = slot_of(item[t.ITEM_CELL], item[t.ITEM_ITEM], 0, mask)
        else:
            both = tables.click_pairs[row]
            slot = slot_of(both[t.CLICK_PAIR_A], both[t.CLICK_PAIR_B], 0, mask)
        while index[slot] >= 0:
            slot = (slot + 1) & mask
        index[slot] = row
