"""A curve of bias as a call gives it: numbers, or a JSON file."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from models.estimators.bias_curve import BiasCurve, position_curve

FORMS = (
    "numbers by rank such as 1,0.6,0.4, or a JSON file with such a list, or with "
    '{"alpha": [...], "beta": [...]} and "is_ratio_only": true where it is so'
)
NO_FILE = "there is no such file"


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
        why = _why_unread(told, error)
        raise ValueError(
            f"must be {FORMS}; got {told!r}, which cannot be read: {why}"
        ) from error
    return _curve_of_json(found, told)


def _why_unread(told: str, error: Exception) -> str:
    """What is wrong with numbers that are taken for a file, or with the file.

    Examples
    --------
    >>> _why_unread("1,0.6,x", FileNotFoundError())
    "'x' is no number"
    >>> _why_unread("curve.json", FileNotFoundError())
    'there is no such file'
    """
    if not isinstance(error, FileNotFoundError):
        return str(error)
    words = [word.strip() for word in told.split(",")]
    wrong = [word for word in words if not re.fullmatch(r"[-+.\deE]+", word)]
    return f"{wrong[0]!r} is no number" if wrong and words[1:] else NO_FILE


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
