"""Scopes as records of `statistics` come: where items were shown and clicked.

Records are kept as they are. Those of scopes that changed are decoded in C, many scopes
at a time, when somebody asks. Neither candidate sets nor exposure rows are needed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from models.counts.fixed_point import Int64
from models.counts.list_form import list_pairs, pooled
from streams.native.scope_tables import (
    HEAD,
    LISTS,
    PIECE,
    ScopeTables,
    SpoiltRecord,
    scope_tables,
)
from streams.state_pieces import is_split
from streams.statistics import keys
from streams.statistics.keys import ScopeName
from streams.statistics.scopes import BATCH_BYTES, lists_of

_KINDS = {b"\xa5scope": HEAD, b"\xa5piece": PIECE, b"\xa5lists": LISTS}
_CELL = b"\xa4cell"

Part = tuple[int, int]
"""Kind of a record, and the group of a piece or the number of lists."""

_HEAD: Part = (HEAD, 0)


@dataclass(slots=True)
class _Known:
    """Records of a scope, and its pairs; None while they are not known."""

    records: dict[Part, bytes] = field(default_factory=dict)
    pairs: Int64 | None = None


class NewestScopes:
    """The scopes that changed last, at most so many.

    Those of which a record was not seen, or is too large to be one, are left out.
    `refused` says why the last one was whose records are spoilt; empty if none was.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._scopes: dict[ScopeName, _Known] = {}
        self._changed: dict[ScopeName, None] = {}
        self.refused = ""

    def __len__(self) -> int:
        return len(self._scopes)

    def take(self, key: bytes, value: bytes | None) -> ScopeName | None:
        """Take a record; the scope whose pairs may have changed, if any.

        Raises
        ------
        SchemaRefused
            Where another release wrote it; what was known of its key is forgotten.
        """
        if key[1:6] == _CELL and value:
            keys.check_value("cell", key, value)
        kind = _KINDS.get(key[1:7])
        if kind is None:
            return None
        word, *rest = keys.decode(key)
        name = ScopeName(*rest[:4])
        part = (kind, rest[4]) if kind != HEAD else _HEAD
        # What changes goes behind what did not.
        known = self._scopes.pop(name, _Known())
        known.pairs = None
        known.records.pop(part, None)
        self._changed.pop(name, None)
        if known.records:
            self._put(name, known)
        if value and not is_split(value):
            keys.check_value(word, key, value)
            known.records[part] = value
            self._put(name, known)
        if self._most is not None and len(self._scopes) > self._most:
            oldest = next(iter(self._scopes))
            del self._scopes[oldest]
            self._changed.pop(oldest, None)
        return name

    def pairs(self) -> Iterator[tuple[ScopeName, Int64]]:
        """Of each scope that is whole, all groups together, the newest last.

        [n, 4]: item number, rank, shown, clicked; rows of an item and a rank may come
        again.
        """
        self._read()
        for name, known in self._scopes.items():
            if known.pairs is not None:
                yield name, known.pairs

    def _put(self, name: ScopeName, known: _Known) -> None:
        self._scopes[name] = known
        self._changed[name] = None

    def _read(self) -> None:
        changed, self._changed = self._changed, {}
        records = {name: self._scopes[name].records for name in changed}
        headed = [name for name in changed if _HEAD in records[name]]
        alone = {name: {_HEAD: records[name][_HEAD]} for name in headed}
        apart: dict[ScopeName, dict[Part, bytes]] = {}
        for names, tables in self._tables(alone):
            for name, named, pairs in _scopes_of(names, tables):
                if not named:
                    self._scopes[name].pairs = pairs
                elif all(part in records[name] for part in named):
                    parts = {part: records[name][part] for part in named}
                    apart[name] = alone[name] | parts
        for names, tables in self._tables(apart):
            for name, _, pairs in _scopes_of(names, tables):
                self._scopes[name].pairs = pairs

    def _tables(
        self, records: dict[ScopeName, dict[Part, bytes]]
    ) -> Iterator[tuple[list[ScopeName], ScopeTables]]:
        """Tables of these scopes, batch by batch; spoilt ones are left out."""
        for batch in _batches(records):
            names = batch
            while names:
                places = [
                    (kind, number, group)
                    for number, name in enumerate(names)
                    for kind, group in records[name]
                ]
                values = [value for name in names for value in records[name].values()]
                try:
                    yield names, scope_tables(values, places)
                    break
                except SpoiltRecord as error:
                    spoilt = names[places[error.index][1]]
                    self.refused = f"{error}; at scope {spoilt!r:.200}"
                    names = [name for name in names if name != spoilt]


def _batches(
    records: dict[ScopeName, dict[Part, bytes]],
) -> Iterator[list[ScopeName]]:
    waiting: list[ScopeName] = []
    n_bytes = 0
    for name, parts in records.items():
        n_bytes += sum(map(len, parts.values()))
        if waiting and n_bytes > BATCH_BYTES:
            yield waiting
            waiting, n_bytes = [], sum(map(len, parts.values()))
        waiting.append(name)
    if waiting:
        yield waiting


def _scopes_of(
    names: Iterable[ScopeName], tables: ScopeTables
) -> Iterator[tuple[ScopeName, list[Part], Int64]]:
    """Each scope with the parts that its head names, and its pairs."""
    n_lists = tables.heads[:, 3].tolist()
    named: list[list[Part]] = [[(LISTS, i) for i in range(n)] for n in n_lists]
    for scope, group in tables.apart.tolist():
        named[scope].append((PIECE, group))
    pairs = _pairs(tables)
    ends = np.searchsorted(pairs[:, 0], np.arange(len(named)), side="right")
    start = 0
    for name, parts, end in zip(names, named, ends.tolist(), strict=True):
        # Pieces come before lists, as the core expects.
        yield name, sorted(parts), pairs[start:end, 1:]
        start = end


def _pairs(tables: ScopeTables) -> Int64:
    """Scope, item, rank, shown and clicked, sorted by scope."""
    lists = pooled(lists_of(tables, np.zeros(len(tables.heads), np.int64)))
    of_lists = list_pairs(lists._replace(groups=tables.lists[:, 0]))[:, :5]
    pairs = np.concatenate((of_lists, tables.pairs[:, [0, 2, 3, 4, 5]]))
    return pairs[np.argsort(pairs[:, 0], kind="stable")]
