"""128-bit digests of bytes in compiled loops: names of places and models.

Not for bytes that somebody chooses in order to make two equal: whoever may write
`queries` decides what is counted anyway.
"""

from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from models.kernels.compilation import Number, inlined

Bytes = NDArray[np.uint8]


def _word_at(_typing_context: Any, data: Any, at: Any) -> Any:
    """Type and code of an unaligned read."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        made = context.make_array(signature.args[0])(context, builder, arguments[0])
        place = builder.gep(made.data, [arguments[1]])
        word = builder.bitcast(place, ir.IntType(64).as_pointer())
        return builder.load(word, align=1, typ=ir.IntType(64))

    return types.uint64(data, at), code


word_at: Any = intrinsic(_word_at)
"""word_at(data, at): eight bytes as a little-endian number, wherever they begin."""


def _folded(_typing_context: Any, left: Any, right: Any) -> Any:
    """Type and code of the product's halves, one over the other."""

    def code(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(each, wide) for each in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return builder.xor(high, builder.trunc(product, word))

    return types.uint64(left, right), code


folded: Any = intrinsic(_folded)
"""folded(a, b): the two halves of the 128-bit product, combined."""

_SECRETS = (0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0xD6E8FEB86659FD93)
_S0, _S1, _S2 = (np.uint64(secret) for secret in _SECRETS)


@inlined
def hashed(data: Bytes, start: Number, end: Number, seeds: Any) -> Number:
    """128 bits that name a span after what `seeds` name, as two numbers.

    `data` [n_bytes] goes on for 15 bytes or more behind the span.
    """
    first, second = seeds
    first = folded(first ^ _S0, np.uint64(end - start) ^ _S1)
    at = start
    while at < end:
        left, right = word_at(data, at), word_at(data, at + 8)
        if at + 16 > end:
            # Bytes behind the end are somebody else's.
            n_left = min(8, end - at)
            left &= np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * n_left)
            n_right = end - at - 8
            if n_right <= 0:
                right = np.uint64(0)
            else:
                right &= np.uint64(0xFFFFFFFFFFFFFFFF) >> np.uint64(64 - 8 * n_right)
        first = folded(left ^ _S1, right ^ first)
        second = folded(left ^ second, right ^ _S2)
        at += 16
    return first, second ^ first
