"""Universal Binary JSON as XGBoost writes it: read, with every length checked.

A mark of one letter, then the value; containers may say the mark of all of their
values and how many there are. Numbers are big-endian.

References
----------
https://ubjson.org, draft 12.
"""

from typing import Any

import numpy as np

NUMBERS = {
    b"i": ">i1", b"U": ">u1", b"I": ">i2", b"l": ">i4", b"L": ">i8", b"d": ">f4",
    b"D": ">f8",
}  # fmt: skip
INTEGERS = frozenset({b"i", b"U", b"I", b"l", b"L"})
CONSTANTS = {b"Z": None, b"T": True, b"F": False}

MOST_DEEP = 64
"""Containers in one another; those of a model are ten."""


class UbjsonDamaged(ValueError):
    """Bytes are no document of this format; who reads the file says so in its words."""


def decode_ubjson(content: bytes) -> Any:
    """The document; arrays that say the kind of their numbers are lists like others.

    Raises
    ------
    UbjsonDamaged
    """
    reader = _Reader(content)
    found = reader.value(reader.mark(), 0)
    if reader.at != len(content):
        raise UbjsonDamaged(f"it ends at byte {reader.at} of {len(content)}")
    return found


class _Reader:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.at = 0

    def mark(self) -> bytes:
        found = b"N"
        while found == b"N":
            found = self._taken(1)
        return found

    def value(self, mark: bytes, depth: int) -> Any:
        if mark in NUMBERS:
            return self._numbers(mark, 1)[0]
        if mark in CONSTANTS:
            return CONSTANTS[mark]
        if mark in (b"S", b"H"):
            return self._text(self._length(self.mark()))
        if mark == b"C":
            return self._text(1)
        if mark not in (b"[", b"{"):
            raise UbjsonDamaged(f"byte {self.at - 1} is no mark, {mark!r}")
        if depth >= MOST_DEEP:
            raise UbjsonDamaged(f"it nests deeper than {MOST_DEEP} at byte {self.at}")
        return self._array(depth) if mark == b"[" else self._object(depth)

    def _array(self, depth: int) -> list[Any]:
        kind, n = self._head()
        if kind in NUMBERS and n is not None:
            return self._numbers(kind, n)
        found: list[Any] = []
        while n is None or len(found) < n:
            mark = kind or self.mark()
            if n is None and mark == b"]":
                break
            found.append(self.value(mark, depth + 1))
        return found

    def _object(self, depth: int) -> dict[str, Any]:
        kind, n = self._head()
        found: dict[str, Any] = {}
        n_taken = 0
        while n is None or n_taken < n:
            mark = self.mark()
            if n is None and mark == b"}":
                break
            name = self._text(self._length(mark))
            if name in found:
                raise UbjsonDamaged(f"{name!r} comes twice at byte {self.at}")
            found[name] = self.value(kind or self.mark(), depth + 1)
            n_taken += 1
        return found

    def _head(self) -> tuple[bytes, int | None]:
        """The mark of all values, and how many there are, where that is said."""
        kind, n = b"", None
        if self._next() == b"$":
            self.at += 1
            kind = self._taken(1)
        if self._next() == b"#":
            self.at += 1
            n = self._length(self.mark())
        if kind and (n is None or kind in CONSTANTS):
            # Values without bytes would be as many as anybody likes.
            raise UbjsonDamaged(f"a container of {kind!r} at byte {self.at} has no end")
        if n is not None and n > len(self._content) - self.at:
            raise UbjsonDamaged(f"{n} values at byte {self.at} are more than there are")
        return kind, n

    def _length(self, mark: bytes) -> int:
        n = self._numbers(mark, 1)[0] if mark in INTEGERS else -1
        if not isinstance(n, int) or n < 0:
            raise UbjsonDamaged(f"byte {self.at} must end a length; got {mark!r}, {n}")
        return n

    def _numbers(self, mark: bytes, n: int) -> list[Any]:
        kind = np.dtype(NUMBERS[mark])
        found: list[Any]
        found = np.frombuffer(self._taken(n * kind.itemsize), kind).tolist()
        return found

    def _text(self, n: int) -> str:
        try:
            return self._taken(n).decode()
        except UnicodeDecodeError as error:
            raise UbjsonDamaged(f"text at byte {self.at - n} is none") from error

    def _next(self) -> bytes:
        return self._content[self.at : self.at + 1]

    def _taken(self, n: int) -> bytes:
        found = self._content[self.at : self.at + n]
        if len(found) < n:
            raise UbjsonDamaged(f"it is cut off at byte {len(self._content)}")
        self.at += n
        return found
