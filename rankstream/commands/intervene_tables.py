"""Trainings as tables and as JSON."""

import datetime
import json
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.table import Table

from rankstream.terminal.counts import counted
from rankstream.terminal.fitted_table import print_fitted, wide_console
from rankstream.terminal.plain_text import plain
from rankstream.wire.training import RunRecord

SPARE = (
    "temperature", "least exposure", "held out", "below support", "loss", "because of",
)  # fmt: skip
"""Columns that may go where there is no room."""


def print_runs(runs: Sequence[RunRecord], *, as_json: bool) -> None:
    """Print them, the first one first."""
    if as_json:
        sys.stdout.write(json.dumps([as_builtins(each) for each in runs]) + "\n")
        return
    rows = [_row(each) for each in runs]
    caption = (
        "DCG: estimated, of held-out queries, of the parent and of what was published;"
        "\nclicks: estimated per list from selection groups, a point without interval"
    )
    reasons = {f"{x.intervention}: {x.reward_reason}" for x in runs if x.reward_reason}
    table = Table(
        title=counted(len(rows), "training"),
        caption="\n".join([caption, *map(plain, sorted(reasons))]),
    )
    for name, value in rows[0].items():
        is_text = name in ("intervention", "because of", "event time")
        table.add_column(
            name, justify="left" if is_text else "right", no_wrap=isinstance(value, str)
        )
    for row in rows:
        table.add_row(*row.values())
    print_fitted(wide_console(), table, SPARE)


def as_builtins(run: RunRecord) -> dict[str, Any]:
    """A run with its names, bytes as hexadecimal digits."""
    named: dict[str, Any] = _named(run)
    return named


def _named(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return {name: _named(getattr(value, name)) for name in names}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, (list, tuple)):
        return [_named(each) for each in value]
    return value


def _row(run: RunRecord) -> dict[str, str]:
    sizes = run.sizes
    # The epochs begin with the parent's.
    by_number = {number: (loss, dcg) for number, loss, dcg in run.epochs}
    loss, dcg = by_number[run.best_epoch]
    parent_dcg = by_number[0][1] if 0 in by_number else float("nan")
    moment = datetime.datetime.fromtimestamp(run.created_ms / 1_000, datetime.UTC)
    return {
        "intervention": plain(run.intervention),
        "because of": run.reason,
        "event time": moment.isoformat(timespec="seconds"),
        "interactions": f"{run.version:,}",
        "queries": f"{sizes.n_queries:,}",
        "held out": f"{sizes.n_held_out:,}",
        "below support": f"{sizes.n_below:,} of {sizes.n_items:,}",
        "epoch": f"{run.best_epoch} of {max(by_number)}",
        "loss": f"{loss:.5g}",
        "DCG": f"{parent_dcg:.4f} to {dcg:.4f}",
        "temperature": f"{run.temperature:g}",
        "least exposure": f"{run.least_exposure:.3g}",
        "clicks": "-" if run.reward is None else f"{run.reward:.4f}",
    }
