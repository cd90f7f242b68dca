"""How the list of a table was drawn, from the columns that say so."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rankstream.adapters.adapter import NotAdapted
from rankstream.adapters.fields import text
from rankstream.wire.events import POLICIES
from rankstream.wire.topics import QUERIES

Row = Mapping[str, Any]

OF_CANDIDATES = ("plackett-luce", "tail-shuffle", "logged")
"""Policies that say nothing without the candidates."""

_decode = msgspec.json.Decoder(list[float]).decode


def shown_and_not(rows: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Rows of shown items, and of candidates that were not: those without a position.

    Only where a column says how lists were drawn; else each row was shown.
    """
    if "policy" not in rows[0]:
        return [*rows], []
    shown = [row for row in rows if row.get("position", 0) not in (None, "")]
    return shown, [row for row in rows if row.get("position", 0) in (None, "")]


def drawn_by(shown: Sequence[Row], others: Sequence[Row]) -> dict[str, Any]:
    """Fields of the list that say how it was drawn; none where no column does.

    Parameters
    ----------
    shown
        In displayed order.
    others
        Candidates that were not shown.

    Raises
    ------
    NotAdapted
        Where a policy is none, or a number is missing that it needs.
    """
    if not shown:
        raise NotAdapted(
            "ordinal",
            "a list must show an item; each row of this one is without a position",
            kind=QUERIES,
        )
    policy = text(shown[0].get("policy"), "policy", QUERIES)
    if policy and policy not in POLICIES:
        raise NotAdapted(
            "type",
            f"policy must be one of {', '.join(POLICIES)}; got {policy!r:.60}",
            kind=QUERIES,
        )
    rows, found = [*shown, *others], {"policy": policy} if policy else {}
    fields: dict[str, Any] = {**found}
    if "scores" in shown[0]:
        fields["scores"] = [_number(row["scores"]) for row in rows]
    if "exposures" in shown[0]:
        table = [_numbers(row["exposures"], len(shown)) for row in rows]
        fields["exposures"] = [each for row in table for each in row]
    if others or policy in OF_CANDIDATES or len(fields) > len(found):
        fields["candidates"] = [text(row["item"], "item", QUERIES) for row in rows]
    return fields


def _number(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise NotAdapted(
            "type", f"scores must be a number in each row; got {value!r:.60}",
            kind=QUERIES,
        ) from error  # fmt: skip


def _numbers(value: Any, n_ranks: int) -> list[float]:
    """Probabilities of an item at each rank, as an array or JSON."""
    try:
        found = _decode(value) if isinstance(value, str) else [*map(float, value)]
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotAdapted(
            "type",
            "exposures must be an array of numbers in each row, such as [0.5, 0.5]; "
            f"got {value!r:.60}",
            kind=QUERIES,
        ) from error
    if len(found) != n_ranks:
        raise NotAdapted(
            "type",
            f"exposures must be a number for each shown rank, {n_ranks}; got "
            f"{len(found)}",
            kind=QUERIES,
        )
    return found
