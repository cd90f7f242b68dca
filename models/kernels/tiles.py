"""Products of matrices, one tile after another, each summed in registers, compiled.

The compiler keeps elements of arrays in memory, so that a loop over rows, steps and
columns reads and writes a sum at every step. Here the sums of a tile, `ROWS` rows by
four or one vectors of `LANES` columns, stay where they are added until all is added.

Every sum is added in the order of its steps, whatever tile it is in, so that equal
rows give equal bits. A product is added without being rounded first where the machine
can do so: the same bits on every run, but not on all kinds of machines.
"""

import itertools
from functools import partial
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from models.arrays import Singles
from models.kernels.compilation import compiled

ROWS = 6
"""Rows of a tile: six times four vectors are as many as have names in a machine."""

LANES = 16
"""Numbers of a vector; narrower machines take two or four at a time for one."""

WIDE = 4
"""Vectors of the widest tile, side by side."""

_SINGLE = ir.FloatType()
_VECTOR = ir.VectorType(_SINGLE, LANES)
_BYTES = 4


_integers: Any = partial(types.UniTuple, types.intp)
_unpacked: Any = cgutils.unpack_tuple


def _tile(n_rows: int, n_vectors: int) -> Any:
    """The machine code of one size of tile."""

    def fill(_typing_context: Any, left: Any, right: Any, out: Any, places: Any) -> Any:
        """Type and code of the product."""

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            memories = _memories(context, builder, signature, arguments[:3])
            _fill_tile(builder, memories, arguments[3], n_rows, n_vectors)
            return context.get_dummy_value()

        if not (_is_flat(left) and _is_flat(right) and _is_flat(out)):
            return None
        return types.void(left, right, out, _integers(len(places))), code

    return intrinsic(fill)


def _fill_tile(
    builder: Any, memories: list[Any], places: Any, n_rows: int, n_vectors: int
) -> None:
    """Code that sums a tile, and writes it; see `fill_products` for the places."""
    left, right, out = memories
    at, by_row, by_step, start, width, n_steps, to, out_stride = _unpacked(
        builder, places
    )
    tile = list(itertools.product(range(n_rows), range(n_vectors)))
    sums = {place: _nothing(builder) for place in tile}
    begins = [
        builder.add(at, builder.mul(by_row, at.type(row))) for row in range(n_rows)
    ]
    with cgutils.for_range(builder, n_steps) as loop:
        begin = builder.add(start, builder.mul(loop.index, width))
        vectors = [_load(builder, right, begin, column) for column in range(n_vectors)]
        moved = builder.mul(loop.index, by_step)
        for row in range(n_rows):
            address = builder.gep(left, [builder.add(begins[row], moved)])
            same = _repeated(builder, builder.load(address))
            for column in range(n_vectors):
                total = sums[row, column]
                _add_product(builder, same, vectors[column], total)
    for row, column in tile:
        begin = builder.add(to, builder.mul(out_stride, to.type(row)))
        address = _vector_at(builder, out, begin, column)
        builder.store(builder.load(sums[row, column]), address, align=_BYTES)


def _memories(context: Any, builder: Any, signature: Any, arrays: Any) -> list[Any]:
    """Where the numbers of the first arguments begin."""
    return [
        context.make_array(kind)(context, builder, array).data
        for kind, array in zip(signature.args, arrays, strict=False)
    ]


def _nothing(builder: Any) -> Any:
    """A sum that has begun, in a register as long as nobody asks for its address."""
    begun: Any = cgutils.alloca_once_value
    return begun(builder, ir.Constant(_VECTOR, None))


def _is_flat(array: Any) -> bool:
    """Whether these are float32 numbers end to end."""
    is_single = isinstance(array, types.Array) and array.dtype == types.float32
    return is_single and array.layout == "C"


def _vector_at(builder: Any, memory: Any, begin: Any, column: int) -> Any:
    """Address of a vector that begins so many numbers after `begin`."""
    place = builder.add(begin, begin.type(column * LANES))
    return builder.bitcast(builder.gep(memory, [place]), _VECTOR.as_pointer())


def _load(builder: Any, memory: Any, begin: Any, column: int) -> Any:
    """The vector there, wherever it lies."""
    return builder.load(_vector_at(builder, memory, begin, column), align=_BYTES)


def _repeated(builder: Any, single: Any) -> Any:
    """A vector with the same number in all lanes."""
    unknown = ir.Constant(_VECTOR, ir.Undefined)
    number = ir.IntType(32)
    first = builder.insert_element(unknown, single, number(0))
    nowhere = ir.Constant(ir.VectorType(number, LANES), None)
    return builder.shuffle_vector(first, unknown, nowhere)


