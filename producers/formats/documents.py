"""JSON documents in files of other systems: a line each, or in an array."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from producers.formats.source_file import (
    BYTE_ORDER_MARK,
    UNPACKING_ERRORS,
    FileUnreadable,
    opened,
)
from producers.formats.source_file import lines_of as stripped_lines

BULK_ACTIONS = ("index", "create", "update", "delete")

_decode_array = msgspec.json.Decoder(list[msgspec.Raw]).decode
_decode_object = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode = msgspec.json.Decoder().decode

_UNREADABLE = (msgspec.DecodeError, RecursionError, UnicodeError)


def documents_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The documents of a file, each with its line; elements of an array have its line.

    A line may be an array of documents, and so may the whole file. Lines that say what
    a bulk request does with the next one are left out.

    Raises
    ------
    FileUnreadable
        Where the file cannot be read to its end, or begins with no JSON at all: then
        none of it is any.
    """
    is_first = True
    for number, line in stripped_lines(path):
        text = line.removeprefix(BYTE_ORDER_MARK) if is_first else line
        if is_first and not _is_json(text):
            yield from _of_whole(path, number)
            return
        is_first = False
        yield from ((number, each) for each in documents_in(text))


def documents_in(line: bytes) -> list[bytes]:
    """The documents of a line; the line itself where it is no array of them."""
    if line[:1] == b"[":
        try:
            return [bytes(each) for each in _decode_array(line)]
        except _UNREADABLE:
            return [line]
    return [] if is_bulk_action(line) else [line]


def is_bulk_action(line: bytes) -> bool:
    """Whether a line says what a bulk request does with the next one."""
    # Asked of every line: only those that begin like an action are decoded.
    start = line[1:24].lstrip()
    if not any(start.startswith(b'"%b"' % name.encode()) for name in BULK_ACTIONS):
        return False
    try:
        fields = _decode_object(line)
    except _UNREADABLE:
        return False
    (name, action), *others = fields.items()
    return not others and name in BULK_ACTIONS and bytes(action)[:1] == b"{"


def _of_whole(path: Path, number: int) -> Iterator[tuple[int, bytes]]:
    """The elements of a file that is one array over many lines."""
    try:
        with opened(path) as file:
            content = file.read()
    except UNPACKING_ERRORS as error:
        raise FileUnreadable(
            path, 0, f"a file must be readable to its end; {error}"
        ) from error
    try:
        elements: Iterable[msgspec.Raw] = _decode_array(
            content.strip().removeprefix(BYTE_ORDER_MARK)
        )
    except _UNREADABLE as error:
        raise FileUnreadable(
            path,
            number,
            "a file must hold JSON, a document a line or all in one array; "
            f"{error}; correct --format",
        ) from error
    for element in elements:
        yield number, bytes(element)


def _is_json(text: bytes) -> bool:
    try:
        _decode(text)
    except _UNREADABLE:
        return False
    return True
