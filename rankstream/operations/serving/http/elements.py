"""How many elements and values JSON has, counted as its bytes come.

To make objects of small elements takes some hundred times their bytes, and seconds in
which nothing else is answered. To count them takes nanoseconds a byte and no memory.
"""

import base64
import binascii
import contextlib
import re
from collections.abc import Callable
from http import HTTPStatus

import msgspec
import numpy as np

from rankstream.operations.serving.problems import Problem
from rankstream.wire.schemas import decoded

WINDOW_BYTES = 16 * 1_024
"""Looked at together; so much is read beyond an element too many, at most."""

COMMA, OPEN, CLOSE = 0x2C, 0x7B, 0x7D
"""Of containers as `_FOLDED` has them."""

SIDE = 0x20
"""Tells `{` from `[`, and `}` from `]`."""

MARKS = b'"[]{},'
_OTHERS = bytes(each for each in range(256) if each not in MARKS)
_line = re.compile(rb"\S[^\n]*")

Refusal = Callable[[], Problem]


def n_values(text: bytes) -> int:
    """How many values JSON may have: never fewer than it has.

    Each but the first of a container stands behind a comma; marks in texts count too.

    Examples
    --------
    >>> n_values(b'[1, {"a": [], "b": "x"}]'), n_values(b"7"), n_values(b'"a,b"')
    (6, 1, 2)
    """
    codes = np.frombuffer(text, np.uint8)
    return 1 + n_commas(text) + int(np.count_nonzero((codes | SIDE) == OPEN))


def n_commas(text: bytes) -> int:
    """How many commas there are, in texts too; faster than `bytes.count`.

    Examples
    --------
    >>> n_commas(b'[1, 2, "a,b"]')
    3
    """
    return int(np.count_nonzero(np.frombuffer(text, np.uint8) == COMMA))


def lines_of(body: bytes) -> list[bytes]:
    r"""The lines that are not blank, as they are.

    Examples
    --------
    >>> lines_of(b' 1\n\n \n2 \r\n3')
    [b' 1', b'2 \r', b'3']
    """
    return [
        body[body.rfind(b"\n", 0, found.start()) + 1 : found.end()]
        for found in _line.finditer(body)
    ]


class Elements:
    """Counts the elements of an array, or lines, or the values of anything else.

    Parameters
    ----------
    most, refusal
        Elements of an array that there may be, and what is raised beyond.
    most_values, refusal_of_values
        The same of values, where the bytes are no array.
    are_lines
        Whether elements are lines.

    Attributes
    ----------
    free
        So many bytes cannot hold too many.
    n
        How many there are, of what was looked at.
    n_bytes
        Bytes of which every mark was looked at.
    """

    def __init__(
        self,
        most: int,
        refusal: Refusal,
        most_values: int,
        refusal_of_values: Refusal,
        *,
        are_lines: bool = False,
    ) -> None:
        self.free = min(2 * most, most_values)
        self.n, self.n_bytes = 1, 0
        self._most, self._refusal = most, refusal
        self._of_values = most_values, refusal_of_values
        self._are_lines = are_lines
        self._count: Callable[[bytes], None] | None = None
        self._unscanned: list[bytes] | None = []
        self._n_unscanned = self._n_counted = self._n_commas = 0
        self._depth = 0
        self._is_in_text = self._is_in_line = False
        self._escape = b""

    def take(self, piece: bytes) -> None:
        """Count in a piece.

        Raises
        ------
        Problem
            Where there are too many.
        """
        if self._unscanned is None:
            self._take(piece)
            return
        self._unscanned.append(piece)
        self._n_unscanned += len(piece)
        if self._n_unscanned <= self.free:
            return
        if self._count is None:
            starts = (each.lstrip()[:1] for each in self._unscanned)
            start = next(filter(None, starts), b"")
            if not start:
                self._unscanned.clear()  # blanks
                return
            self._count = self._way(start)
        if self._count == self._scan:
            # All commas are counted at once; which of them count matters if all may.
            new = self._unscanned[self._n_counted :]
            self._n_counted += len(new)
            self._n_commas += sum(map(n_commas, new))
            if self._n_commas < self._most:
                return
        waiting, self._unscanned = self._unscanned, None
        for each in waiting:
            self._take(each)

    def _take(self, piece: bytes) -> None:
        count = self._count or self._values
        for start in range(0, len(piece), WINDOW_BYTES):
            window = piece[start : start + WINDOW_BYTES]
            self.n_bytes += len(window)
            count(window)
            if self.n > self._most:
                raise self._refusal()

    def _way(self, first: bytes) -> Callable[[bytes], None]:
        if self._are_lines:
            self.n = 0
            return self._lines
        if first == b"[":
            return self._scan
        self._most, self._refusal = self._of_values
        return self._values

    def _values(self, window: bytes) -> None:
        self.n += n_values(window) - 1

    def _lines(self, window: bytes) -> None:
        if self._is_in_line:
            _, mark, window = window.partition(b"\n")
            if not mark:
                return
        self.n += len(_line.findall(window))
        self._is_in_line = bool(window[window.rfind(b"\n") + 1 :].strip())

    def _scan(self, window: bytes) -> None:
        """Count the commas between elements: outside texts, in the outermost array."""
        text = self._escape + window
        self._escape = b""
        if b"\\" in text:
            n_last = len(text) - len(text.rstrip(b"\\"))
            if n_last % 2:
                text, self._escape = text[:-1], b"\\"
            text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
        marks = np.frombuffer(text.translate(None, _OTHERS), np.uint8)
        if self._is_in_text or b'"' in text:
            n_quotes = np.cumsum(marks == 0x22, dtype=np.uint8) + self._is_in_text
            is_inside = (n_quotes & 1).astype(bool)
            if len(marks):
                self._is_in_text = bool(is_inside[-1])
            marks = marks[~is_inside & (marks != 0x22)]
        if not len(marks):
            return
        sides = marks | SIDE
        steps = (sides == OPEN).astype(np.int32) - (sides == CLOSE)
        depths = self._depth + np.cumsum(steps, dtype=np.int32)
        self.n += int(np.count_nonzero((marks == COMMA) & (depths == 1)))
        self._depth = int(depths[-1])


