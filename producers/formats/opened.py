"""Files opened by their ending: plain, .gz or .zst."""

import gzip
import io
from pathlib import Path
from typing import BinaryIO, cast

import zstandard


class FileUnreadable(ValueError):
    """A file cannot be read as what it should be; says the file, line and reason.

    Operator action: correct the named line, or leave the file out.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{reason}; at {where}")


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked by its ending.

    Raises
    ------
    FileUnreadable
        Where it cannot be opened.
    """
    try:
        if path.suffix == ".gz":
            return cast("BinaryIO", gzip.open(path, "rb"))
        if path.suffix == ".zst":
            reader = zstandard.ZstdDecompressor().stream_reader(path.open("rb"))
            return cast("BinaryIO", io.BufferedReader(reader))
        return path.open("rb")
    except OSError as error:
        raise FileUnreadable(
            path, 0, f"a file must be readable; {error.strerror}"
        ) from error


UNPACKING_ERRORS = (OSError, EOFError, zstandard.ZstdError)
"""What reading a damaged packed file raises."""
