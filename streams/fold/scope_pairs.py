"""Pairs of item and rank by scope, kept up as records of `statistics` come."""

from collections.abc import Iterator

import numpy as np

from models.counts.fixed_point import Int64
from models.counts.scope_record import decode_head, decode_lists, decode_piece
from models.counts.scope_summaries import pairs_of_lists, pairs_of_scope
from streams.fold import statistics_keys as keys
from streams.fold.statistics_keys import ScopeName
from streams.state_pieces import is_split

_KINDS = b"\xa5scope", b"\xa5piece", b"\xa5lists"
_CELL = b"\xa4cell"


_Piece = tuple[str, int]
"""Kind and number."""


class _Known:
    """Pairs of a scope's head, of its pieces, and which it must have.

    `named` are groups of cells, `n_lists` pieces of lists.
    """

    __slots__ = ("apart", "head", "n_lists", "named")

    def __init__(self) -> None:
        self.head: Int64 | None = None
        self.named: tuple[int, ...] = ()
        self.n_lists = 0
        self.apart: dict[_Piece, Int64] = {}

    def pieces(self) -> Iterator[_Piece]:
        """All that it must have."""
        yield from (("piece", group) for group in self.named)
        yield from (("lists", number) for number in range(self.n_lists))


class ScopePairs:
    """The scopes that changed last, at most so many.

    Those of which a record was not seen, or is too large to be one, are left out.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._scopes: dict[ScopeName, _Known] = {}

    def __len__(self) -> int:
        return len(self._scopes)

    def take(self, key: bytes, value: bytes | None) -> ScopeName | None:
        """Take a record; the scope whose pairs may have changed, if any.

        Raises
        ------
        SchemaRefused
            Where another release wrote it; what was known of its key is forgotten.
        ValueError
            If it has another shape; likewise.
        """
        if key[1:6] == _CELL and value:
            keys.check_value("cell", key, value)
        if key[1:7] not in _KINDS:
            return None
        kind, *rest = keys.decode(key)
        name, piece = ScopeName(*rest[:4]), None
        if kind != "scope":
            piece = kind, rest[4]
        # What changes goes behind what did not.
        known = self._scopes.pop(name, _Known())
        self._forget(known, piece)
        if known.apart or known.head is not None:
            self._scopes[name] = known
        if value and not is_split(value):
            keys.check_value(kind, key, value)
            self._read(known, piece, value)
            self._scopes[name] = known
        if self._most is not None and len(self._scopes) > self._most:
            del self._scopes[next(iter(self._scopes))]
        return name

    def pairs(self, name: ScopeName) -> Int64 | None:
        """Pairs of a scope; None where not all of it is known.

        [n, 7]: item number, rank, shown, clicked, first_click, shown_to_first,
        shown_to_last; rows of an item and a rank may come again.
        """
        known = self._scopes.get(name)
        if known is None or known.head is None:
            return None
        if any(piece not in known.apart for piece in known.pieces()):
            return None
        apart = (known.apart[piece] for piece in known.pieces())
        return np.concatenate([known.head, *apart])

    def names(self) -> list[ScopeName]:
        """The scopes, the newest last."""
        return list(self._scopes)

    def _forget(self, known: _Known, piece: _Piece | None) -> None:
        if piece is None:
            known.head, known.named, known.n_lists = None, (), 0
        else:
            known.apart.pop(piece, None)

    def _read(self, known: _Known, piece: _Piece | None, value: bytes) -> None:
        if piece is None:
            scope = decode_head(value)
            known.head = pairs_of_scope(scope)
            known.named, known.n_lists = scope.pieces, scope.n_list_pieces
        elif piece[0] == "lists":
            known.apart[piece] = pairs_of_lists(decode_lists(value))
        else:
            known.apart[piece] = decode_piece(piece[1], value).pairs[:, 1:8]
