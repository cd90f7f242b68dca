"""Files with what users did: nobody but their owner may read them."""

import os
from pathlib import Path
from typing import BinaryIO

MODE = 0o600


def created_privately(path: Path) -> BinaryIO:
    """A new file to write, in place of one that may be there.

    Raises
    ------
    OSError
    """
    path.unlink(missing_ok=True)  # it would keep its own mode
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    return os.fdopen(os.open(path, flags, MODE), "wb")
