"""Scopes as they lie in the topic, and many of them decoded at once.

Tables of a batch are joined. A *cell* is a group of a scope of the batch; its number is
scope * `STRIDE` + group. Items keep the numbers that they have in their candidate set.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, NoReturn

import numpy as np

from models.counts.fixed_point import Int64
from models.counts.group_tables import GroupTables
from models.counts.scope_record import Lists, ScopeRecord, decode_scope
from streams.native.scope_tables import (
    HEAD,
    LISTS,
    PIECE,
    ScopeTables,
    SpoiltRecord,
    scope_tables,
)
from streams.statistics import keys
from streams.statistics.index import QueryRecords
from streams.statistics.keys import Row, ScopeName


class StoredScope(NamedTuple):
    """A scope with its records, not decoded.

    Parameters
    ----------
    name
        Which one it is.
    head
        Its own record.
    pieces, lists
        Cells that lie apart, by group; lists that do, by number.
    items
        The record of its candidate set; empty where it is missing.
    rows
        Records of its exposure rows, by name.
    """

    name: ScopeName
    head: bytes
    pieces: dict[int, bytes]
    lists: dict[int, bytes]
    items: bytes
    rows: dict[bytes, bytes]

    @property
    def n_bytes(self) -> int:
        """Of the records that are decoded together."""
        apart = (*self.pieces.values(), *self.lists.values())
        return len(self.head) + sum(map(len, apart))

    def decoded(self) -> ScopeRecord:
        """The scope by itself.

        Raises
        ------
        ValueError
            If a piece of it is missing, or something has another shape.
        """
        try:
            return decode_scope(self.head, self.pieces, self.lists)
        except ValueError as error:
            raise ValueError(f"{error}; at scope {self.name!r:.200}") from error

    def refuse_strays(self, scope: ScopeRecord) -> None:
        """Refuse pieces that the head does not name.

        Raises
        ------
        ValueError
        """
        strays = [*(self.pieces.keys() - set(scope.pieces))]
        strays += [*(self.lists.keys() - set(range(scope.n_list_pieces)))]
        if strays:
            raise ValueError(
                "the head of a scope of statistics must name all pieces that are "
                f"there; it does not name {sorted(strays)[:5]}: `rankstream recount` "
                f"says what is wrong; at scope {self.name!r:.200}"
            )

    def refuse(self, reason: str) -> NoReturn:
        """Say what is wrong with it, in the words of who decodes it alone.

        Raises
        ------
        ValueError
        """
        self.refuse_strays(self.decoded())
        raise ValueError(
            f"a scope of statistics must be well formed; {reason}, at scope "
            f"{self.name!r:.200}"
        )

    def set_items(self) -> tuple[str, ...]:
        """Ids of the items of its candidate set.

        Raises
        ------
        ValueError
            If it is missing.
        """
        if not self.items:
            query, candidate_set, _, era = self.name
            raise ValueError(missing_set((query, candidate_set, era)))
        return tuple(keys.decode_set(self.items))

    def row(self, name: bytes) -> Row:
        """One of its exposure rows.

        Raises
        ------
        ValueError
            If it is missing.
        """
        if name not in self.rows:
            raise ValueError(missing_row(self.name, name))
        return keys.decode_row(self.rows[name])


def stored_scope(records: QueryRecords, name: ScopeName) -> StoredScope:
    """A scope with all of its records that are there."""
    at_set = records.sets.get((name.candidate_set, name.era))
    of_rows = records.rows.get(name, {})
    return StoredScope(
        name,
        records.value(records.scopes[name]),
        {group: records.value(x) for group, x in records.pieces.get(name, {}).items()},
        {n: records.value(x) for n, x in sorted(records.lists.get(name, {}).items())},
        b"" if at_set is None else records.value(at_set),
        {row: records.value(key) for row, key in of_rows.items()},
    )


def missing_set(place: tuple[str, bytes, int]) -> str:
    """What to say where a candidate set (query, name, era) is not there."""
    return (
        "the candidate set of each scope must be in statistics; that of "
        f"{place!r:.200} is missing: read the topic from its beginning, or replay into "
        "the folder again"
    )


def missing_row(name: ScopeName, row: bytes) -> str:
    """What to say where an exposure row is not there."""
    return (
        f"exposure rows of each scope must be in statistics; row {row.hex()} of "
        f"{name!r:.200} is missing: read the topic from its beginning, or replay into "
        "the folder again"
    )


STRIDE = 1 << 16

BATCH_BYTES = 256 << 10
"""Of records together: what is made of a byte may take hundreds."""

ROW_BYTES = 256 << 10
"""Likewise of exposure rows."""


class ScopeBatch(NamedTuple):
    """Scopes in tables that they share.

    Parameters
    ----------
    names : [n_scopes]
        Which ones they are.
    items : [n_scopes]
        Ids of their sets' items.
    heads : [n_scopes, 4]
        See `streams.native.scope_tables`.
    row_names, rows : [n_rows]
        Exposure rows of all scopes.
    row_scopes : [n_rows]
        Whose they are.
    lists
        The list form; groups are cells, numbers of rows those of the batch.
    list_scopes : [n_lists]
        Whose the lists are.
    general
        The general form, likewise.
    """

    names: tuple[ScopeName, ...]
    items: tuple[tuple[str, ...], ...]
    heads: Int64
    row_names: tuple[bytes, ...]
    rows: tuple[Row, ...]
    row_scopes: Int64
    lists: Lists
    list_scopes: Int64
    general: GroupTables

    def n_items(self) -> Int64:
        """Of the set of each scope."""
        return np.array([len(each) for each in self.items], np.int64)

    def n_candidates(self) -> Int64:
        """Of each list: items of its set; 0 where that grows."""
        closed = [
            0 if name.is_growing else len(each)
            for name, each in zip(self.names, self.items, strict=True)
        ]
        return np.array(closed, np.int64)[self.list_scopes]

    def sorted_items(self) -> "SortedItems":
        """Items of each set by id, as readers see them."""
        orders = [sorted(range(len(x)), key=x.__getitem__) for x in self.items]
        numbers = [np.argsort(order) for order in orders]
        n_items = self.n_items()
        by_id = (
            tuple(items[number] for number in order)
            for items, order in zip(self.items, orders, strict=True)
        )
        return SortedItems(
            tuple(by_id),
            np.concatenate(numbers).astype(np.int64),
            np.cumsum(n_items) - n_items,
        )


class SortedItems(NamedTuple):
    """Items of scopes in the order of their ids.

    Parameters
    ----------
    items : [n_scopes]
        Ids, sorted.
    numbers : [n_items of all scopes]
        The place of each item among them, scope after scope.
    first : [n_scopes]
        Where the numbers of a scope begin.
    """

    items: tuple[tuple[str, ...], ...]
    numbers: Int64
    first: Int64

    def renumbered(self, scopes: Int64, items: Int64) -> Int64:
        """Items by their number in a set, as numbers of the sorted set.

        `scopes` [n], `items` [n].
        """
        return np.asarray(self.numbers[self.first[scopes] + items])


def batches(scopes: Iterable[StoredScope]) -> Iterator[ScopeBatch]:
    """Scopes in batches, as many as their bytes allow, at least one each.

    Raises
    ------
    ValueError
        If a piece or a row of one is missing, there is one that it does not name, or
        something has another shape.
    """
    waiting: list[StoredScope] = []
    n_bytes = n_row_bytes = 0
    for one in scopes:
        n_bytes += one.n_bytes
        n_row_bytes += sum(map(len, one.rows.values()))
        if waiting and (n_bytes > BATCH_BYTES or n_row_bytes > ROW_BYTES):
            yield batch_of(waiting)
            waiting, n_bytes = [], one.n_bytes
            n_row_bytes = sum(map(len, one.rows.values()))
        waiting.append(one)
    if waiting:
        yield batch_of(waiting)


def batch_of(scopes: Sequence[StoredScope]) -> ScopeBatch:
    """These scopes in tables that they share; errors as `batches`."""
    tables = _tables(scopes)
    items = tuple(one.set_items() for one in scopes)
    n_rows = tables.heads[:, 2]
    row_scopes = np.repeat(np.arange(len(scopes)), n_rows)
    packed = tables.row_names.tobytes()
    row_names = tuple(packed[i : i + 16] for i in range(0, len(packed), 16))
    rows = tuple(
        scopes[owner].row(name)
        for owner, name in zip(row_scopes.tolist(), row_names, strict=True)
    )
    first_rows = np.cumsum(n_rows) - n_rows
    batch = ScopeBatch(
        tuple(one.name for one in scopes),
        items,
        tables.heads,
        row_names,
        rows,
        row_scopes,
        lists_of(tables, first_rows),
        tables.lists[:, 0],
        _general(tables, first_rows),
    )
    _check_items(batch)
    return batch


def _tables(scopes: Sequence[StoredScope]) -> ScopeTables:
    values: list[bytes] = []
    places: list[tuple[int, int, int]] = []
    for number, one in enumerate(scopes):
        values += [one.head, *one.pieces.values(), *one.lists.values()]
        places.append((HEAD, number, 0))
        places += [(PIECE, number, group) for group in one.pieces]
        places += [(LISTS, number, 0)] * len(one.lists)
    try:
        tables = scope_tables(values, places)
    except SpoiltRecord as error:
        scopes[places[error.index][1]].refuse(str(error))
    apart = {(scope, group) for scope, group in tables.apart.tolist()}
    n_lists = tables.heads[:, 3].tolist()
    for number, one in enumerate(scopes):
        named = {group for group in one.pieces if (number, group) in apart}
        if len(named) < len(one.pieces) or [*one.lists] != [*range(n_lists[number])]:
            one.refuse("its pieces are not those that its head names")
    if len(apart) != sum(len(one.pieces) for one in scopes):
        lacking = next(n for n, group in apart if group not in scopes[n].pieces)
        scopes[lacking].refuse("a piece is missing")
    return tables


def lists_of(tables: ScopeTables, first_rows: Int64) -> Lists:
    """The list form of all scopes of tables, cells for groups.

    Parameters
    ----------
    first_rows : [n_scopes]
        The number of the first exposure row of each scope.
    """
    scopes, rows, lengths = tables.lists.T
    is_row = rows >= 0
    owners, groups, shown = tables.entries.T
    mask_owners, masks, counts = tables.masks.T
    return Lists(
        np.where(is_row, rows + first_rows[scopes], rows),
        np.concatenate(([0], np.cumsum(lengths))),
        tables.list_items[:, 0],
        owners,
        scopes[owners] * STRIDE + groups,
        shown,
        mask_owners,
        masks,
        counts,
    )


def _general(tables: ScopeTables, first_rows: Int64) -> GroupTables:
    rows = tables.rows.copy()
    rows[:, 2] += first_rows[rows[:, 0]]
    parts = (tables.totals, rows, *tables[9:])
    return GroupTables(*(_of_cells(table) for table in parts))


def _of_cells(table: Int64) -> Int64:
    """Scope and group, which come first, as one number."""
    joined = table[:, 1:].copy()
    joined[:, 0] += table[:, 0] * STRIDE
    return joined


def _check_items(batch: ScopeBatch) -> None:
    """Refuse items that are not in the candidate set of their scope."""
    lists, general, n_items = batch.lists, batch.general, batch.n_items()
    lengths = np.diff(lists.starts)
    list_scopes = batch.list_scopes
    found = (
        (np.repeat(list_scopes, lengths), lists.items),
        (list_scopes, lengths - 1),
        (general.pairs[:, 0] // STRIDE, general.pairs[:, 1]),
        (general.sums[:, 0] // STRIDE, general.sums[:, 1]),
        (general.rewards[:, 0] // STRIDE, general.rewards[:, 2]),
    )
    for scopes, items in found:
        is_wrong = items >= n_items[scopes]
        if is_wrong.any():
            row = int(is_wrong.argmax())
            scope = int(scopes[row])
            raise ValueError(
                "items of a scope must be in its candidate set; got number "
                f"{items[row]} in a set of {n_items[scope]}, at scope "
                f"{batch.names[scope]!r:.200}"
            )
