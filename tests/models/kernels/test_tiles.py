"""Products tile by tile are those of matrices, whatever tiles cover them."""

import numba
import numpy as np
import numpy.typing as npt
import pytest

from models.kernels.compilation import compiled
from models.kernels.tiles import LANES, ROWS, fill_products, sum_products

Singles = npt.NDArray[np.float32]


@pytest.mark.parametrize("n_rows", [1, 5, ROWS, 13])
@pytest.mark.parametrize("width", [1, 7, LANES, 40, 64, 80, 130])
@pytest.mark.parametrize("n_steps", [0, 1, 9])
def test_products_are_those_of_matrices(n_rows: int, width: int, n_steps: int) -> None:
    """In a wider array, of which nothing else is touched, and transposed too."""
    rng = np.random.default_rng(0)
    left = rng.normal(size=(n_rows, n_steps)).astype(np.float32)
    right = rng.normal(size=(n_steps, width)).astype(np.float32)
    expected = left.astype(np.float64) @ right

    for is_transposed in (False, True):
        out = np.full((n_rows, width + 3), 7.0, np.float32)
        strides = (1, n_rows) if is_transposed else (n_steps, 1)
        stored = np.ravel(left.T if is_transposed else left)
        fill_products(
            stored, strides, n_rows, n_steps, right.ravel(), width,
            out.ravel(), width + 3,
        )  # fmt: skip
        assert out[:, :width] == pytest.approx(expected, abs=1e-5)
        assert (out[:, width:] == 7.0).all()


@pytest.mark.parametrize("width", [7, 40, 130])
def test_equal_rows_have_equal_bits(width: int) -> None:
    """A row gives the same sums alone as in a tile of many."""
    rng = np.random.default_rng(1)
    left = rng.normal(size=(11, 50)).astype(np.float32)
    right = rng.normal(size=50 * width).astype(np.float32)
    together, alone = (np.empty((11, width), np.float32) for _ in range(2))

    fill_products(left, (50, 1), 11, 50, right, width, together, width)
    for row in range(11):
        fill_products(left[row], (50, 1), 1, 50, right, width, alone[row], width)

    assert together.tobytes() == alone.tobytes()


def test_inner_products() -> None:
    """From places within arrays, and of nothing."""
    rng = np.random.default_rng(2)
    one, other = rng.normal(size=(2, 60)).astype(np.float32)

    assert _inner(one, other, 3) == pytest.approx(one[2:50] @ other[5:53], rel=1e-5)
    assert _inner(one, other, 0) == 0.0


@pytest.mark.parametrize("wrong", [0, 1])
def test_other_numbers_than_singles_are_not_compiled(wrong: int) -> None:
    """Bytes of theirs would be read as numbers; whichever side has them."""
    sides: list[np.ndarray] = [np.ones(60, np.float32), np.ones(60, np.float32)]
    sides[wrong] = sides[wrong].astype(np.float64)

    with pytest.raises(numba.TypingError):
        _inner(sides[0], sides[1], 3)


@compiled
def _inner(one: Singles, other: Singles, n_vectors: int) -> float:
    return float(sum_products(one, other, (2, 5, n_vectors)))
