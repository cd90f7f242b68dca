"""Fits of curves of bias as tables."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from rankstream.operations.commands.intervene_standing import WIDTH, wrapped
from rankstream.operations.monitoring.schedules import moment
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.plain_text import plain
from rankstream.wire.curves import CurveOfRank, CurveRecord, published

SPARE = ("why", "event time")
"""Columns that may go where there is no room."""

N_RANKS_SHOWN = 5

UNITS = "in units of rank 1, which is what clicks tell"


def print_curves(records: Sequence[CurveRecord]) -> None:
    """Print a table of fits, the first one first."""
    table = Table(title=counted(len(records), "curve"))
    for name in ("curve", "why", "event time", "estimator", "alpha by rank"):
        table.add_column(name, no_wrap=True)
    for each in records:
        alpha = [_short(rank.alpha) for rank in published(each).ranks]
        more = " ..." if len(alpha) > N_RANKS_SHOWN else ""
        table.add_row(
            plain(each.intervention),
            each.reason,
            moment(each.created_ms),
            plain(each.estimator),
            " ".join(alpha[:N_RANKS_SHOWN]) + more,
        )
    lines = [line for each in _warnings_of(records) for line in wrapped(each)]
    lines.append("`--show VERSION` has intervals, beta and reasons.")
    table.caption, table.caption_justify = "\n".join(map(plain, lines)), "left"
    print_fitted(wide_console(), table, SPARE)


def print_curve(record: CurveRecord) -> None:
    """Print all that is known of one: what it is from, then rank by rank."""
    console = wide_console()
    console = console if console.width < WIDTH else Console(width=WIDTH)
    table = Table(show_header=False, title=plain(record.intervention))
    for name, value in _details(record).items():
        table.add_row(name, plain(value))
    print_fitted(console, table)
    confidence = record.options["confidence"]
    ranks = Table(title=f"by rank, with intervals of {confidence:.0%}, each by itself")
    for name in ("rank", "alpha", "beta", "not known, or without interval"):
        ranks.add_column(name, justify="left" if "not" in name else "right")
    for rank in published(record).ranks:
        ranks.add_row(str(rank.rank), *_numbers(rank), plain(rank.why))
    print_fitted(console, ranks)


def _details(record: CurveRecord) -> dict[str, str]:
    parent, version = record.parent, sum(n for _, n in record.counts)
    asked = f", request {record.request}" if record.request else ""
    counts = ", ".join(f"{n:,} of partition {at}" for at, n in record.counts)
    options = ", ".join(
        f"{name} {value}" for name, value in record.options.items() if value is not None
    )
    turns = f", {counted(record.n_turns, 'turn')}" if record.n_turns else ""
    return {
        "version before": f"{parent.epoch}.{parent.version}" if parent else "none",
        "why": record.reason + asked,
        "event time": f"{moment(record.created_ms)} UTC",
        "interactions": f"{version:,}: {counts}",
        "options": options,
        "clicks": record.source,
        "rests on": f"{counted(record.n_rows, 'row')} of document and rank, "
        f"{record.n_shown:,} times shown, {counted(record.n_clicked, 'click')}",
        "log likelihood": "-"
        if record.log_likelihood is None
        else f"{record.log_likelihood:.6g}{turns}",
        "trust bias": record.bias or "-",
        "alpha and beta": UNITS if record.is_ratio_only else "as the anchor has it",
        "sha256": record.sha256.hex(),
    }


def _warnings_of(records: Sequence[CurveRecord]) -> list[str]:
    return [
        f"{each.intervention}: {each.warning()}" for each in records if each.warning()
    ]


def _numbers(rank: CurveOfRank) -> tuple[str, str]:
    return (
        _with_ends(rank.alpha, rank.alpha_interval),
        _with_ends(rank.beta, rank.beta_interval),
    )


def _with_ends(value: float | None, ends: tuple[float, float] | None) -> str:
    if value is None:
        return "-"
    shown = f"{value:.3f}"
    return shown if ends is None else f"{shown} [{ends[0]:.3f}, {ends[1]:.3f}]"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
