"""How kernels are compiled: cached on disk, and run without the interpreter's lock.

A cache is one of exactly the kernel's file and all that it imports of ours. Numba
itself looks at the file of a kernel only: where something that it inlines has changed,
it runs the old code, and where a module was renamed it does not start.

No fast-math and no threads, so that a kernel gives the same bits on every run. What
only simulations run may be `fused`: the same bits on every run of one machine.
"""

import hashlib
import os
import re
import shutil
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.event import Listener, install_listener

Number = Any
"""An integer inside compiled code, as wide as the compiler finds it must be."""

Function = TypeVar("Function", bound=Callable[..., object])


ROOT = Path(__file__).parents[2]
"""Where our packages lie."""

_ours = re.compile(
    rb"^\s*(?:from|import) ((?:models|streams|rankstream)[\w.]*)(?: import (.*))?", re.M
)


@cache
def _closure(module: str, root: Path) -> frozenset[Path]:
    """The files of a module and of what it imports of ours, and so on."""
    found: set[Path] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = root.joinpath(*name.split(".")).with_suffix(".py")
        if path in found or not path.is_file():
            continue
        found.add(path)
        for package, names in _ours.findall(path.read_bytes()):
            parent = package.decode()
            waiting.append(parent)
            waiting += [
                f"{parent}.{one.split()[0]}"
                for one in names.decode().split(",")
                if one.strip(" (")
            ]
    return frozenset(found)


@cache
def cache_folder(module: str, root: Path, base: Path) -> Path:
    """Where kernels of a module, as its sources are now, are kept.

    Parameters
    ----------
    root
        Where our packages lie.
    base
        Where caches lie.
    """
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(_closure(module, root)):
        digest.update(f"{path.relative_to(root)}\0".encode())
        digest.update(path.read_bytes())
    return base / f"{module}-{digest.hexdigest()}"


@cache
def _keep_kernels_of(module: str) -> str:
    """The folder for a module's kernels, without stale ones; "" is Numba's own."""
    wanted = os.environ.get("NUMBA_CACHE_DIR")
    base = Path(wanted) if wanted else Path(__file__).parent / "__pycache__"
    folder = cache_folder(module, ROOT, base)
    if not folder.is_dir():
        stale = list(base.glob(f"{module}-*"))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError:  # not ours to write to
            return wanted or ""
        for one in stale:
            with suppress(OSError):
                shutil.rmtree(one)
    return str(folder) if os.access(folder, os.W_OK) else wanted or ""


class _Cache(FunctionCache):
    """Numba's cache, without which a kernel runs all the same."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, if there is room."""
        try:
            cast("Any", super()).save_overload(sig, data)
        except OSError as error:
            _tell_unkept(error.strerror)


@cache
def _tell_unkept(reason: str) -> None:
    """Say once for each reason what a start will take."""
    warnings.warn(
        f"compiled kernels must be written to their cache; {reason}: they are compiled "
        "again at each start, for up to a minute or two (NUMBA_CACHE_DIR names a "
        "folder elsewhere)",
        RuntimeWarning,
        stacklevel=1,
    )


class _Told(Listener):
    """Counts kernels whose compilation begins, and tells how many."""

    def __init__(self, tell: Callable[[int], object]) -> None:
        self._tell = tell
        self._n_begun = 0

    def on_start(self, event: Any) -> None:
        """Tell of one more."""
        del event
        self._n_begun += 1
        self._tell(self._n_begun)

    def on_end(self, event: Any) -> None:
        """Nothing is told of an end."""


def telling_of_compilation(
    tell: Callable[[int], object],
) -> AbstractContextManager[object]:
    """Tell how many kernels were compiled so far, at the beginning of each.

    What is kept from before is not compiled, and not told of. `tell` is called by the
    thread that compiles.
    """
    manager: AbstractContextManager[object] = install_listener(
        "numba:compile", _Told(tell)
    )
    return manager


def _made(function: Function, **options: Any) -> Function:
    """The function as machine code, cached beside what else its module has."""
    # Numba reads this while it decorates.
    cast("Any", config).CACHE_DIR = _keep_kernels_of(function.__module__)
    made: Any = numba.njit(nogil=True, **options)(function)
    made._cache = cast("Any", _Cache)(function)  # noqa: SLF001  it has no setter for another one
    return cast("Function", made)


def compiled(function: Function) -> Function:
    """The function as machine code."""
    return _made(function)


def fused(function: Function) -> Function:
    """The function as machine code that adds products without rounding them first.

    Not all kinds of machines can, so that its bits may differ between them.
    """
    return _made(function, fastmath={"contract"}, error_model="numpy")


def inlined(function: Function) -> Function:
    """The function as machine code that becomes part of its callers.

    A call would pass the whole of the tables and count references to each.
    """
    return _made(function, forceinline=True)
