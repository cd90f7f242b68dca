"""Options of commands that correct clicks: the curve of bias, and the estimator."""

import argparse
from typing import TYPE_CHECKING

from rankstream.configuration.training import ESTIMATORS

if TYPE_CHECKING:
    from models.estimators.bias_curve import BiasCurve


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
        "--curve",
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


def _curve(told: str) -> "BiasCurve":
    # Only who is told a curve needs arrays.
    from rankstream.operations.commands.options.told_curve import curve_told  # noqa: PLC0415

    try:
        return curve_told(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
