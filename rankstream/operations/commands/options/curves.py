"""Options of commands that correct clicks: the curve of bias, and the estimator."""

import argparse
import json
import re
from pathlib import Path
from typing import Any

import numpy as np

from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.registry import ESTIMATORS
from rankstream.operations.answers.curve import OPTION

FORMS = (
    "numbers by rank such as 1,0.6,0.4, or a JSON file with such a list, or with "
    '{"alpha": [...], "beta": [...]} and "is_ratio_only": true where it is so'
)


def add_curve(parser: argparse.ArgumentParser, *, what: str, default: str) -> None:
    """Declare the curve of bias, given or a model's.

    Parameters
    ----------
    what
        It is for.
    default
        Where it is from if it is not given.
    """
    curve = parser.add_mutually_exclusive_group()
    curve.add_argument(
        "--examination",
        metavar="CURVE",
        type=_curve,
        help=f"{what}: probabilities of looking at ranks 1, 2, ..., such as "
        "1,0.6,0.4, or a JSON file with them or with alpha and beta; if not given "
        f"{default}, else estimated from clicks of the validation groups",
    )
    curve.add_argument(
        OPTION,
        metavar="NAME",
        help="a curve of bias, of which the newest version is taken (default: the "
        "only one of the settings, where it has a version)",
    )


def examination_told(told: str) -> list[float]:
    """The examination of a training: a curve without trust bias.

    Raises
    ------
    argparse.ArgumentTypeError
    """
    curve = _curve(told)
    if curve.has_trust_bias:
        raise argparse.ArgumentTypeError(
            "must be without trust bias, as trainings are told examination alone; got "
            "beta: name a curve of the settings in models.NAME.training.curve"
        )
    return [float(each) for each in curve.alpha]


def add_estimator(parser: argparse.ArgumentParser, *, of: str) -> None:
    """Declare the estimator of something."""
    parser.add_argument(
        "--estimator",
        choices=ESTIMATORS,
        help=f"of {of} (docs/estimators.md; default: intervention-aware where "
        "policies were fixed before the clicks, intervention-oblivious where they "
        "were not, affine-shown where nobody knows them)",
    )


def whole_number(told: str) -> int:
    """A number from 1 on, as an option says it."""
    if not told.lstrip("+-").isdecimal() or int(told) < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, 1 or more; got {told}"
        )
    return int(told)


def _curve(told: str) -> BiasCurve:
    try:
        return curve_told(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


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