LOOSE_PART = 4
"""What may be anything has so much less."""


class _Loose(msgspec.Struct, gc=False):
    """Members that are not what they seem: of any type, or a document once more."""

    attributes: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data_base64: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


_decode = msgspec.json.Decoder(_Loose).decode
_decode_text = msgspec.json.Decoder(str).decode


class Values:
    """Refuses documents with too many values: a step nobody interrupts is as long.

    Numbers of a field that is a vector are cheap. What may be anything becomes objects,
    each several times as dear: attributes, and documents of other formats.

    Parameters
    ----------
    most
        Values of a document of ours.

    Attributes
    ----------
    most_loose
        Values where each may be anything.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.most_loose = most // LOOSE_PART

    def check(self, document: bytes, *, is_own: bool = True) -> None:
        """Look at a document, or a request, that is no array of them.

        Raises
        ------
        Problem
        """
        if len(document) <= self.most_loose:
            return
        n = n_values(document)
        # Of a key that comes twice the decoder makes all, and this sees the last.
        n_keys = document.count(b"attributes") + document.count(b"\\u00")
        if n > (self.most if is_own and n_keys <= 1 else self.most_loose):
            raise self.too_many_values()
        try:
            loose = decoded(_decode, document)
        except msgspec.DecodeError:
            return  # it will be refused for that
        held = []
        if loose.attributes is not msgspec.UNSET:
            held.append(bytes(loose.attributes))
        if not is_own and loose.data_base64 is not msgspec.UNSET:
            # What is no text of base64 is refused for that, and the rest is looked at.
            with contextlib.suppress(msgspec.DecodeError, binascii.Error, ValueError):
                text = _decode_text(loose.data_base64)
                held.append(base64.b64decode(text, validate=True))
        if any(n_values(each) > self.most_loose for each in held):
            raise self.too_many_values()

    def elements(self) -> Elements:
        """What counts in a body that is one object."""
        refusal = self.too_many_values
        return Elements(self.most, refusal, self.most, refusal)

    def too_many_values(self) -> Problem:
        """There are."""
        return Problem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            "too-many",
            f"a document must hold at most {self.most:,} values (serve.values), "
            f"{self.most_loose:,} of them in attributes or in another format; this one "
            "holds more: send vectors as base64, or less at once",
            is_last=True,
        )
