"""Vectors of input events: base64 of little-endian float32, or plain numbers."""

import base64
import binascii
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from rankstream.wire.bounds import LARGEST_TEAM
from rankstream.wire.events import LOGGED, QueryEvent, Vector
from rankstream.wire.exposures import pack_exposures
from rankstream.wire.refusal_codes import Code
from streams.ingest.refusal import Refused, refuse

Order = npt.NDArray[np.int64]

DEEPEST = 16
"""Levels of nested attributes, at most: readers differ in how deep they go."""

SUM_TOLERANCE = 1e-4
"""By how much float32 exposures may sum to more than one."""


_is_hash = re.compile(r"[0-9a-f]{16}").fullmatch


def _numbers(name: Code, value: str | list[float]) -> npt.NDArray[np.float32]:
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
    name: Code, value: Vector | None, length: int
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
    """Rows in canonical order, as bytes; empty where absent.

    `numbers` [n_rows * width], one row behind the other; `order` [n_rows].
    """
    if numbers is None:
        return b""
    return numbers.reshape(n_rows, -1)[order].tobytes()


def exposures_of(
    value: Vector | None, order: Order, shape: tuple[int, int], policy: int
) -> bytes:
    """Placement probabilities of candidates x ranks, in canonical order and packed.

    `order` [n_rows].
    """
    n_rows, n_ranks = shape
    numbers = vector(Code.EXPOSURES, value, n_rows * n_ranks)
    if numbers is None:
        if policy == LOGGED:
            refuse(Code.EXPOSURES, "exposures must be given with policy logged")
        return b""
    matrix = numbers.reshape(n_rows, n_ranks)[order]
    largest = max(matrix.max(), matrix.sum(axis=0).max(), matrix.sum(axis=1).max())
    if matrix.min() < 0 or largest > 1 + SUM_TOLERANCE:
        refuse(
            Code.EXPOSURES,
            "exposures must be probabilities whose rows and columns sum to at most 1; "
            f"got {matrix.min():.6g} to {largest:.6g}",
        )
    return pack_exposures(matrix)


def check_assignments(assignments: list[int], n_shown: int) -> None:
    """Refuse what is not a ranker's number, or -1 for none, for each shown item."""
    if len(assignments) != n_shown:
        refuse(
            Code.ASSIGNMENTS,
            f"assignments must be of the {n_shown} shown items; got {len(assignments)}",
        )
    if not all(-1 <= each <= LARGEST_TEAM for each in assignments):
        refuse(Code.ASSIGNMENTS, f"assignments must lie in -1 to {LARGEST_TEAM}")


def check_attributes(attributes: Any) -> None:
    """Refuse attributes that some readers cannot hold: too deep, or huge numbers."""
    level = [attributes]
    for _ in range(DEEPEST):
        below: list[Any] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
            elif isinstance(each, int) and not -(2**63) <= each < 2**64:
                refuse(Code.ATTRIBUTES, "numbers of attributes must fit 64 bits")
        if not below:
            return
        level = below
    refuse(Code.ATTRIBUTES, f"attributes must nest no deeper than {DEEPEST}")


def check_features_hash(event: QueryEvent) -> None:
    """Refuse a hash that is none, or that names no features of named candidates."""
    named = event.features_hash or ""
    if not _is_hash(named):
        refuse(
            Code.CANDIDATE_FEATURES,
            f"features_hash must be 16 digits from 0 to f; got {named!r:.40}",
        )
    if event.candidates is None or event.candidate_features is None:
        refuse(
            Code.CANDIDATE_FEATURES,
            "candidates and candidate_features must be given with features_hash",
        )


def check_ranks(value: str, n_rows: int, n_shown: int) -> None:
    """Refuse bytes that are not ranks of each shown item by one ranker or more."""
    try:
        raw = base64.b64decode(value, validate=True)
        ranks = np.frombuffer(raw, "<u2").reshape(n_shown, -1)
    except (binascii.Error, ValueError) as error:
        raise Refused(
            Code.RANKS, f"ranks must be base64 of uint16 for {n_shown} items; {error}"
        ) from error
    if not ranks.size or ranks.min() < 1 or ranks.max() > n_rows:
        refuse(Code.RANKS, f"ranks must lie in 1 to {n_rows}, of at least one ranker")
    if (np.diff(np.sort(ranks.astype(np.int64), axis=0), axis=0) == 0).any():
        refuse(Code.RANKS, "ranks of one ranker must differ from each other")


def feature_rows(
    value: str | list[list[float]] | None, n_rows: int, *, name: Code = Code.FEATURES
) -> tuple[bytes, int]:
    """Rows of items as bytes, and how many features each has."""
    if value is None:
        return b"", 0
    if isinstance(value, str):
        numbers = _numbers(name, value)
        n_features, rest = divmod(len(numbers), n_rows)
        if rest or not n_features:
            refuse(name, f"{name} must be rows for {n_rows} items")
        return numbers.tobytes(), n_features
    lengths = {len(row) for row in value}
    if len(value) != n_rows or len(lengths) != 1 or 0 in lengths:
        refuse(name, f"{name} must be {n_rows} rows of one length")
    flat = [number for row in value for number in row]
    return _numbers(name, flat).tobytes(), lengths.pop()