def _add_product(builder: Any, one: Any, other: Any, total: Any) -> None:
    """Code that adds one * other to a sum."""
    insert: Any = cgutils.get_or_insert_function
    function = insert(
        builder.module,
        ir.FunctionType(_VECTOR, [_VECTOR] * 3),
        f"llvm.fmuladd.v{LANES}f32",
    )
    added = builder.call(function, [one, other, builder.load(total)])
    builder.store(added, total)


def _sum_products(_typing_context: Any, one: Any, other: Any, places: Any) -> Any:
    """Type and code of an inner product."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = _memories(context, builder, signature, arguments[:2])
        at, start, n_vectors = _unpacked(builder, arguments[2])
        total = _nothing(builder)
        with cgutils.for_range(builder, n_vectors) as loop:
            moved = builder.mul(loop.index, at.type(LANES))
            left = _load(builder, first, builder.add(at, moved), 0)
            right = _load(builder, second, builder.add(start, moved), 0)
            _add_product(builder, left, right, total)
        return _sum_of_lanes(builder, builder.load(total))

    if not (_is_flat(one) and _is_flat(other)):
        return None
    return types.float32(one, other, _integers(len(places))), code


def _sum_of_lanes(builder: Any, sums: Any) -> Any:
    """The sum of a vector's numbers, half upon half."""
    size = LANES
    while size > 1:
        size //= 2
        kind = ir.VectorType(ir.IntType(32), size)
        unknown = ir.Constant(sums.type, ir.Undefined)
        lower, upper = (
            builder.shuffle_vector(
                sums, unknown, ir.Constant(kind, list(range(begin, begin + size)))
            )
            for begin in (0, size)
        )
        sums = builder.fadd(lower, upper)
    return builder.extract_element(sums, ir.IntType(32)(0))


sum_products: Any = intrinsic(_sum_products)
"""sum_products(one, other, (at, start, n_vectors)): the inner product of numbers.

They are whole vectors, from two places on.
"""

_fill_wide_rows: Any = _tile(ROWS, WIDE)
_fill_wide_row: Any = _tile(1, WIDE)
_fill_rows: Any = _tile(ROWS, 1)
_fill_row: Any = _tile(1, 1)


@compiled
def fill_products(  # noqa: PLR0913  a kernel takes plain arrays
    left: Singles,
    strides: tuple[int, int],
    n_rows: int,
    n_steps: int,
    right: Singles,
    width: int,
    out: Singles,
    out_stride: int,
) -> None:
    """Fill out[row, column] with the sum over steps of left[row, step] * right.

    All are in one piece. What whole tiles do not cover, the last one covers together
    with some sums once more.

    Parameters
    ----------
    left : [..]
        Number row * strides[0] + step * strides[1] of it is left[row, step].
    right : [at least n_steps * width]
        [n_steps, width] end to end.
    out : [..]
        Number row * out_stride + column of it is out[row, column].
    """
    if width < LANES:
        _fill_narrow(left, strides, n_rows, n_steps, right, width, out, out_stride)
        return
    by_row, by_step = strides
    n_now: int = ROWS if n_rows >= ROWS else 1
    for r in range(0, n_rows, n_now):
        row = min(r, n_rows - n_now)
        at, place = row * by_row, row * out_stride
        c = 0
        while c < width:
            is_wide = c + WIDE * LANES <= width
            column = c if is_wide else min(c, width - LANES)
            places = (
                at, by_row, by_step, column, width, n_steps, place + column, out_stride
            )  # fmt: skip
            if is_wide and n_now == ROWS:
                _fill_wide_rows(left, right, out, places)
            elif is_wide:
                _fill_wide_row(left, right, out, places)
            elif n_now == ROWS:
                _fill_rows(left, right, out, places)
            else:
                _fill_row(left, right, out, places)
            c += WIDE * LANES if is_wide else LANES


@compiled
def _fill_narrow(  # noqa: PLR0913  a kernel takes plain arrays
    left: Singles,
    strides: tuple[int, int],
    n_rows: int,
    n_steps: int,
    right: Singles,
    width: int,
    out: Singles,
    out_stride: int,
) -> None:
    """The same for rows that are shorter than a vector."""
    for row in range(n_rows):
        sums = out.reshape(-1)[row * out_stride : row * out_stride + width]
        sums[:] = np.float32(0.0)
        for step in range(n_steps):
            value = left.reshape(-1)[row * strides[0] + step * strides[1]]
            for column in range(width):
                sums[column] += value * right[step * width + column]
