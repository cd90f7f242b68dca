"""Cells of many items, whose rows are found by hash, against plain counters."""

from collections import Counter
from itertools import combinations

import numpy as np

from models.counts import count_tables as t
from models.counts.cells import decode_cell
from models.counts.count_kernel import Batch
from models.counts.store import StatisticsStore

N_ITEMS, N_SHOWN, N_GROUPS = 30, 6, 20
ITEMS = tuple(f"d{item:02}" for item in range(N_ITEMS))

List = tuple[int, int, list[int], list[int]]
"""Group, time, items, and clicked ranks."""


def some_lists(rng: np.random.Generator, n: int, from_ms: int) -> list[List]:
    """Random lists, of which half are clicked."""
    return [
        (
            int(rng.integers(N_GROUPS)),
            from_ms + number,
            rng.permutation(N_ITEMS)[:N_SHOWN].tolist(),
            (np.flatnonzero(rng.random(N_SHOWN) < 0.4) + 1).tolist()
            if rng.random() < 0.5
            else [],
        )
        for number in range(n)
    ]


def batch_of(lists: list[List]) -> Batch:
    """The lists as kernels take them, all of one place."""
    clicks = [(owner, rank) for owner, one in enumerate(lists) for rank in one[3]]
    return Batch(
        places=np.zeros(len(lists), np.int32),
        groups=np.array([one[0] for one in lists], np.int32),
        times_ms=np.array([one[1] for one in lists], np.int64),
        starts=N_SHOWN * np.arange(len(lists) + 1),
        items=np.array([one[2] for one in lists], np.uint16).reshape(-1),
        map_starts=np.full(len(lists), -1, np.int64),
        maps=np.zeros(0, np.int32),
        click_owners=np.array([owner for owner, _ in clicks], np.int32),
        click_ranks=np.array([rank for _, rank in clicks], np.int32),
        click_probabilities=np.full(len(clicks), 0.5),
    )


class Plain:
    """What the cells of some lists hold."""

    def __init__(self) -> None:
        self.pairs = Counter[tuple[int, ...]]()
        self.sums = Counter[tuple[int, ...]]()
        self.both = Counter[tuple[int, ...]]()
        self.last_ms: dict[tuple[int, int], int] = {}

    def take(self, lists: list[List]) -> None:
        """Count lists."""
        for group, at_ms, shown, clicked in lists:
            for rank, item in enumerate(shown, 1):
                self.pairs[group, item, rank] += 1
                self.last_ms[group, item] = at_ms
                if rank in clicked:
                    self.sums[group, item] += 2 << 16
            places = sorted((shown[rank - 1], rank) for rank in clicked)
            for one, other in combinations(places, 2):
                self.both[group, *one, *other] += 1

    def expire(self, before_ms: int) -> int:
        """Drop the items of a group that were last shown before; how many."""
        gone = {key for key, at_ms in self.last_ms.items() if at_ms < before_ms}
        for counted in (self.pairs, self.sums):
            for key in [key for key in counted if key[:2] in gone]:
                del counted[key]
        for key in list(self.both):
            if (key[0], key[1]) in gone or (key[0], key[3]) in gone:
                del self.both[key]
        for key in gone:
            del self.last_ms[key]
        return len(gone)


def test_large_cells_count_as_plain_counters_do() -> None:
    """Rows of a cell are never taken for another's, nor lost as tables grow."""
    rng = np.random.default_rng(8)
    store, plain = StatisticsStore(), Plain()
    store.reserve_scope(0)
    store.set_places(np.array([[0, 0, t.WITH_ROW]], np.int32))
    store.name_place(0, bytes(16))
    pairs, sums, both = (dict[int, dict[tuple[int, ...], int]]() for _ in range(3))
    for step in range(12):
        lists = some_lists(rng, 10 + 30 * step, 1_000 * step)
        store.count(batch_of(lists), limit=1)
        plain.take(lists)
        if step % 3 == 2:
            # The first list of the step is shown at this very time, and stays.
            removed, n_removed = store.expire(1_000 * (step - 1))
            assert (removed, n_removed) == ([], plain.expire(1_000 * (step - 1)))
        for group, value in store.written():
            cell = decode_cell(value, ITEMS)
            pairs[group] = {(group, *row[:2]): row[2] for row in cell.pairs.tolist()}
            sums[group] = {
                (group, row[0]): row[3] for row in cell.sums.tolist() if row[3]
            }
            both[group] = {
                (group, *row[:4]): row[4] for row in cell.click_pairs.tolist()
            }

        for found, counted in (
            (pairs, plain.pairs),
            (sums, plain.sums),
            (both, plain.both),
        ):
            assert {k: n for one in found.values() for k, n in one.items()} == counted


def test_one_exposure_row_is_kept_where_the_limit_is_one() -> None:
    """The newest takes the place of the only one there is."""
    rng = np.random.default_rng(9)
    lists = [(0, *one[1:]) for one in some_lists(rng, 4, 0)]
    store = StatisticsStore()
    store.reserve_scope(0)
    for place in range(2):
        store.set_places(np.array([[place, 0, t.WITH_ROW]], np.int32))
        store.name_place(place, bytes([place]) * 16)
    places = np.array([0, 1, 1, 0], np.int32)
    later = store.count(batch_of(lists)._replace(places=places), limit=1)
    ((_, value),) = store.written()

    assert later.evicted[:, 1:].tolist() == [[0, 1], [1, 2]]
    assert decode_cell(value, ITEMS).row_counts.tolist() == [1]
    assert store.is_referred(np.array([0, 1], np.int32)).tolist() == [True, False]


def test_a_cell_is_searched_by_hash_from_the_pair_on_that_makes_it_large() -> None:
    """Item 0 is found beside each new one, and tables grow though batches are small."""
    store, n_items = StatisticsStore(), 300
    store.reserve_scope(0)
    store.set_places(np.array([[0, 0, t.WITHOUT_ROW]], np.int32))
    for item in range(n_items):
        one = batch_of([(0, 0, [0] * N_SHOWN, [])])._replace(
            starts=np.array([0, 1]), items=np.array([item], np.uint16)
        )
        for single in (one, one._replace(items=np.zeros(1, np.uint16))):
            store.count(single, limit=1)
    ((_, value),) = store.written()
    cell = decode_cell(value, tuple(f"d{item:03}" for item in range(n_items)))

    assert cell.pairs[:, 0].tolist() == list(range(n_items))
    assert cell.pairs[:, 2].tolist() == [n_items + 1] + [1] * (n_items - 1)
