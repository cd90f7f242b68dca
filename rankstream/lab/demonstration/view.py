"""What the demonstration shows in a terminal while it runs, and at its end."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from models.bias.examination import ExaminationCurve
from rankstream.operations.terminal.words import counted

WIDE = 48
"""Columns that long bars need."""

BLOCKS = " ▁▂▃▄▅▆▇█"
OUTCOMES = (
    ("applied_impressions", "impressions applied", "green"),
    ("applied_clicks", "clicks applied", "green"),
    ("pending", "pending", "cyan"),
    ("duplicate", "duplicate", "yellow"),
    ("late", "late", "yellow"),
    ("orphan", "orphan", "yellow"),
    ("dead_letters", "dead letters", "red"),
)


@dataclass
class DemoState:
    """What is shown; the demonstration keeps it up to date."""

    title: str
    n_impressions: int
    production_ndcg: float
    examination: Sequence[float]
    shown: int = 0
    seconds: float = 0.0
    version: int = 0
    behind: int = 0
    ndcg: list[float] = field(default_factory=list)
    estimated: ExaminationCurve | None = None
    counts: dict[str, int] = field(default_factory=dict)


def view_of(state: DemoState) -> RenderableType:
    """The whole screen."""
    panels = Table.grid(expand=True)
    panels.add_column(ratio=5)
    panels.add_column(ratio=4)
    panels.add_row(
        Group(_learning(state), _outcomes(state)),
        _Examination(state),
    )
    return Panel(
        Group(_progress(state), panels),
        title=f"[bold]rankstream demo[/]  {state.title}",
        border_style="blue",
    )


def end_of(state: DemoState) -> RenderableType:
    """Outcomes and examination, one below the other: for where nothing is live."""
    return Group(_outcomes(state), _Examination(state))


def _progress(state: DemoState) -> RenderableType:
    rate = state.shown / state.seconds if state.seconds else 0.0
    left_s = (state.n_impressions - state.shown) / rate if rate else 0.0
    line = Table.grid(expand=True, padding=(0, 1))
    line.add_column(ratio=1)
    line.add_column(justify="right", no_wrap=True)
    line.add_row(
        ProgressBar(state.n_impressions, state.shown),
        f"{state.shown:,} of {state.n_impressions:,} lists   {rate:,.0f}/s   "
        f"{left_s:.0f} s left",
    )
    return line


def _learning(state: DemoState) -> RenderableType:
    now = state.ndcg[-1] if state.ndcg else 0.0
    curve = Text(curve_of(state.ndcg, width=50, low=0.2, high=1.0), style="green")
    facts = Text.assemble(
        ("NDCG@10 of the learned ranker on held-out queries  ", ""),
        (f"{now:.3f}", "bold green"),
        (f"   production {state.production_ndcg:.3f}", "dim"),
    )
    served = Text(
        f"serving version {state.version:,}, {counted(state.behind, 'list')} behind",
        "dim",
    )
    return Panel(Group(facts, curve, served), title="learning while serving")


def curve_of(values: Sequence[float], *, width: int, low: float, high: float) -> str:
    """Values as a row of blocks, the last ones at the right."""
    if not values:
        return " " * width
    step = max(1, -(-len(values) // width))
    picked = list(values)[::-step][::-1]
    span = high - low
    places = [(value - low) / span * (len(BLOCKS) - 1) for value in picked]
    marks = [BLOCKS[min(len(BLOCKS) - 1, max(0, round(place)))] for place in places]
    return "".join(marks).ljust(width)


def _outcomes(state: DemoState) -> RenderableType:
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for name, label, colour in OUTCOMES:
        table.add_row(label, Text(f"{state.counts.get(name, 0):,}", style=colour))
    return Panel(table, title="every event has one outcome")


@dataclass(frozen=True)
class _Examination:
    """Planted and estimated examination by rank.

    Without intervals: lists are those of a model that learns from these clicks.
    """

    state: DemoState

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        """Draw it as wide as it may be."""
        is_wide = options.max_width >= WIDE
        table = Table(box=None, expand=True, pad_edge=False)
        for heading in ("rank", "truth", "estimate"):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("", ratio=1, no_wrap=True)
        for row, truth in enumerate(self.state.examination):
            ratio = _estimate_of(self.state, row)
            estimate = "-" if math.isnan(ratio) else f"{ratio:.3f}"
            value = 0.0 if math.isnan(ratio) else ratio
            bar = bar_of(value, truth, 20 if is_wide else 5)
            table.add_row(str(row + 1), f"{truth:.3f}", estimate, bar)
        note = Text("bar: estimated from clicks   │: planted truth", "dim")
        yield Panel(Group(table, note), title="examination by rank")


def _estimate_of(state: DemoState, row: int) -> float:
    """The estimate, NaN where there is none."""
    curve = state.estimated
    return math.nan if curve is None else float(curve.ratios[row])


def bar_of(value: float, mark: float, width: int = 9) -> Text:
    """A bar for a value in [0, 1], with a mark at the truth."""
    filled = round(min(1.0, max(0.0, value)) * width)
    at = min(width, round(mark * width))
    cells = ["█" if place < filled else " " for place in range(width + 1)]
    text = Text("".join(cells), style="magenta")
    text.plain = "".join(cells[:at]) + "│" + "".join(cells[at + 1 :])
    text.stylize("bold white", at, at + 1)
    return text


def result_of(rows: Sequence[tuple[str, float, float]]) -> Table:
    """The last table: name, NDCG@10, clicks per list of each ranker."""
    table = Table(title="what was learned, on queries held out", title_justify="left")
    table.add_column("ranker")
    table.add_column("NDCG@10", justify="right")
    table.add_column("expected clicks a list", justify="right")
    for name, ndcg, clicks in rows:
        style = "bold green" if name == "learned" else ""
        table.add_row(name, f"{ndcg:.3f}", f"{clicks:.2f}", style=style)
    return table
