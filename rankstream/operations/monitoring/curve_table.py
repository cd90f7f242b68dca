"""Curves of bias in a terminal."""

import textwrap
import time
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from rankstream.operations.monitoring.ages import age_in_words
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.plain_text import visible

BAR = 10

WIDTH = 78
"""Of what is said below a table."""


def curves_of(curves: list[dict[str, Any]]) -> RenderableType:
    """A table of each curve, and whose clicks it is of."""
    return Group(*(part for each in curves for part in _parts(each)))


def told_of(curve: dict[str, Any], now_ms: float) -> str:
    """What a curve is from, and how old it is."""
    unit = "relative to rank 1" if curve["is_ratio_only"] else "as its anchor has it"
    lists, clicks = counted(curve["shown"], "view"), counted(curve["clicked"], "click")
    return (
        f"{unit}; {lists} and {clicks}, {curve['source']}; "
        f"{age_in_words(curve['at_ms'], now_ms)}"
    )


def _parts(curve: dict[str, Any]) -> list[RenderableType]:
    title = visible(f"{curve['model']} {curve['version']}, {curve['estimator']}")
    table = Table(box=None, title=f"curve {title}", title_justify="left")
    has_beta = any(each["beta"] for each in curve["ranks"])
    level = f"{curve['confidence']:.0%}"
    for heading in ("", "alpha", level, *(("beta", level) if has_beta else ("",))):
        table.add_column(Text(heading, style="dim"), no_wrap=True)
    for each in curve["ranks"]:
        table.add_row(*_row(each, has_beta=has_beta))
    told = told_of(curve, time.time() * 1_000.0)
    why = [f"rank {x['rank']}: {x['why']}" for x in curve["ranks"] if x["why"]]
    lines = [y for x in (told, *why) for y in textwrap.wrap(visible(x), WIDTH)]
    return [table, Text("\n".join(lines), style="dim")]


def _row(each: dict[str, Any], *, has_beta: bool) -> list[str]:
    alpha = each["alpha"]
    cells = [str(each["rank"]), _number(alpha), _ends(each, "alpha_interval")]
    if has_beta:
        return [*cells, _number(each["beta"]), _ends(each, "beta_interval")]
    return [*cells, "█" * round(BAR * min(1.0, max(0.0, alpha or 0.0)))]


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _ends(each: dict[str, Any], name: str) -> str:
    ends = each[name]
    # The first rank is the unit of all others.
    if ends is None or each["rank"] == 1:
        return ""
    return f"{ends[0]:.2f} to {ends[1]:.2f}"
