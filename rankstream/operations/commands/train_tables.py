"""What came of a training, for people."""

from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from rankstream.operations.answers.folders import MODEL_SETTINGS_FILE
from rankstream.operations.commands.curve_tables import print_curve
from rankstream.operations.commands.intervene_tables import print_run
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.plain_text import plain
from rankstream.wire.envelope import Snapshot
from streams.training.recorded_inputs import TrainedOnce

MOST_SHOWN = 20
"""Features whose weights are printed."""


def print_trained(found: TrainedOnce, folder: Path, file: Path) -> None:
    """Print the curve, the run and the weights, and what to do with them."""
    if found.fitted is not None:
        print_curve(found.fitted.run)
    print_run(found.outcome.run)
    snapshot = found.outcome.snapshot
    if snapshot.kind == "linear":
        print_fitted(wide_console(), _weights_of(snapshot))
    console = Console(soft_wrap=True)
    for line in (
        f"{file}: the snapshot, for `rankstream rank` and rankers",
        f"{folder / MODEL_SETTINGS_FILE}: its settings, for the role `train`",
        f"rankstream rank --model {folder} --features FILE ranks by it, "
        f"rankstream train --verify {folder} makes it again",
    ):
        console.print(line, highlight=False, markup=False)


def _weights_of(snapshot: Snapshot) -> Table:
    """Weights of a linear model by feature, the largest first."""
    weights = np.frombuffer(snapshot.weights, "<f4")
    names = snapshot.feature_names or [f"f{n + 1}" for n in range(len(weights))]
    order = np.argsort(-np.abs(weights), kind="stable")
    table = Table(title="weights of features, normalised in each query")
    if snapshot.normalisation == "none":
        table.title = "weights of features"
    table.add_column("feature", no_wrap=True)
    table.add_column("weight", justify="right", no_wrap=True)
    for place in order[:MOST_SHOWN].tolist():
        table.add_row(plain(names[place]), f"{weights[place]:.4g}")
    if len(order) > MOST_SHOWN:
        table.caption = f"the largest {MOST_SHOWN} of {len(order):,}"
    return table
