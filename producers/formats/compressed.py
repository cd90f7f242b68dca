"""Files that may be compressed: gzip and zstd are told by their first bytes."""

import contextlib
import gzip
import io
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, BinaryIO

import zstandard

from producers.formats.event import FormatError

CHUNK_BYTES = 1 << 18
GZIP_MAGIC = b"\x1f\x8b"
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, zstandard.ZstdError)
"""What reading a half-broken compressed file raises."""


class _ZstdFrames(io.RawIOBase):
    """The content of zstd frames one after another; a cut frame is an error."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._frame: zstandard.ZstdDecompressionObj | None = None
        self._ready = b""
        self._left = b""

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        """Fill `buffer` with what comes next; 0 at the end."""
        while not self._ready:
            chunk = self._left or self._file.read(CHUNK_BYTES)
            self._left = b""
            if not chunk:
                if self._frame is not None:
                    raise EOFError("the zstd frame is cut off")
                return 0
            self._decompress(chunk)
        n = min(len(buffer), len(self._ready))
        buffer[:n] = self._ready[:n]
        self._ready = self._ready[n:]
        return n

    def close(self) -> None:
        """Close the file beneath, too."""
        self._file.close()
        super().close()

    def _decompress(self, chunk: bytes) -> None:
        if self._frame is None:
            self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._ready = self._frame.decompress(chunk)
        if self._frame.eof:
            self._left = self._frame.unused_data
            self._frame = None


def open_content(path: Path) -> IO[bytes]:
    """The decompressed content of a file, to be closed by the caller.

    Raises
    ------
    FormatError
        Where it cannot be opened.
    """
    try:
        file = path.open("rb")
        start = file.read(4)
        file.seek(0)
    except OSError as error:
        raise FormatError(
            path, None, f"a file must be readable; {error.strerror}"
        ) from error
    if start.startswith(GZIP_MAGIC):
        file.close()
        return io.BufferedReader(gzip.open(path, "rb"), CHUNK_BYTES)  # type: ignore[arg-type]
    if start == ZSTD_MAGIC:
        return io.BufferedReader(_ZstdFrames(file), CHUNK_BYTES)
    return file


@contextlib.contextmanager
def open_new(path: Path) -> Iterator[IO[bytes]]:
    """A file to write, compressed as its name says, that appears when complete."""
    unfinished = path.with_name(f".{path.name}.part")
    try:
        with contextlib.ExitStack() as stack:
            file: IO[bytes] = stack.enter_context(unfinished.open("wb"))
            if path.suffix == ".gz":
                file = stack.enter_context(gzip.open(file, "wb", compresslevel=6))
            elif path.suffix == ".zst":
                file = stack.enter_context(
                    zstandard.ZstdCompressor(level=3).stream_writer(file)
                )
            yield file
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """Line numbers from 1 and lines without their ends; empty ones are left out.

    Raises
    ------
    FormatError
        Where the file cannot be read to its end.
    """
    number = 0
    with open_content(path) as file:
        try:
            for number, line in enumerate(file, 1):
                text = line.strip()
                if text:
                    yield number, text
        except (*DAMAGED, OSError) as error:
            raise FormatError(
                path, number + 1, f"a file must be readable to its end; {error}"
            ) from error
