"""The curve of bias that relevance is corrected by: given, or estimated from clicks."""

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from models.bias.examination import estimate_examination
from models.estimators.bias_curve import BiasCurve, position_curve
from streams.fold.statistics_columns import Columns

N_RANKS = 10
"""Ranks that are estimated, as by the monitor."""

FORMS = (
    "numbers by rank such as 1,0.6,0.4, or a JSON file with such a list, or with "
    '{"alpha": [...], "beta": [...]} and "is_ratio_only": true where it is so'
)


def curve_told(told: str) -> BiasCurve:
    """The curve of `--examination`.

    Raises
    ------
    ValueError
        Where it is neither numbers nor a file of them, or no such curve can be.
    """
    if re.fullmatch(r"[-+.\deE,\s]+", told) and not Path(told).exists():
        try:
            return position_curve([float(number) for number in told.split(",")])
        except ValueError as error:
            raise ValueError(f"--examination: {error}; it is {FORMS}") from error
    try:
        found = json.loads(Path(told).read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(
            f"--examination must be {FORMS}; got {told!r}, which cannot be read: "
            f"{error}"
        ) from error
    return _curve_of_json(found, told)


def _curve_of_json(found: Any, told: str) -> BiasCurve:
    if isinstance(found, list):
        found = {"alpha": found}
    known = {"alpha", "beta", "is_ratio_only"}
    if not isinstance(found, dict) or "alpha" not in found or found.keys() - known:
        raise ValueError(
            f"--examination must be {FORMS}; {told!r} holds something else"
        )
    try:
        alpha = np.array(found["alpha"], np.float64)
        beta = np.array(found.get("beta", np.zeros(alpha.shape)), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"alpha and beta of {told!r} must be numbers; {error}"
        ) from None
    return BiasCurve(alpha, beta, is_ratio_only=found.get("is_ratio_only") is True)


def curve_of_clicks(chunks: Iterable[Columns]) -> BiasCurve | None:
    """Examination relative to rank 1, as the monitor estimates it.

    Up to the first rank without a ratio, from 1 to `N_RANKS`; None where clicks cannot
    tell where users look from what they like.
    """
    documents: dict[tuple[object, ...], int] = {}
    tables = [np.empty((0, 4), np.int64)]
    for chunk in chunks:
        # A closed set numbers its items alike in each era and intervention.
        sets = [
            documents.setdefault((name.query, items), len(documents))
            for name, items in zip(chunk.names, chunk.items, strict=True)
        ]
        is_there = (chunk.rank <= N_RANKS) & (chunk.shown > 0)
        numbers = (np.array(sets, np.int64)[chunk.scope] << 32) + chunk.item
        clicked = chunk.by_class[chunk.reward]
        columns = (numbers, chunk.rank, chunk.shown, clicked)
        tables.append(np.column_stack(columns)[is_there])
    curve = estimate_examination(*np.concatenate(tables).T, n_ranks=N_RANKS)
    n_known = int(np.cumprod(~np.isnan(curve.ratios)).sum())
    if n_known < 2:
        return None
    alpha = curve.ratios[:n_known]
    return BiasCurve(alpha, np.zeros(n_known), is_ratio_only=True)
