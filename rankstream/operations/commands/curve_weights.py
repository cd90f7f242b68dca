"""A curve of bias as LightGBM and XGBoost take one."""

import argparse
import csv
import json
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.bias.fitted_curve import FittedCurve
from models.bias.position_weights import (
    lightgbm_files,
    position_weights,
    row_weights,
    xgboost_start,
)
from rankstream.wire.curves import curve_rows
from rankstream.wire.envelope import Snapshot

COLUMNS = ("query", "rank", "clicked")


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


def export_curve(snapshot: Snapshot, arguments: argparse.Namespace) -> int:
    """Print what the curve is to others, and write files beside the rows.

    Raises
    ------
    SnapshotError
        Where it is no curve.
    ValueError
        Where it has trust bias, which no weight corrects, or rows are not as they
        must be.
    """
    curve = fitted_curve_of(snapshot)
    weights = position_weights(curve, most=arguments.most)
    n_positions = arguments.positions or len(weights)
    told = {
        "curve": f"{snapshot.model}@{snapshot.epoch}.{snapshot.version}",
        "weights": weights.tolist(),
        "xgboost": xgboost_start(curve, n_positions=n_positions),
        "files": [],
    }
    if arguments.rows is not None:
        told["files"] = _written(arguments.rows, weights)
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stderr.writelines(f"{line}\n" for line in _remarks(curve, len(weights)))
    return 0


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
