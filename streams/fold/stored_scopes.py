"""Scopes as they lie in the topic: their records, found and not decoded."""

from typing import NamedTuple, NoReturn

from models.counts.scope_record import ScopeRecord, decode_scope
from streams.fold import statistics_keys as keys
from streams.fold.statistics_index import QueryRecords
from streams.fold.statistics_keys import Row, ScopeName


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
