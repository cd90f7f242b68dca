"""Vectors of front-door events: base64 of little-endian float32, or plain numbers."""

import base64
import binascii

import numpy as np
import numpy.typing as npt

from rankstream.events import LOGGED, Vector
from rankstream.exposures import pack_exposures
from streams.folds.refused import Refused, refuse

Order = npt.NDArray[np.int64]

SUM_TOLERANCE = 1e-4
"""By how much float32 exposures may sum to more than one."""


def _numbers(name: str, value: str | list[float]) -> npt.NDArray[np.float32]:
    if isinstance(value, str):
        try:
            numbers = np.frombuffer(base64.b64decode(value, validate=True), "<f4")
        except (binascii.Error, ValueError) as error:
            raise Refused(name, f"{name} must be base64 of float32; {error}") from error
    else:
        with np.errstate(over="ignore"):
            numbers = np.array(value, np.float64).astype("<f4")
    if not np.isfinite(numbers).all():
        refuse(name, f"{name} must be finite float32 numbers")
    return numbers


def vector(
    name: str, value: Vector | None, length: int
) -> npt.NDArray[np.float32] | None:
    """Numbers of a field, or None where it is absent."""
    if value is None:
        return None
    numbers = _numbers(name, value)
    if len(numbers) != length:
        refuse(name, f"{name} must hold {length} numbers; got {len(numbers)}")
    return numbers


def permuted(
    numbers: npt.NDArray[np.float32] | None, order: Order, n_rows: int
) -> bytes:
    """Rows in canonical order, as bytes; empty where absent."""
    if numbers is None:
        return b""
    return numbers.reshape(n_rows, -1)[order].tobytes()


def exposures_of(
    value: Vector | None, order: Order, shape: tuple[int, int], policy: int
) -> bytes:
    """Placement probabilities of candidates x ranks, in canonical order and packed."""
    n_rows, n_ranks = shape
    numbers = vector("exposures", value, n_rows * n_ranks)
    if numbers is None:
        if policy == LOGGED:
            refuse("exposures", "exposures must be given with policy logged")
        return b""
    matrix = numbers.reshape(n_rows, n_ranks)[order]
    largest = max(matrix.max(), matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    if matrix.min() < 0 or largest > 1 + SUM_TOLERANCE:
        refuse(
            "exposures",
            "exposures must be probabilities whose rows and columns sum to at most 1; "
            f"got {matrix.min():.6g} to {largest:.6g}",
        )
    return pack_exposures(matrix)


def feature_rows(
    value: str | list[list[float]] | None, n_shown: int
) -> tuple[bytes, int]:
    """Rows of the shown items as bytes, and how many features each has."""
    if value is None:
        return b"", 0
    if isinstance(value, str):
        numbers = _numbers("features", value)
        n_features, rest = divmod(len(numbers), n_shown)
        if rest or not n_features:
            refuse("features", f"features must be rows for {n_shown} shown items")
        return numbers.tobytes(), n_features
    lengths = {len(row) for row in value}
    if len(value) != n_shown or len(lengths) != 1 or 0 in lengths:
        refuse("features", f"features must be {n_shown} rows of one length")
    flat = [number for row in value for number in row]
    return _numbers("features", flat).tobytes(), lengths.pop()
