"""Products of matrices, one tile after another, each summed in registers, compiled.

The compiler keeps elements of arrays in memory, so that a loop over rows, steps and
columns reads and writes a sum at every step. Here the sums of a tile, `ROWS` rows by
four or one vectors of `LANES` columns, stay where they are added until all is added.

Every sum is added in the order of its steps, whatever tile it is in, so that equal
rows give equal bits. A product is added without being rounded first where the machine
can do so: the same bits on every run, but not on all kinds of machines.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
from llvmlite import ir  # type: ignore[import-untyped,unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from models.compilation import compiled

Singles = npt.NDArray[np.float32]

ROWS = 6
"""Rows of a tile: six times four vectors are as many as have names in a machine."""

LANES = 16
"""Numbers of a vector; narrower machines take two or four at a time for one."""

WIDE = 4
"""Vectors of the widest tile, side by side."""

_SINGLE = ir.FloatType()
_VECTOR = ir.VectorType(_SINGLE, LANES)
_BYTES = 4


def _tile(n_rows: int, n_vectors: int) -> Any:
    """The machine code of one size of tile."""

    def fill(  # noqa: PLR0913  as machine code takes it
        _typing_context: Any,
        left: Any,
        at: Any,
        row_stride: Any,
        step_stride: Any,
        right: Any,
        start: Any,
        width: Any,
        n_steps: Any,
        out: Any,
        place: Any,
        out_stride: Any,
    ) -> Any:
        """Type and code of the product."""

        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            def memory(number: int) -> Any:
                array = signature.args[number]
                return context.make_array(array)(
                    context, builder, arguments[number]
                ).data

            at, row_stride, step_stride = arguments[1:4]
            start, width, n_steps = arguments[5:8]
            place, out_stride = arguments[9:]
            index = at.type
            rows = [
                builder.add(at, builder.mul(row_stride, index(row)))
                for row in range(n_rows)
            ]
            sums = [
                [
                    cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, None))
                    for _ in range(n_vectors)
                ]
                for _ in range(n_rows)
            ]
            with cgutils.for_range(builder, n_steps) as loop:
                begin = builder.add(start, builder.mul(loop.index, width))
                vectors = [
                    builder.load(
                        _vector_at(builder, memory(4), begin, column), align=_BYTES
                    )
                    for column in range(n_vectors)
                ]
                moved = builder.mul(loop.index, step_stride)
                for row in range(n_rows):
                    single = builder.load(
                        builder.gep(memory(0), [builder.add(rows[row], moved)])
                    )
                    same = _repeated(builder, single)
                    for column in range(n_vectors):
                        total = builder.load(sums[row][column])
                        added = _added(builder, same, vectors[column], total)
                        builder.store(added, sums[row][column])
            for row in range(n_rows):
                begin = builder.add(place, builder.mul(out_stride, index(row)))
                for column in range(n_vectors):
                    builder.store(
                        builder.load(sums[row][column]),
                        _vector_at(builder, memory(8), begin, column),
                        align=_BYTES,
                    )
            return context.get_dummy_value()

        if not all(_is_flat(array) for array in (left, right, out)):
            return None
        places = [types.intp] * 3
        signature = types.void(left, *places, right, *places, out, *places[:2])
        return signature, code

    return intrinsic(fill)


def _is_flat(array: Any) -> bool:
    """Whether these are float32 numbers end to end."""
    is_single = isinstance(array, types.Array) and array.dtype == types.float32
    return is_single and array.layout == "C"


def _vector_at(builder: Any, memory: Any, begin: Any, column: int) -> Any:
    """Address of a vector that begins so many numbers after `begin`."""
    place = builder.add(begin, begin.type(column * LANES))
    return builder.bitcast(builder.gep(memory, [place]), _VECTOR.as_pointer())


def _repeated(builder: Any, single: Any) -> Any:
    """A vector with the same number in all lanes."""
    unknown = ir.Constant(_VECTOR, ir.Undefined)
    number = ir.IntType(32)
    first = builder.insert_element(unknown, single, number(0))
    nowhere = ir.Constant(ir.VectorType(number, LANES), None)
    return builder.shuffle_vector(first, unknown, nowhere)


def _added(builder: Any, one: Any, other: Any, total: Any) -> Any:
    """one * other + total."""
    insert: Any = cgutils.get_or_insert_function
    function = insert(
        builder.module,
        ir.FunctionType(_VECTOR, [_VECTOR] * 3),
        f"llvm.fmuladd.v{LANES}f32",
    )
    return builder.call(function, [one, other, total])


def _sum_products(
    _typing_context: Any, one: Any, at: Any, other: Any, start: Any, n_vectors: Any
) -> Any:
    """Type and code of an inner product."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        first, second = (
            context.make_array(signature.args[number])(
                context, builder, arguments[number]
            ).data
            for number in (0, 2)
        )
        total = cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, None))
        with cgutils.for_range(builder, arguments[4]) as loop:
            moved = builder.mul(loop.index, loop.index.type(LANES))
            pair = [
                builder.load(
                    _vector_at(builder, memory, builder.add(begin, moved), 0),
                    align=_BYTES,
                )
                for memory, begin in ((first, arguments[1]), (second, arguments[3]))
            ]
            builder.store(_added(builder, *pair, builder.load(total)), total)
        sums, size = builder.load(total), LANES
        while size > 1:
            size //= 2
            nothing = ir.Constant(sums.type, ir.Undefined)
            halves = [
                builder.shuffle_vector(
                    sums,
                    nothing,
                    ir.Constant(
                        ir.VectorType(ir.IntType(32), size),
                        list(range(begin, begin + size)),
                    ),
                )
                for begin in (0, size)
            ]
            sums = builder.fadd(*halves)
        return builder.extract_element(sums, ir.IntType(32)(0))

    if not (_is_flat(one) and _is_flat(other)):
        return None
    places = types.intp
    return types.float32(one, places, other, places, places), code


sum_products: Any = intrinsic(_sum_products)
"""sum_products(one, at, other, start, n_vectors): the inner product of numbers."""

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

    All lie end to end in memory: `left` with `strides` from row to row and from step
    to step, `right` as [n_steps, width], `out` with a stride from row to row. What
    whole tiles do not cover, the last one covers together with some sums once more.
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
            to = place + column
            if is_wide and n_now == ROWS:
                _fill_wide_rows(
                    left, at, by_row, by_step,
                    right, column, width, n_steps, out, to, out_stride,
                )  # fmt: skip
            elif is_wide:
                _fill_wide_row(
                    left, at, by_row, by_step,
                    right, column, width, n_steps, out, to, out_stride,
                )  # fmt: skip
            elif n_now == ROWS:
                _fill_rows(
                    left, at, by_row, by_step,
                    right, column, width, n_steps, out, to, out_stride,
                )  # fmt: skip
            else:
                _fill_row(
                    left, at, by_row, by_step,
                    right, column, width, n_steps, out, to, out_stride,
                )  # fmt: skip
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
