"""The monitor in a terminal."""

import time
from collections.abc import Iterator
from typing import Any

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    RenderableType,
    RenderResult,
)
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rankstream.operations.monitoring.canaries import canaries_of
from rankstream.operations.monitoring.decisions import decisions_of
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.parts import ROLE
from rankstream.operations.monitoring.tables import (
    age_in_words,
    curves_of,
    interventions_of,
    short_age,
    values_of,
)
from rankstream.operations.terminal.words import counted, visible
from rankstream.wire.verdicts import Ends, MethodVerdict, Verdict

LIGHTS = {"ok": "green", "warning": "yellow", "alarm": "red"}
BAR, LEAST_BAR = 41, 11
MOST_PAIRS = 12

STATES = {
    "decided": "bold green",
    "equal": "green",
    "refused": "red",
    "undecided": "",
    "waiting": "dim",
}


def view_of(gathered: Gathered, selected: str | None = None) -> RenderableType:
    """The whole screen; `selected` experiment in detail, else the first."""
    overview = gathered.overview()
    rows = overview["experiments"]
    parts: list[RenderableType] = [*_troubles(overview)]
    if not gathered.is_begun:
        parts.append(_steps(overview["steps"]))
    if rows:
        name = selected or rows[0]["name"]
        parts.append(_experiments(rows))
        detail = gathered.experiment(name)
        if detail is None:
            parts.append(Text(f"experiment {name!r} has no verdict", style="yellow"))
        else:
            parts.append(_detail(detail))
    if gathered.has_interventions:
        parts.append(interventions_of(overview["interventions"]))
    parts += canaries_of(overview["canaries"])
    parts += decisions_of(overview["decisions"])
    parts += values_of(overview["values"])
    if overview["curves"]:
        # Beside the counts there is no room for intervals of alpha and beta.
        parts += [_counts(overview), curves_of(overview["curves"])]
    else:
        below = Table.grid(padding=(0, 3))
        below.add_row(_counts(overview), _examination(overview["examination"]))
        parts.append(below)
    return Group(*parts)


def _troubles(overview: dict[str, Any]) -> Iterator[Text]:
    """What is away, how old what is shown of it is, and what else must be known."""
    now_ms = overview["now_ms"]
    for each in overview["away"]:
        line = Text(visible(each["words"]), style="yellow")
        if each["heard_ms"] is not None:
            age = short_age(each["heard_ms"], now_ms)
            line.append(f"; what is shown of it is {age} old")
        yield line
    if overview["trouble"]:
        yield Text(visible(overview["trouble"]), style="yellow")


def _steps(steps: list[dict[str, Any]]) -> Panel:
    lines = Text()
    for each in steps:
        mark, style = ("✓", "green") if each["is_done"] else ("·", "dim")
        lines.append(f"{mark} {each['name']}\n", style=style)
        if not each["is_done"]:
            lines.append(f"    {each['remedy']}\n")
    lines.rstrip()
    return Panel(lines, title="No verdict yet")


def _experiments(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        title=counted(len(rows), "experiment"), title_justify="left", expand=True
    )
    table.add_column("name", max_width=24)
    table.add_column("lists", justify="right", no_wrap=True)
    table.add_column("", ratio=1)
    table.add_column("health", no_wrap=True)
    for row in rows:
        table.add_row(
            Text(visible(row["name"])),
            f"{row['impressions']:,}",
            Text(visible(row["words"]), style=STATES[row["state"]]),
            Text(row["health"], style=LIGHTS[row["health"]]),
        )
    return table


def _detail(detail: dict[str, Any]) -> RenderableType:
    """The sentence, what warns, the matrix of more than two rankers, the pairs."""
    verdict: Verdict = detail["verdict"]
    found, standing = verdict.drawn_by, detail["standing"]
    parts: list[RenderableType] = [
        Text(visible(standing["words"]), style=STATES[standing["state"]] or "bold")
    ]
    for each in detail["attention"]:
        parts.append(Text(visible(each["words"]), style=LIGHTS[each["state"]]))
    if len(verdict.rankers) > 2:
        parts.append(_matrix(verdict.rankers, found.matrix))
    parts.append(_intervals(verdict, found))
    title = f"{verdict.experiment}, epoch {verdict.epoch}, {verdict.method}"
    return Panel(Group(*parts), title=Text(visible(title)))


def _matrix(rankers: list[str], matrix: list[list[float]]) -> Table:
    """Mean preference of row over column; green where positive, red where not."""
    largest = max((abs(value) for row in matrix for value in row), default=0.0) or 1.0
    table = Table(box=None, title="row over column", title_justify="left")
    table.add_column("")
    for name in rankers:
        table.add_column(Text(visible(name[:8])), justify="right")
    for name, row in zip(rankers, matrix, strict=True):
        cells = [_cell(value, largest) for value in row]
        table.add_row(Text(visible(name[:12])), *cells)
    return table


def _cell(value: float, largest: float) -> Text:
    if value == 0.0:
        return Text("·", style="dim")
    shade = 40 + int(140 * abs(value) / largest)
    colour = f"rgb(0,{shade},60)" if value > 0 else f"rgb({shade},30,40)"
    return Text(f"{value:+.3f}", style=f"white on {colour}")


