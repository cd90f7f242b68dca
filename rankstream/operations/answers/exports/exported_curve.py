"""What a curve of bias is to other programs: weights of clicks, and files of rows."""

import csv
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
from rankstream.operations.answers.as_builtins import Answer
from rankstream.operations.answers.curve import fitted_curve_of
from rankstream.wire.envelope import Snapshot

COLUMNS = ("query", "rank", "clicked")
"""Of rows of somebody's training data."""


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
