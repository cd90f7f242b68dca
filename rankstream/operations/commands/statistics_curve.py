"""The curve of bias that relevance is corrected by: given, or estimated from clicks."""

import json
import re
from collections.abc import Container, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.splits import Shares
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.bias_told import bias_told
from streams.training.class_columns import columns_by_class
from streams.training.curve_ends import CurveEnds
from streams.training.estimated_curve import estimated_curve as estimated_curve_of

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
    """A curve, None where clicks cannot tell it, and in words what it is from.

    The warning names ranks that are not well known; it is empty where there are none.
    Ends of alpha are None where nobody says how well it is known. `bias` says whether
    clicks show trust bias, where the curve was estimated for this.
    """

    curve: BiasCurve | None
    source: str
    warning: str = ""
    ends: CurveEnds | None = None
    bias: str = ""


GIVEN = "given"


def curve_columns(statistics: Statistics, *, has_classes: bool) -> Iterable[Columns]:
    """What a curve is fitted on: columns of items, or of classes of them."""
    columns = statistics.columns()
    return columns_by_class(columns) if has_classes else columns


def estimated_curve(
    statistics: Statistics,
    shares: Shares,
    *,
    has_classes: bool = False,
    online: Container[str] = (),
) -> EstimatedCurve:
    """The curve of what was counted, from the validation groups where there are some.

    Nothing else is fitted on their clicks; see `streams.training.estimated_curve`.

    Parameters
    ----------
    has_classes
        Whether items of one class count as one; see `models.estimators.item_classes`.
    online
        Interventions whose lists a model that learns online may have made; see
        `streams.training.learned_online`.
    """
    columns = curve_columns(statistics, has_classes=has_classes)
    groups = statistics.counted[0].groups if statistics.counted else 0
    found = estimated_curve_of(columns, groups, shares, online=online)
    bias = ""
    if found.curve is not None:
        # Both read all columns, one after the other.
        columns = curve_columns(statistics, has_classes=has_classes)
        bias = bias_told(columns, found.groups, found.source, takes=found.takes)
    return EstimatedCurve(found.curve, found.source, found.warning, found.ends, bias)
