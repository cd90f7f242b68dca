"""What `rankstream simulate` prints."""

import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from rich.table import Table

from producers.simulation import Progress
from rankstream.lab.simulation.interventions import Interventions
from rankstream.lab.simulation.served_policies import (
    SPARE,
    ServedPolicies,
    as_builtins,
    table_of,
)
from rankstream.operations.commands.intervene.tables import print_curve
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.snapshots import Snapshot
from rankstream.wire.curves import CurveRecord, published


def result_of(
    progress: Progress, learned: Snapshot, ndcg: float, seconds: float
) -> dict[str, Any]:
    """Figures of a simulation.

    Parameters
    ----------
    learned
        What is served at the end.
    ndcg
        That of its order, test split.
    """
    lags = progress.behind
    behind = (
        {
            "behind_mean": round(float(np.mean(lags)), 1),
            "behind_largest": int(max(lags)),
        }
        if lags
        else {}
    )
    return {
        "impressions": progress.shown,
        "clicks": progress.clicks,
        "seconds": round(seconds, 2),
        "version": learned.version,
        "versions_served": len(progress.versions),
        **behind,
        "ndcg_learned": round(ndcg, 4),
        "ndcg_shown_last_1000": round(progress.recent(), 4),
        "ndcg_shown_discounted": round(progress.discounted(), 1),
    }


def interventions_of(
    found: Interventions, served: ServedPolicies, progress: Progress
) -> dict[str, Any]:
    """What each policy showed, with how it was trained, and curves of bias."""
    curves = [msgspec.to_builtins(published(each)) for each in found.curves()]
    return {
        **({"curves": curves} if curves else {}),
        "interventions": [
            as_builtins(each, found.run_of(each.intervention))
            for each in served.policies(progress)
        ],
        "refused": found.refusal(),
    }


def print_result(
    result: dict[str, Any], curves: Sequence[CurveRecord], *, as_json: bool
) -> None:
    """Print it as tables, with the last fit of each curve, or as one JSON object."""
    if as_json:
        json.dump(result, sys.stdout)
        sys.stdout.write("\n")
        return
    console = wide_console()
    console.print(_table(result))
    for each in {each.model: each for each in curves}.values():
        print_curve(each)
    if "interventions" in result:
        print_fitted(console, table_of(result["interventions"]), SPARE)
        if result["refused"]:
            sys.stderr.write(f"the last training was refused: {result['refused']}\n")


def _table(result: dict[str, Any]) -> Table:
    table = Table(title="simulated", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(justify="right")
    labels = {
        "impressions": "lists shown",
        "clicks": "clicks",
        "seconds": "seconds",
        "version": "version learned",
        "versions_served": "versions served",
        "behind_mean": "lists behind, mean",
        "behind_largest": "lists behind, largest",
        "ndcg_learned": "NDCG of the learned ranker, test split",
        "ndcg_shown_last_1000": "NDCG of the last 1,000 lists shown",
        "ndcg_shown_discounted": "discounted sum of shown NDCG",
    }
    for name, label in labels.items():
        if name in result:
            table.add_row(label, f"{result[name]:,}")
    return table
