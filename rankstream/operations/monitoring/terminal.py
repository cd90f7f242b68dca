"""The monitor in a terminal."""

import time
from typing import Any

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rankstream.operations.monitoring.canaries import canaries_of
from rankstream.operations.monitoring.decisions import decisions_of
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.tables import (
    age_in_words,
    curves_of,
    interventions_of,
    values_of,
)
from rankstream.operations.terminal.words import counted
from rankstream.wire.verdicts import Ends, MethodVerdict, Verdict

LIGHTS = {"ok": "green", "warning": "yellow", "alarm": "red"}
BAR = 41
MOST_PAIRS = 12

EMPTY = """No verdict yet. To get one:
  1. add [experiments.NAME] to the settings, with two rankers
  2. rankstream topics create, and start rankstream worker again
  3. rankstream experiments publish
  4. let a service combine lists: rankstream.experiments"""


def view_of(gathered: Gathered, selected: str | None = None) -> RenderableType:
    """The whole screen; `selected` experiment in detail, else the first."""
    overview = gathered.overview()
    rows = overview["experiments"]
    parts: list[RenderableType] = []
    if overview["trouble"]:
        parts.append(Text(overview["trouble"], style="yellow"))
    found = overview["interventions"]
    is_trained = bool(found["rows"] or found["states"] or found["next"])
    canaries, decisions = overview["canaries"], overview["decisions"]
    if not (rows or is_trained or canaries or decisions or overview["values"]):
        parts.append(Panel(Text(EMPTY), title="experiments"))
    elif rows:
        name = selected or rows[0]["name"]
        parts.append(_experiments(rows))
        detail = gathered.experiment(name)
        if detail is None:
            parts.append(Text(f"experiment {name!r} has no verdict", style="yellow"))
        else:
            parts.append(_detail(detail["verdict"]))
    if is_trained:
        parts.append(interventions_of(found))
    parts += canaries_of(canaries)
    parts += decisions_of(decisions)
    parts += values_of(overview["values"])
    if overview["curves"]:
        # Beside the counts there is no room for intervals of alpha and beta.
        parts += [_counts(overview), curves_of(overview["curves"])]
    else:
        below = Table.grid(padding=(0, 3))
        below.add_row(_counts(overview), _examination(overview["examination"]))
        parts.append(below)
    return Group(*parts)


def _experiments(rows: list[dict[str, Any]]) -> Table:
    table = Table(
        title=counted(len(rows), "experiment"), title_justify="left", expand=True
    )
    for heading in ("name", "epoch", "method", "impressions", "winner", "health"):
        table.add_column(heading)
    for row in rows:
        table.add_row(
            Text(row["name"]),
            str(row["epoch"]),
            Text(row["method"]),
            f"{row['impressions']:,}",
            Text(row["winner"] or "-"),
            Text(row["health"], style=LIGHTS[row["health"]]),
        )
    return table


def _detail(verdict: Verdict) -> RenderableType:
    found = verdict.drawn_by
    side = Table.grid(padding=(0, 3))
    side.add_row(_matrix(verdict.rankers, found.matrix), _health(verdict))
    title = Text(f"{verdict.experiment}, epoch {verdict.epoch}")
    return Panel(Group(side, _intervals(verdict, found)), title=title)


def _matrix(rankers: list[str], matrix: list[list[float]]) -> Table:
    """Mean preference of row over column; green where positive, red where not."""
    largest = max((abs(value) for row in matrix for value in row), default=0.0) or 1.0
    table = Table(box=None, title="row over column", title_justify="left")
    table.add_column("")
    for name in rankers:
        table.add_column(Text(name[:8]), justify="right")
    for name, row in zip(rankers, matrix, strict=True):
        cells = [_cell(value, largest) for value in row]
        table.add_row(Text(name[:12]), *cells)
    return table


def _cell(value: float, largest: float) -> Text:
    if value == 0.0:
        return Text("·", style="dim")
    shade = 40 + int(140 * abs(value) / largest)
    colour = f"rgb(0,{shade},60)" if value > 0 else f"rgb({shade},30,40)"
    return Text(f"{value:+.3f}", style=f"white on {colour}")


def _health(verdict: Verdict) -> Table:
    table = Table(box=None, title="health", title_justify="left")
    for check in verdict.health:
        shown = "-" if check.value is None else f"{check.value:.4g}"
        light = Text("●", style=LIGHTS[check.state])
        table.add_row(light, Text(check.name), shown)
    return table


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
    table = Table(
        box=None,
        caption="\n".join(each for each in (*told, found.sessions.why) if each),
        caption_justify="left",
    )
    table.add_column("a over b")
    table.add_column("sessions to come")
    table.add_column("sessions that came")
    table.add_column("mean", justify="right")
    for pair in ordered:
        table.add_row(
            Text(f"{pair.a} over {pair.b}"),
            _bar(pair.to_come, pair.mean, largest, "nothing can be said yet"),
            _bar(pair.came, pair.mean, largest, "no data yet"),
            f"{pair.mean:+.4f}",
        )
    return table


def _bar(ends: Ends, mean: float, largest: float, missing: str) -> Text:
    low, high = ends
    if low is None or high is None:
        return Text(missing, style="dim")
    middle = BAR // 2

    def place(value: float) -> int:
        return middle + round(max(-1.0, min(1.0, value / largest)) * middle)

    marks = [" "] * BAR
    for at in range(place(low), place(high) + 1):
        marks[at] = "─"
    marks[middle] = "│"
    marks[place(mean)] = "●"
    is_decided = low > 0 or high < 0
    return Text("".join(marks), style="bold green" if is_decided else "white")


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
        bar.append(each["reason"], "dim")
        table.add_row(
            str(rank),
            "-" if ratio is None else f"{ratio:.3f}",
            "" if rank == 1 or interval is None else "{:.3f}-{:.3f}".format(*interval),
            bar,
        )
    return table


def _counts(overview: dict[str, Any]) -> Table:
    table = Table(box=None, title="log and models", title_justify="left")
    if not overview["counts"]:
        table.add_row("counts of events", "need metrics.port in the settings")
    for name, count in overview["counts"].items():
        table.add_row(name.replace("_", " "), f"{count:,}")
    now_ms = time.time() * 1_000.0
    for each in overview["snapshots"]:
        age = age_in_words(each["created_ms"], now_ms)
        table.add_row(Text(each["model"]), f"version {each['version']}, {age}")
        table.add_row("", _progress(each))
    return table


def _progress(snapshot: dict[str, Any]) -> str:
    """What a model learned, and how fast while somebody watched."""
    if snapshot["is_trained"]:
        n_counted = snapshot["learned"]
        return f"{n_counted:,} lists counted" if n_counted else "not trained yet"
    told = f"{snapshot['learned']:,} lists learned, {snapshot['updates']:,} updates"
    pace = snapshot["per_minute"]
    return told if pace is None else f"{told}, {pace:,.0f} lists a minute"