def _intervals(verdict: Verdict, found: MethodVerdict) -> Table:
    ordered = sorted(found.pairs, key=lambda pair: -abs(pair.mean))[:MOST_PAIRS]
    ends = [
        abs(end)
        for pair in ordered
        for end in (*pair.to_come, *pair.came)
        if end is not None
    ]
    largest = max(ends, default=1.0) or 1.0
    told = [verdict.questions[name] for name in ("to_come", "came", "winner")]
    said = [each for each in (*told, found.sessions.why) if each]
    table = Table(
        box=None,
        caption=Text("\n".join(map(visible, said)), style="table.caption"),
        caption_justify="left",
    )
    table.add_column("a over b")
    table.add_column("sessions to come")
    table.add_column("sessions that came")
    table.add_column("mean", justify="right")
    for pair in ordered:
        table.add_row(
            Text(visible(f"{pair.a} over {pair.b}")),
            _bar(pair.to_come, pair.mean, largest, "nothing can be said yet"),
            _bar(pair.came, pair.mean, largest, "no data yet"),
            f"{pair.mean:+.4f}",
        )
    return table


def _bar(ends: Ends, mean: float, largest: float, missing: str) -> RenderableType:
    low, high = ends
    if low is None or high is None:
        return Text(missing, style="dim")
    return _Bar(low, mean, high, largest)


class _Bar:
    """An interval around zero with its mean, as wide as there is room."""

    def __init__(self, low: float, mean: float, high: float, largest: float) -> None:
        self._places = low / largest, high / largest, mean / largest
        self._style = "bold green" if low > 0 or high < 0 else "white"

    def __rich_measure__(
        self, console: Console, options: ConsoleOptions
    ) -> Measurement:
        """The least and the most that it takes."""
        del console
        room = options.max_width
        return Measurement(min(LEAST_BAR, room), min(BAR, room))

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> RenderResult:
        """The line, with zero in its middle."""
        del console
        middle = (min(BAR, options.max_width) - 1) // 2
        low, high, mean = (
            middle + round(max(-1.0, min(1.0, each)) * middle) for each in self._places
        )
        marks = [" "] * (2 * middle + 1)
        marks[low : high + 1] = "─" * (high + 1 - low)
        marks[middle] = "│"
        marks[mean] = "●"
        yield Text("".join(marks), style=self._style)


def _examination(examination: list[dict[str, Any]]) -> RenderableType:
    """Position bias: examination by rank, relative to the first."""
    if not examination:
        return Text("")
    table = Table(box=None, title="examination by rank", title_justify="left")
    for heading in ("", "", "95 %", ""):
        table.add_column(Text(heading, style="dim"))
    for rank, each in enumerate(examination, 1):
        ratio, interval = each["ratio"], each["interval"]
        bar = Text("█" * round(24 * min(1.0, ratio or 0.0)) + " ")
        bar.append(visible(each["reason"]), "dim")
        table.add_row(
            str(rank),
            "-" if ratio is None else f"{ratio:.3f}",
            "" if rank == 1 or interval is None else "{:.3f}-{:.3f}".format(*interval),
            bar,
        )
    return table


def _counts(overview: dict[str, Any]) -> Table:
    """The flow by role, counts of events, and models."""
    table = Table(box=None, title="log and models", title_justify="left")
    if not any(each["name"].startswith(ROLE) for each in overview["parts"]):
        table.add_row("counts of events", "need metrics.port in the settings")
    elif not overview["flow"]:
        table.add_row("events a second", "not known, as no role answers")
    for each in overview["flow"]:
        table.add_row(Text(visible(each["role"])), _flow(each))
    for name, count in overview["counts"].items():
        table.add_row(Text(visible(name.replace("_", " "))), f"{count:,}")
    now_ms = time.time() * 1_000.0
    for each in overview["snapshots"]:
        age = age_in_words(each["created_ms"], now_ms)
        told = visible(f"version {each['version']}, {age}")
        table.add_row(Text(visible(each["model"])), Text(told))
        table.add_row("", _progress(each))
    return table


def _flow(flow: dict[str, Any]) -> str:
    """Events a second at last, and how far a role is behind."""
    pace = f"{flow['per_s'][-1]:,.1f} events/s, " if flow["per_s"] else ""
    if not flow["behind"]:
        return f"{pace}nothing waits"
    waits, lag_s = f"{pace}{counted(flow['behind'], 'record')} behind", flow["behind_s"]
    if lag_s is None:
        return f"{waits}, and it stands still"
    return f"{waits}, {'under a second' if lag_s < 1.0 else f'{lag_s:,.0f} s'} of work"


def _progress(snapshot: dict[str, Any]) -> str:
    """What a model learned, and how fast while somebody watched."""
    if snapshot["is_trained"]:
        n_counted = snapshot["learned"]
        return f"{n_counted:,} lists counted" if n_counted else "not trained yet"
    told = f"{snapshot['learned']:,} lists learned, {snapshot['updates']:,} updates"
    pace = snapshot["per_minute"]
    return told if pace is None else f"{told}, {pace:,.0f} lists a minute"
