"""Options of a model that is a curve of bias: `learner = "examination"`."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from rankstream.ranking.learner_options import EXAMINATION

ESTIMATORS = ("position", "trust", "adjacent-pairs", "pivot", "all-pairs")
"""Those of `models.bias.registry`, which services cannot import; a test compares."""

WITH_INFORMATION = ("position", "trust")
"""Those whose intervals take no queries."""

TRUST = "trust"
"""The one whose curve an anchor makes absolute."""

MOST_RANKS = 100

MOST_RESAMPLES = 10_000


class CurveOptions(NamedTuple):
    """What `options` of such a model say.

    Parameters
    ----------
    estimator
        A name of `models.bias.registry`.
    ranks
        Ranks that are estimated.
    confidence
        Of each rank's interval, in (0, 1).
    anchor
        alpha and beta of rank 1, where they are known from elsewhere; of "trust" alone.
    bootstrap
        Resamples of queries, for estimators whose intervals take them.
    classes
        Whether items whose ids are equal before # count as one, over all queries.
    """

    estimator: str = "position"
    ranks: int = 10
    confidence: float = 0.95
    anchor: tuple[float, float] | None = None
    bootstrap: int = 200
    classes: bool = False


def curve_options(options: Mapping[str, Any]) -> CurveOptions:
    """The options of a curve, checked.

    Raises
    ------
    ValueError
        Where one is unknown or cannot be so.

    Examples
    --------
    >>> curve_options({"estimator": "pivot"}).bootstrap
    200
    """
    if unknown := sorted(set(options) - set(CurveOptions._fields)):
        raise ValueError(
            f"options of {EXAMINATION} must be among {sorted(CurveOptions._fields)}; "
            f"got {unknown}"
        )
    anchor = options.get("anchor")
    known = {"anchor": None if anchor is None else _anchor(anchor)}
    found = CurveOptions(**{**options, **known})
    if found.estimator not in ESTIMATORS:
        raise ValueError(
            f"options.estimator must be one of {list(ESTIMATORS)}; got "
            f"{found.estimator!r}"
        )
    _check_number("ranks", found.ranks, 2, MOST_RANKS)
    _check_number("bootstrap", found.bootstrap, 2, MOST_RESAMPLES)
    confidence = options.get("confidence", found.confidence)
    if not (isinstance(confidence, float) and 0.0 < confidence < 1.0):
        raise ValueError(
            f"options.confidence must be a number in (0, 1); got {confidence!r}"
        )
    if not isinstance(found.classes, bool):
        raise ValueError(
            f"options.classes must be true or false; got {found.classes!r}"
        )
    if found.classes and found.estimator not in WITH_INFORMATION:
        raise ValueError(
            f"options.classes must be set with one of {list(WITH_INFORMATION)} only: "
            "the others draw queries again, and a class is of all of them; got it with "
            f"{found.estimator!r}: take it out"
        )
    if found.anchor is not None and found.estimator != TRUST:
        raise ValueError(
            f"options.anchor must be set with estimator {TRUST!r} only, as other "
            f"curves have no beta; got it with {found.estimator!r}: take it out"
        )
    return found


def _anchor(value: Any) -> tuple[float, float]:
    is_pair = isinstance(value, list | tuple) and len(value) == 2
    if not (is_pair and all(_is_number(each) for each in value)):
        raise ValueError(
            f"options.anchor must be alpha and beta of rank 1, two numbers; got "
            f"{value!r}"
        )
    alpha, beta = float(value[0]), float(value[1])
    if not (alpha > 0.0 <= beta and alpha + beta <= 1.0):
        raise ValueError(
            "options.anchor must have alpha more than 0, beta at least 0 and a sum of "
            f"at most 1; got {alpha:g} and {beta:g}"
        )
    return alpha, beta


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_number(name: str, value: Any, least: int, most: int) -> None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    if not (is_whole and least <= value <= most):
        raise ValueError(
            f"options.{name} must be a whole number, {least} to {most}; got {value!r}"
        )
