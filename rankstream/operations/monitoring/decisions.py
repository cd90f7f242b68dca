"""Rules of decisions, each with its newest rewrite: a table of the monitor."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rankstream.operations.monitoring.tables import Fitted, borderless
from rankstream.operations.terminal.words import moment, visible

HEADINGS = ("rule", "intervention", "all others", "decided", "left out", "written")
SPARE = ("left out", "intervention")
"""Columns that may go where there is no room."""

N_TEXTS = 3


def decisions_of(rows: list[dict[str, Any]]) -> list[RenderableType]:
    """A row for each rule; nothing of none."""
    if not rows:
        return []
    table = borderless("decisions", HEADINGS, N_TEXTS)
    for each in rows:
        table.add_row(
            Text(visible(each["rule"])),
            Text(visible(each["intervention"]) or "withdrawn"),
            Text(visible(each["default"])),
            f"{each['decided']:,}",
            f"{each['left_out']:,}",
            moment(each["at_ms"]),
        )
    return [Fitted(table, SPARE)]
