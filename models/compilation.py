"""How kernels are compiled: cached on disk, and run without the interpreter's lock.

No fast-math and no threads, so that a kernel gives the same bits on every run.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def compiled(function: Function) -> Function:
    """The function as machine code."""
    made: Any = numba.njit(cache=True, nogil=True)(function)
    return cast("Function", made)
