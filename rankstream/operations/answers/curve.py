"""Curves of bias: which one corrects clicks."""

import math
from collections.abc import Container, Iterable
from dataclasses import dataclass
from typing import Any

from models.bias.fitted_curve import FittedCurve
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import CURVE_REMEDY
from models.estimators.choice import NO_CURVE as UNTOLD
from models.estimators.splits import Shares
from rankstream.operations.answers.as_builtins import OTHERS, Answer, as_builtins
from rankstream.operations.answers.sources import CountedLog
from rankstream.wire.envelope import (
    CURVE,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.models.curves import curve_rows
from rankstream.wire.nearest_name import suggestion
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.curves.curve_estimator import CurveEnds
from streams.training.curves.curve_views import columns_by_class
from streams.training.curves.estimated_curve import bias_told
from streams.training.curves.estimated_curve import (
    estimated_curve as estimated_curve_of,
)
from streams.training.curves.known_curve import GIVEN, published_curve

OPTION = "--curve"

N_RANKS_SHOWN = 10

NO_CURVE = f"relevance is not corrected for position: {UNTOLD}: {CURVE_REMEDY}"


@dataclass(frozen=True)
class CurveOfBias(Answer):
    """A curve, None where clicks cannot tell it, and in words what it is from.

    Parameters
    ----------
    warning
        Names ranks that are not well known; empty where there are none.
    ends
        Of alpha; None where nobody says how well it is known.
    bias
        Whether clicks show trust bias, where the curve was estimated for this.
    """

    curve: BiasCurve | None
    source: str
    warning: str = ""
    ends: CurveEnds | None = None
    bias: str = ""

    def said(self) -> tuple[str, ...]:
        """The curve and what must be known of it, in words; some may be empty."""
        if self.curve is None:
            return ()
        label = curve_label(self.curve, self.source, self.ends)
        return label, self.bias, self.warning

    def to_dict(self) -> dict[str, Any]:
        """Its numbers, None without a curve, and its words."""
        numbers = self.curve and numbers_of(self.curve, self.ends)
        said = {"source": self.source, "warning": self.warning, "bias": self.bias}
        return {**(numbers or {"alpha": None}), **said}

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`, where there is no curve too."""
        words = {"source": str, "warning": str, "bias": str}
        return {"alpha": list[float] | None, **words, OTHERS: Any}


NUMBERS: dict[str, Any] = {
    **dict.fromkeys(("alpha", "beta"), list[float]),
    "is_ratio_only": bool,
    **dict.fromkeys(("alpha_low", "alpha_high"), list[float] | None),
}
"""Types of what `numbers_of` gives."""


def numbers_of(curve: BiasCurve, ends: CurveEnds | None) -> dict[str, Any]:
    """Alpha and beta by rank, and ends of alpha; None where there is no interval."""
    return {
        "alpha": curve.alpha.tolist(),
        "beta": curve.beta.tolist(),
        "is_ratio_only": curve.is_ratio_only,
        "alpha_low": as_builtins(ends and ends.low.tolist()),
        "alpha_high": as_builtins(ends and ends.high.tolist()),
    }


def curve_label(curve: BiasCurve, source: str, ends: CurveEnds | None = None) -> str:
    """By what relevance is corrected; `source` says where that is from."""
    name = "alpha" if curve.has_trust_bias else "examination"
    numbers = [f"{number:.2f}" for number in curve.alpha[:N_RANKS_SHOWN]]
    if ends is None:
        return f"{name} by rank, {source}: {', '.join(numbers)}"
    shares = zip(ends.low.tolist(), ends.high.tolist(), strict=True)
    told = [
        # Rank 1 is the unit.
        number
        if math.isnan(low) or low == high
        else f"{number} [{low:.2f} to {high:.2f}]"
        for number, (low, high) in zip(numbers, shares, strict=False)
    ]
    if not any("[" in each for each in told):
        return (
            f"{name} by rank, {source}, without intervals, as their lists showed each "
            f"item too seldom: {', '.join(told)}"
        )
    of = "" if ends.confidence is None else f" of {100.0 * ends.confidence:g} %"
    return f"{name} by rank, {source}, with intervals{of} each: {', '.join(told)}"


def curve_for(
    source: CountedLog,
    *,
    given: BiasCurve | None = None,
    model: str | None = None,
    has_classes: bool = False,
) -> CurveOfBias:
    """What relevance is corrected by; an estimate reads all columns.

    Parameters
    ----------
    given
        Is taken as it is.
    model
        Whose newest curve is asked for; None: of the only one of the settings, where
        it has a version, and else an estimate.
    has_classes
        Whether items of one class count as one; see `models.estimators.item_classes`.

    Raises
    ------
    ValueError
        Where the model is no curve, or has no version.
    """
    if given is not None:
        return CurveOfBias(given, GIVEN)
    found = published_version(source, model)
    if found is not None:
        known = published_curve(found)
        return CurveOfBias(known.curve, known.source, known.warning, known.ends)
    shares = Shares(*source.settings.statistics.split_shares)
    return estimated_curve(
        source.statistics,
        shares,
        has_classes=has_classes,
        online=source.policies.models,
    )


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
) -> CurveOfBias:
    """The curve of what was counted, from the validation groups where there are some.

    Nothing else is fitted on their clicks, as
    `streams.training.curves.estimated_curve` says.

    Parameters
    ----------
    has_classes
        Whether items of one class count as one; see `models.estimators.item_classes`.
    online
        Interventions whose lists a model that learns online may have made; see
        `streams.training.model_lists`.
    """
    columns = curve_columns(statistics, has_classes=has_classes)
    groups = statistics.counted[0].groups if statistics.counted else 0
    found = estimated_curve_of(columns, groups, shares, online=online)
    bias = ""
    if found.curve is not None:
        # Both read all columns, one after the other.
        columns = curve_columns(statistics, has_classes=has_classes)
        bias = bias_told(columns, found.groups, found.source, takes=found.takes)
    return CurveOfBias(found.curve, found.source, found.warning, found.ends, bias)


def published_version(source: CountedLog, model: str | None) -> Snapshot | None:
    """The newest curve of the model that was asked for, else of the only one.

    Returns
    -------
    None where none was asked for, and there is no version of the only one.

    Raises
    ------
    ValueError
        Where the model is no curve, or has no version.
    """
    settings = source.settings
    name = settings.only_curve if model is None else model
    if model is not None and source.versions is None:
        raise ValueError(
            f"{OPTION} must go with Kafka or --local, which have its versions; got it "
            "with files of events: give --examination"
        )
    if model is not None and model not in settings.curves:
        raise ValueError(
            f"{OPTION} must be a curve, of {sorted(settings.curves)}; got {model!r}"
            f"{suggestion(model, settings.curves)}"
        )
    if not name or source.versions is None:
        return None
    found = newest_curve(source.versions(), name)
    if found is None and model is not None:
        raise ValueError(
            f"{OPTION} must have a version; {model!r} has none yet: `rankstream "
            f"intervene {model}` fits one"
        )
    return found


def newest_curve(
    records: Iterable[tuple[bytes | None, bytes | None]], name: str
) -> Snapshot | None:
    """The newest curve of a model among records of `snapshots`.

    What cannot be read, or is a ranker, is passed over.
    """
    newest: Snapshot | None = None
    for key, value in records:
        if key != name.encode() or value is None:
            continue
        try:
            found = decode_snapshot(value)
        except SnapshotError:
            continue
        is_own = found.model == name and found.kind == CURVE
        if is_own and (newest is None or pointer_of(newest) <= pointer_of(found)):
            newest = found
    return newest


def fitted_curve_of(snapshot: Snapshot) -> FittedCurve:
    """The curve of a snapshot; why ranks are not known is not in it.

    Raises
    ------
    SnapshotError
        Where it is a ranker.
    """
    alpha, alpha_low, alpha_high, beta, beta_low, beta_high = curve_rows(snapshot)
    why = ("",) * len(alpha)
    return FittedCurve(alpha, beta, alpha_low, alpha_high, beta_low, beta_high, why)
