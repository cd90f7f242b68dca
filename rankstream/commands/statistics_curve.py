"""The curve of bias that relevance is corrected by: given, or estimated from clicks."""

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.bias.examination import estimate_examination
from models.counts.fixed_point import Int64
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.splits import LEAST_TO_SPLIT, Shares, split_groups
from rankstream.terminal.counts import counted
from streams.fold.statistics_columns import Columns
from streams.fold.statistics_reader import Statistics

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
            raise ValueError(f"{error}; a curve is {FORMS}") from error
    try:
        found = json.loads(Path(told).read_bytes())
    except (OSError, ValueError) as error:
        raise ValueError(
            f"must be {FORMS}; got {told!r}, which cannot be read: {error}"
        ) from error
    return _curve_of_json(found, told)


def _curve_of_json(found: Any, told: str) -> BiasCurve:
    if isinstance(found, list):
        found = {"alpha": found}
    known = {"alpha", "beta", "is_ratio_only"}
    if not isinstance(found, dict) or "alpha" not in found or found.keys() - known:
        raise ValueError(f"must be {FORMS}; {told!r} holds something else")
    try:
        alpha = np.array(found["alpha"], np.float64)
        beta = np.array(found.get("beta", np.zeros(alpha.shape)), np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"alpha and beta of {told!r} must be numbers; {error}"
        ) from None
    is_ratio_only = found.get("is_ratio_only", False)
    if not isinstance(is_ratio_only, bool):
        raise ValueError(
            f'"is_ratio_only" of {told!r} must be true or false; got {is_ratio_only!r}'
        )
    return BiasCurve(alpha, beta, is_ratio_only=is_ratio_only)


class EstimatedCurve(NamedTuple):
    """A curve, None where clicks cannot tell it, and in words what it is from."""

    curve: BiasCurve | None
    source: str


GIVEN = "given"
OF_VALIDATION = "estimated from clicks of the validation groups"


def estimated_curve(statistics: Statistics, shares: Shares) -> EstimatedCurve:
    """The curve of what was counted, from the validation groups where there are some.

    Nothing else is fitted on their clicks. Where there are too few groups, or too few
    clicks in these, it is from all, and the source says so.
    """
    groups = statistics.counted[0].groups if statistics.counted else 0
    if groups < LEAST_TO_SPLIT:
        curve, _ = _curves(statistics.columns(), range(0))
        source = f"all clicks, as {counted(groups, 'group')} cannot be split"
        return EstimatedCurve(curve, f"estimated from {source}")
    validation = split_groups(groups, shares).validation
    curve, of_validation = _curves(statistics.columns(), validation)
    if of_validation is not None:
        told = f"{OF_VALIDATION}, {validation[0]} to {validation[-1]}"
        return EstimatedCurve(of_validation, told)
    source = "all clicks, as those of the validation groups do not tell it"
    return EstimatedCurve(curve, f"estimated from {source}")


def _curves(
    chunks: Iterable[Columns], groups: Sequence[int]
) -> tuple[BiasCurve | None, BiasCurve | None]:
    """That of all clicks, and that of some groups: the first where there is no second.

    One pass over the columns.
    """
    documents: dict[tuple[object, ...], int] = {}
    of_some, of_others = ([np.empty((0, 4), np.int64)] for _ in range(2))
    for chunk in chunks:
        # A closed set numbers its items alike in each era and intervention.
        sets = [
            documents.setdefault((name.query, items), len(documents))
            for name, items in zip(chunk.names, chunk.items, strict=True)
        ]
        is_there = (chunk.rank <= N_RANKS) & (chunk.shown > 0)
        is_of_some = np.isin(chunk.group, groups)
        numbers = (np.array(sets, np.int64)[chunk.scope] << 32) + chunk.item
        clicked = chunk.by_class[chunk.reward]
        table = np.column_stack((numbers, chunk.rank, chunk.shown, clicked))
        of_some.append(table[is_there & is_of_some])
        of_others.append(table[is_there & ~is_of_some])
    curve = _curve_of_counts(of_some)
    if curve is not None:
        return None, curve
    return _curve_of_counts(of_some + of_others), None


def _curve_of_counts(tables: list[Int64]) -> BiasCurve | None:
    """Examination relative to rank 1, as the monitor estimates it.

    Up to the first rank without a ratio, from 1 to `N_RANKS`; None where clicks cannot
    tell where users look from what they like.
    """
    curve = estimate_examination(*np.concatenate(tables).T, n_ranks=N_RANKS)
    n_known = int(np.cumprod(~np.isnan(curve.ratios)).sum())
    if n_known < 2:
        return None
    alpha = curve.ratios[:n_known]
    return BiasCurve(alpha, np.zeros(n_known), is_ratio_only=True)
