"""Pairs of item and rank by scope, kept up as records of `statistics` come."""

import numpy as np

from models.counts.fixed_point import Int64
from models.counts.scope_record import decode_head, decode_piece
from models.counts.scope_summaries import pairs_of_scope
from streams.fold import statistics_keys as keys
from streams.fold.statistics_keys import ScopeName
from streams.state_pieces import is_split

_SCOPE, _PIECE = b"\xa5scope", b"\xa5piece"
_CELL = b"\xa4cell"


class _Known:
    """Pairs of a scope's head, of its pieces by group, and which it must have."""

    __slots__ = ("apart", "head", "named")

    def __init__(self) -> None:
        self.head: Int64 | None = None
        self.named: tuple[int, ...] = ()
        self.apart: dict[int, Int64] = {}


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
        if key[1:7] not in (_SCOPE, _PIECE):
            return None
        kind, *rest = keys.decode(key)
        name, group = ScopeName(*rest[:4]), rest[4] if kind == "piece" else None
        # What changes goes behind what did not.
        known = self._scopes.pop(name, _Known())
        self._forget(known, group)
        if known.apart or known.head is not None:
            self._scopes[name] = known
        if value and not is_split(value):
            keys.check_value(kind, key, value)
            self._read(known, group, value)
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
        if any(group not in known.apart for group in known.named):
            return None
        return np.concatenate([known.head, *(known.apart[g] for g in known.named)])

    def names(self) -> list[ScopeName]:
        """The scopes, the newest last."""
        return list(self._scopes)

    def _forget(self, known: _Known, group: int | None) -> None:
        if group is None:
            known.head, known.named = None, ()
        else:
            known.apart.pop(group, None)

    def _read(self, known: _Known, group: int | None, value: bytes) -> None:
        if group is None:
            scope = decode_head(value)
            known.head, known.named = pairs_of_scope(scope), scope.pieces
        else:
            known.apart[group] = decode_piece(group, value).pairs[:, 1:8]
