"""How kernels are compiled: cached on disk, and run without the interpreter's lock.

The cache is one of exactly these sources. Numba itself looks at the file of a kernel
only: where something that it inlines has changed, it runs the old code, and where a
module was renamed it does not start.

No fast-math and no threads, so that a kernel gives the same bits on every run. What
only simulations run may be `fused`: the same bits on every run of one machine.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config

Number = Any
"""An integer inside compiled code, as wide as the compiler finds it must be."""

Function = TypeVar("Function", bound=Callable[..., object])


ROOT = Path(__file__).parents[2]
"""Where `models` lies, and other packages that have kernels."""

FOLDER = "rankstream-kernels-"


def cache_folder(root: Path, base: Path) -> Path:
    """Where kernels of exactly these sources are kept.

    Parameters
    ----------
    root
        Where the packages `models` and `streams` lie.
    base
        Where caches lie.
    """
    digest = hashlib.blake2b(digest_size=8)
    for package in ("models", "streams"):
        for path in sorted((root / package).rglob("*.py")):
            digest.update(f"{path.relative_to(root)}\0".encode())
            digest.update(path.read_bytes())
    return base / (FOLDER + digest.hexdigest())


def _use_own_cache() -> None:
    """Keep kernels beside this file, else where Numba would, without stale ones."""
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(wanted) if wanted else Path(__file__).parent / "__pycache__"
    folder = cache_folder(ROOT, base)
    if not folder.is_dir():
        stale = list(base.glob(FOLDER + "*"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:  # not ours to write to
            return
        for one in stale:
            with suppress(OSError):
                shutil.rmtree(one)
    if os.access(folder, os.W_OK):
        cast(Any, config).CACHE_DIR = str(folder)


_use_own_cache()


def compiled(function: Function) -> Function:
    """The function as machine code."""
    made: Any = numba.njit(cache=True, nogil=True)(function)
    return cast("Function", made)


def fused(function: Function) -> Function:
    """The function as machine code that adds products without rounding them first.

    Not all kinds of machines can, so that its bits may differ between them.
    """
    made: Any = numba.njit(
        cache=True, nogil=True, fastmath={"contract"}, error_model="numpy"
    )(function)
    return cast("Function", made)


def inlined(function: Function) -> Function:
    """The function as machine code that becomes part of its callers.

    A call would pass the whole of the tables and count references to each.
    """
    made: Any = numba.njit(cache=True, nogil=True, forceinline=True)(function)
    return cast("Function", made)
