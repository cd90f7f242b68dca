"""What is going out, and how it does: a table of the monitor in a terminal."""

from typing import Any

from rich.console import RenderableType
from rich.text import Text

from rankstream.operations.monitoring.tables import Fitted, borderless
from rankstream.operations.terminal.words import visible
from rankstream.wire.models.canary_reports import OUT

HEADINGS = (
    "canary",
    "beside",
    "share",
    "lists",
    "of planned",
    "",
    "difference",
    "interval",
    "largest loss",
)
SPARE = ("largest loss", "of planned", "beside")
"""Columns that may go where there is no room."""

N_TEXTS = 2

STATES = {OUT: "cyan", "promoted": "green", "canary withdrawn": "red"}


def canaries_of(reports: list[dict[str, Any]]) -> list[RenderableType]:
    """A row for each quantity of each canary, and the judgement; nothing of none."""
    if not reports:
        return []
    table = borderless("canaries", HEADINGS, N_TEXTS)
    for report in reports:
        for number, each in enumerate(report["differences"]):
            of_canary = _of_canary(report) if not number else [""] * 5
            loss = report["largest_loss"] if not number else None
            table.add_row(
                *of_canary,
                Text(visible(each["name"])),
                _figure(each["mean"]),
                _ends(each["interval"]),
                "" if loss is None else f"{loss:.3f}",
            )
    told = [_judgement(report) for report in reports]
    return [Fitted(table, SPARE), *told]


def _of_canary(report: dict[str, Any]) -> list[str | Text]:
    share = "none"
    if report["state"] == OUT:
        stage = f"{report['stage']} of {report['stages']}"
        share = f"{100.0 * report['share']:g} % ({stage})"
    n_lists = report["canary_lists"]
    return [
        Text(visible(report["canary"])),
        Text(visible(report["before"])),
        share,
        f"{n_lists:,}",
        f"{100.0 * n_lists / report['planned']:.0f} %",
    ]


def _judgement(report: dict[str, Any]) -> Text:
    state = report["state"]
    line = Text(f"{visible(report['model'])}: ")
    line.append(visible(state), style=STATES.get(state, "yellow"))
    words = report["words"].removeprefix("undecided ")
    line.append(f", {visible(words)}", style="dim italic")
    return line


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:+.4f}"


def _ends(ends: list[float | None]) -> str:
    low, high = ends
    return "-" if low is None or high is None else f"{low:+.4f} to {high:+.4f}"
