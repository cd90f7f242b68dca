"""Rules of decisions, each with its newest rewrite: a table of the monitor."""

from typing import Any

from rich.console import RenderableType
from rich.table import Table

from rankstream.operations.monitoring.tables import Fitted
from rankstream.operations.terminal.words import moment, visible

HEADINGS = ("rule", "intervention", "all others", "decided", "left out", "written")
SPARE = ("left out", "intervention")
"""Columns that may go where there is no room."""

N_TEXTS = 3


def decisions_of(rows: list[dict[str, Any]]) -> list[RenderableType]:
    """A row for each rule; nothing of none."""
    if not rows:
        return []
    table = Table(
        title="decisions", title_justify="left", box=None, padding=(0, 1, 0, 0)
    )
    for number, heading in enumerate(HEADINGS):
        table.add_column(
            heading, justify="left" if number < N_TEXTS else "right", no_wrap=True
        )
    for each in rows:
        table.add_row(
            visible(each["rule"]),
            visible(each["intervention"]) or "withdrawn",
            visible(each["default"]),
            f"{each['decided']:,}",
            f"{each['left_out']:,}",
            moment(each["at_ms"]),
        )
    return [Fitted(table, SPARE)]
