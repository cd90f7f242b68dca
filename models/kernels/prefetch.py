"""Prefetch: a hint to the processor that a place of an array will be read soon.

It changes no value; a loop that knows where it reads next need not wait for memory.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from models.kernels.compilation import compiled

CACHE_LINE = 16
"""Float32 numbers that memory brings at once."""

_READ, _KEEP, _VALUES = 0, 3, 1


def _prefetch(_typing_context: Any, array: Any, index: Any) -> Any:
    """Type and code of the hint."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        insert: Any = cgutils.get_or_insert_function
        hint = insert(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte, number, number, number]),
            "llvm.prefetch.p0i8",
        )
        place = builder.bitcast(builder.gep(made.data, [arguments[1]]), byte)
        builder.call(hint, [place, number(_READ), number(_KEEP), number(_VALUES)])
        return context.get_dummy_value()

    return types.void(array, index), code


prefetch: Any = intrinsic(_prefetch)
"""prefetch(array, index): ask for the cache line of an element of a 1-d array."""


@compiled
def ask_for(values: npt.NDArray[np.float32], begin: int, end: int) -> None:
    """Bring `values` [n] from begin to end, or to n, near before they are needed."""
    for at in range(begin, min(end, values.shape[0]), CACHE_LINE):
        prefetch(values, at)
