"""Trainings as tables and as JSON."""

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
from rich.console import Console
from rich.table import Table

from models.estimators.choice import OF_KNOWN, choice_of_sums
from rankstream.operations.commands.intervene_standing import WIDTH, wrapped
from rankstream.operations.monitoring.schedules import moment
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.loss_line import loss_line
from rankstream.operations.terminal.plain_text import plain
from rankstream.wire.curves import CurveRecord
from rankstream.wire.envelope import Pointer
from rankstream.wire.training import CurveUsed, RunRecord

SPARE = ("why", "parent")
"""Columns that may go where there is no room."""

CAPTION = (
    "DCG: estimated of held-out queries; the parent's, then that of the new version.",
    "estimated: clicks per list, from selection groups; a point without interval.",
    "curve: examination by rank, relative to rank 1, that clicks were corrected by.",
    "`--show VERSION` has the rest.",
)

N_RANKS_SHOWN = 5


def print_runs(runs: Sequence[RunRecord]) -> None:
    """Print a table, the first one first."""
    rows = [_row(each) for each in runs]
    lines = [line for each in CAPTION for line in wrapped(each)]
    for text in [*_curves_of(runs), *_reasons_of(runs)]:
        lines += wrapped(text)
    caption = "\n".join(map(plain, lines))
    table = Table(title=counted(len(rows), "training"), caption=caption)
    table.caption_justify = "left"
    for name in rows[0]:
        is_text = name in ("intervention", "why", "event time")
        table.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row.values())
    print_fitted(wide_console(), table, SPARE)


def print_run(run: RunRecord) -> None:
    """Print all that is known of one."""
    table = Table(show_header=False, title=plain(run.intervention))
    for name, value in _details(run).items():
        table.add_row(name, plain(value))
    console = wide_console()
    print_fitted(console if console.width < WIDTH else Console(width=WIDTH), table)


def write_json(value: Any) -> None:
    """Write it on one line."""
    sys.stdout.write(json.dumps(value) + "\n")


def as_builtins(run: RunRecord | CurveRecord) -> dict[str, Any]:
    """A run with its names, bytes as hexadecimal digits, no number as null."""
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
    return None if isinstance(value, float) and math.isnan(value) else value


def _row(run: RunRecord) -> dict[str, str]:
    return {
        "intervention": plain(run.intervention),
        "parent": _parent(run),
        "why": run.reason,
        "event time": moment(run.created_ms),
        "DCG": _dcg(run),
        "estimated\nclicks/list": _reward(run),
    }


def _details(run: RunRecord) -> dict[str, str]:
    sizes, curve = run.sizes, run.curve
    n_epochs = max(number for number, *_ in run.epochs)
    counts = ", ".join(f"{n:,} of partition {at}" for at, n in run.counts)
    asked = f", request {run.request}" if run.request else ""
    return {
        "parent": _parent(run),
        "sha256 of the parent": run.parent.sha256.hex(),
        "why": run.reason + asked,
        "event time": f"{moment(run.created_ms)} UTC",
        "interactions": f"{run.version:,}: {counts}",
        "queries": f"{sizes.n_queries:,} to learn from, {sizes.n_held_out:,} held out, "
        f"{sizes.n_without_features:,} left out without features",
        "lists left out": f"{sizes.n_left_out:,}, of policies that are unknown",
        "items": f"{sizes.n_items:,}, {sizes.n_below:,} of them below least_support "
        f"with {sizes.share_below:.2%} of the clicks",
        "values": choice_of_sums(has_known=run.estimator == OF_KNOWN).said(),
        "clicks": f"{sizes.n_clicks:,}, counted in the training groups",
        "epoch": f"{run.best_epoch} of {n_epochs}, loss {_best(run)[0]:.5g}",
        "loss": loss_line(run),
        "DCG": f"{_dcg(run)}, estimated, of held-out queries: parent, this one",
        "estimated clicks per list": run.reward_reason
        if run.reward is None
        else f"{_reward(run)}, from selection groups; a point without interval",
        "examination by rank": " ".join(map(_short, curve.alpha)),
        "from": curve.source,
        "known well": curve.warning or ("yes" if curve.groups else "-"),
        "scale, temperature": f"{run.scale:.5g}, {run.temperature:g}",
        "least exposure": f"{run.least_exposure:.3g}",
        "groups": f"training {_ranges(run.groups)}; curve {_ranges(curve.groups)}",
        "seed": str(run.seed),
        "feature records": ", ".join(
            f"{each.n_records:,} of partition {each.partition}, digest "
            f"{each.digest.hex()}"
            for each in run.features
        ),
        "sha256": run.sha256.hex(),
    }


def _curves_of(runs: Sequence[RunRecord]) -> list[str]:
    """Each curve once, after the names of the trainings that used it."""
    named: dict[str, list[str]] = {}
    for run in runs:
        named.setdefault(_told(run.curve), []).append(run.intervention)
    return [f"curve of {', '.join(names)}: {told}" for told, names in named.items()]


def _told(curve: CurveUsed) -> str:
    """A curve in a line, with what is wrong with it."""
    ranks = [_short(each) for each in curve.alpha]
    shown = " ".join(ranks[:N_RANKS_SHOWN])
    if len(ranks) > N_RANKS_SHOWN:
        shown += f" ... {ranks[-1]} at rank {len(ranks)}"
    warning = f"; {curve.warning}" if curve.warning else ""
    return f"{shown}, {curve.source}{warning}"


def _reasons_of(runs: Sequence[RunRecord]) -> list[str]:
    """Why there is no estimate, after the names of the trainings."""
    named: dict[str, list[str]] = {}
    for run in runs:
        if run.reward is None:
            named.setdefault(run.reward_reason, []).append(run.intervention)
    return [f"not estimated, {', '.join(names)}: {why}" for why, names in named.items()]


def _short(share: float) -> str:
    return f"{share:.2g}"


def _ranges(groups: Sequence[int]) -> str:
    return f"{groups[0]} to {groups[-1]}, {len(groups):,} of them" if groups else "none"


def _parent(run: RunRecord) -> str:
    return str(Pointer(run.parent.epoch, run.parent.version))


def _best(run: RunRecord) -> tuple[float, float]:
    """Loss and DCG of the epoch that was taken."""
    return {number: (loss, dcg) for number, loss, dcg in run.epochs}[run.best_epoch]


def _dcg(run: RunRecord) -> str:
    # The epochs begin with the parent's.
    of_parent = {number: dcg for number, _, dcg in run.epochs}.get(0, math.nan)
    return f"{of_parent:.4f} to {_best(run)[1]:.4f}"


def _reward(run: RunRecord) -> str:
    return "-" if run.reward is None else f"{run.reward:.4f}"
