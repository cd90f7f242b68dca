"""How kernels are compiled: cached on disk, and run without the interpreter's lock.

No fast-math and no threads, so that a kernel gives the same bits on every run. What
only simulations run may be `fused`: the same bits on every run of one machine.
"""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Number = Any
"""An integer inside compiled code, as wide as the compiler finds it must be."""

Function = TypeVar("Function", bound=Callable[..., object])


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
