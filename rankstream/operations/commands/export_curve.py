"""`rankstream snapshots export-curve`: its options."""

import argparse
from pathlib import Path

EXPORT_HELP = "position weights of a curve of bias, for LightGBM and XGBoost"

EXPORT_DESCRIPTION = (
    "Print JSON: what a click at each rank counts, 1 over its examination, and where "
    "XGBoost's own estimate begins (docs/estimators.md). With --rows, also the files "
    "that LightGBM reads beside its data: ROWS.weight, ROWS.position and ROWS.query."
)


def add_export_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options beside the model and its version."""
    parser.add_argument(
        "--most",
        type=float,
        default=float("inf"),
        metavar="W",
        help="no weight is larger: for training only, as it biases",
    )
    parser.add_argument(
        "--positions",
        type=int,
        metavar="N",
        help="places that XGBoost estimates (default: as many ranks as are known)",
    )
    parser.add_argument(
        "--rows",
        type=Path,
        metavar="CSV",
        help="query, rank and clicked of each row of the data, with a header",
    )
