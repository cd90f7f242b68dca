"""Curves of bias: which one corrects clicks, and what it is to other programs."""

import csv
import math
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.fitted_curve import FittedCurve
from models.bias.position_weights import (
    lightgbm_files,
    position_weights,
    row_weights,
    xgboost_start,
)
from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import CURVE_REMEDY
from models.estimators.choice import NO_CURVE as UNTOLD
from models.estimators.splits import Shares
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.answers.sources import Source
from rankstream.wire.curves import curve_rows
from rankstream.wire.envelope import (
    CURVE,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.bias_told import bias_told
from streams.training.curve_estimator import CurveEnds
from streams.training.curve_views import columns_by_class
from streams.training.estimated_curve import estimated_curve as estimated_curve_of
from streams.training.known_curve import GIVEN, published_curve

OPTION = "--curve"

N_RANKS_SHOWN = 10

NO_CURVE = f"relevance is not corrected for position: {UNTOLD}: {CURVE_REMEDY}"

COLUMNS = ("query", "rank", "clicked")
"""Of rows of somebody's training data."""


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
    source: Source,
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

    Nothing else is fitted on their clicks; see `streams.training.estimated_curve`.

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


def published_version(source: Source, model: str | None) -> Snapshot | None:
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


class Rows(NamedTuple):
    """Rows of somebody's training data, in their order.

    Parameters
    ----------
    queries, ranks, clicked : [n_rows]
        Numbers of queries, ranks from 1, and whether there was a click, 0 or 1.
    """

    queries: npt.NDArray[np.int64]
    ranks: npt.NDArray[np.int64]
    clicked: npt.NDArray[np.int64]


@dataclass(frozen=True)
class ExportedCurve(Answer):
    """A curve of bias as LightGBM and XGBoost take one.

    Parameters
    ----------
    curve
        Its version.
    weights
        What a click at each rank counts: 1 over its examination.
    xgboost
        Where its own estimate begins.
    files
        Those that LightGBM reads beside its data, if any were written.
    """

    curve: str
    weights: list[float]
    xgboost: dict[str, Any]
    files: list[str]


def exported_curve(
    snapshot: Snapshot, *, most: float, n_positions: int | None, rows: Path | None
) -> tuple[ExportedCurve, list[str]]:
    """What a curve is to others, and what must be known of it; writes files of rows.

    Parameters
    ----------
    most
        No weight is larger.
    n_positions
        Places that XGBoost estimates; None: as many ranks as are known.
    rows
        Query, rank and clicked of each row of somebody's data.

    Raises
    ------
    SnapshotError
        Where it is no curve.
    ValueError
        Where it has trust bias, which no weight corrects, or rows are not as they
        must be.
    """
    curve = fitted_curve_of(snapshot)
    weights = position_weights(curve, most=most)
    found = ExportedCurve(
        f"{snapshot.model}@{snapshot.epoch}.{snapshot.version}",
        weights.tolist(),
        xgboost_start(curve, n_positions=n_positions or len(weights)),
        [] if rows is None else _written(rows, weights),
    )
    return found, _remarks(curve, len(weights))


def _remarks(curve: FittedCurve, n_weights: int) -> list[str]:
    """Where weights end before the curve does, and which are not sure."""
    lines = []
    if n_weights < len(curve.alpha):
        lines.append(
            f"weights end at rank {n_weights}, as examination of rank {n_weights + 1} "
            "is not known: leave clicks further down out"
        )
    low = curve.alpha_low[:n_weights]
    if unsure := [str(rank) for rank, end in enumerate(low, 1) if np.isnan(end)]:
        lines.append(
            f"no interval at rank {', '.join(unsure)}: `rankstream intervene --show` "
            "says why"
        )
    return lines


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


def rows_in(path: Path) -> Rows:
    """Rows of a CSV file.

    Raises
    ------
    ValueError
        Where a column is missing, or holds something else.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if missing := [x for x in COLUMNS if x not in (reader.fieldnames or ())]:
            raise ValueError(
                f"--rows must have the columns {', '.join(COLUMNS)}; {path} lacks "
                f"{', '.join(missing)}: name them in its first line"
            )
        numbers: dict[str, int] = {}
        found = []
        for line, row in enumerate(reader, 2):
            query = numbers.setdefault(row["query"], len(numbers))
            rank, clicked = row["rank"] or "", row["clicked"] or ""
            if not rank.isdecimal() or clicked not in ("0", "1"):
                raise ValueError(
                    f"rank must be a whole number and clicked 0 or 1; got {rank!r} and "
                    f"{clicked!r} in line {line} of {path}"
                )
            found.append((query, int(rank), int(clicked)))
    columns = np.array(found, np.int64).reshape(-1, 3).T
    return Rows(*columns)


def _written(path: Path, weights: npt.NDArray[np.float64]) -> list[str]:
    rows = rows_in(path)
    own = row_weights(rows.ranks, rows.clicked, weights)
    texts = lightgbm_files(rows.queries, rows.ranks, own)
    names = []
    for suffix, text in texts._asdict().items():
        target = path.with_name(f"{path.name}.{suffix}")
        target.write_text(text, encoding="utf-8")
        names.append(str(target))
    return names
