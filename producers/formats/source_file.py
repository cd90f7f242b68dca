"""Files that may be packed, by their first bytes: as lines, or as JSON documents."""

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

import msgspec
import zstandard

from rankstream.private_files import created_privately

CHUNK_BYTES = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

UNPACKING_ERRORS = (OSError, EOFError, zlib.error, zstandard.ZstdError)
"""What reading a damaged packed file raises."""


class FileUnreadable(ValueError):
    """A file cannot be read as what it should be; says the file, line and reason.

    Operator action: correct the named line, or leave the file out.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{reason}; at {where}")
        self.path = path
        self.line = line


class _ZstdFrames(io.RawIOBase):
    """The content of zstd frames one after another; a cut frame is an error."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = memoryview(b"")
        self._left = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Fill `buffer` with what comes next; 0 at the end."""
        while not self._ready:
            chunk = self._left or self._file.read(CHUNK_BYTES)
            self._left = b""
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the zstd frame is cut off")
                return 0
            self._unpack(chunk)
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        """Close the file beneath, too."""
        self._file.close()
        super().close()

    def _unpack(self, chunk: bytes) -> None:
        if self._frame is None:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = memoryview(self._frame.decompress(chunk))
        if self._frame.eof:
            self._left = self._frame.unused_data
            self._frame = None


class _GzipContent(gzip.GzipFile):
    """A gzip file that closes the file beneath."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._beneath = file

    def close(self) -> None:
        """Close both."""
        super().close()
        self._beneath.close()


def opened(path: Path) -> IO[bytes]:
    """The content of a file, unpacked, to be closed by the caller.

    Raises
    ------
    FileUnreadable
        Where it cannot be opened.
    """
    try:
        file = path.open("rb")
        start = file.peek(4)
    except OSError as error:
        raise FileUnreadable(
            path, 0, f"a file must be readable; {error.strerror}"
        ) from error
    if start.startswith(GZIP_MAGIC):
        return io.BufferedReader(_GzipContent(file), CHUNK_BYTES)
    if start.startswith(ZSTD_MAGIC):
        return io.BufferedReader(_ZstdFrames(file), CHUNK_BYTES)
    return file


@contextlib.contextmanager
def created(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, packed as its name says, that appears when it is complete.

    Its owner alone may read it.
    """
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with contextlib.ExitStack() as stack:
            file: IO[bytes] = stack.enter_context(created_privately(unfinished))
            if path.suffix == ".gz":
                packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=6)
                file = cast("IO[bytes]", stack.enter_context(packed))
            elif path.suffix == ".zst":
                packer = zstandard.ZstdCompressor(level=3, write_checksum=True)
                file = stack.enter_context(packer.stream_writer(file, closefd=False))
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 and stripped lines; empty ones are left out.

    Raises
    ------
    FileUnreadable
        Where the file cannot be read to its end.
    """
    number = 0
    with opened(path) as file:
        lines = enumerate(file, 1)
        while True:
            try:
                number, line = next(lines, (0, b""))
            except UNPACKING_ERRORS as error:
                raise FileUnreadable(
                    path, number + 1, f"a file must be readable to its end; {error}"
                ) from error
            if not number:
                return
            text = line.strip()
            if text:
                yield number, text


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
    for number, line in lines_of(path):
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
