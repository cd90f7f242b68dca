"""Lines with bands over one number, panel beside panel, as SVG.

The same lines give the same bytes: there is no date, and names are drawn from no clock.
What is drawn lies on no ground of its own, in greys that are seen on a white one and on
a black one.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import cycle, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from rankstream.operations.plots.style import BASE, DASHED, SOLID

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 4.6, 3.4
"""Of a panel with its scale, in inches."""

COLOURS = (
    "#0b6e99",
    "#d9730d",
    "#448361",
    "#9065b0",
    "#c4554d",
    "#787774",
    "#b8860b",
    "#b0307a",
)
GREY, GRID = "#767676", "#8888884d"

DOTTED = ":"

STYLE: dict[Any, Any] = {
    **BASE,
    "text.color": GREY,
    "axes.labelcolor": GREY,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "axes.facecolor": "none",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.edgecolor": GRID,
}


class Point(NamedTuple):
    """A value, and by how much its band goes up and down."""

    x: float
    value: float
    spread: float


Lines = Mapping[str, Sequence[Point]]
"""By what the legend says; points with NaN are left out."""


def picture_of(
    title: str,
    panels: Mapping[str, Lines],
    *,
    below: str,
    is_log: bool,
    is_one_scale: bool = False,
) -> str:
    """Panels by what stands above them, as the text of an SVG.

    Parameters
    ----------
    below
        What the numbers along the bottom are.
    is_log
        Whether these are spaced by their logarithms; else every number that a point
        has is named.
    is_one_scale
        Whether all panels are of one metric; else each has its own range of values.
    """
    # Of the extra `plots`, of which the lab's is made.
    from rankstream.operations.plots.figure import figure_bytes, styled  # noqa: PLC0415

    with styled(STYLE):
        drawn = drawing_of(
            title, panels, below=below, is_log=is_log, is_one_scale=is_one_scale
        )
    return figure_bytes(drawn, "svg").decode()


def drawing_of(
    title: str,
    panels: Mapping[str, Lines],
    *,
    below: str,
    is_log: bool,
    is_one_scale: bool,
) -> "Figure":
    """The same, to be saved."""
    from matplotlib.figure import Figure  # noqa: PLC0415  of the extra `plots`

    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    longest = max(map(len, names), default=1)
    width = max(WIDTH * len(panels), 0.1 * len(title))
    n_columns = max(1, int(width / (0.5 + 0.07 * longest)))
    n_rows = math.ceil(len(names) / n_columns)
    drawn = Figure(figsize=(width, HEIGHT + 0.3 + 0.2 * n_rows), layout="constrained")
    drawn.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=10.0)
    every = drawn.subplots(1, len(panels), sharey=is_one_scale, squeeze=False)[0]
    looks = looks_of(names, _level(panels))
    for axes, (above, lines) in zip(every, panels.items(), strict=True):
        _draw_panel(axes, lines, looks, is_log=is_log)
        axes.set_title(above, loc="left", fontsize=9.0)
        axes.set_xlabel(below)
    entries = [
        every[0].plot([], [], color=colour, linestyle=style, label=name)[0]
        for name, (colour, style) in looks.items()
    ]
    drawn.legend(
        handles=entries, loc="outside lower left", ncols=n_columns, frameon=False
    )
    return drawn


def looks_of(names: Sequence[str], level: set[str]) -> dict[str, tuple[str, str]]:
    """Colours and dashes by name.

    A line named after another one has its colour, and dashes. One that is level has
    dots, so that what lies under it is seen.
    """
    looks: dict[str, tuple[str, str]] = {}
    firsts: dict[str, str] = {}
    for number, name in enumerate(names):
        before = [other for other in names[:number] if name.startswith(f"{other}, ")]
        n_colours = len(firsts)
        colour = next(islice(cycle(COLOURS), n_colours, None))
        colour = firsts.setdefault(before[0] if before else name, colour)
        is_dashed = bool(before) or n_colours >= len(COLOURS)
        style = DOTTED if name in level else DASHED if is_dashed else SOLID
        looks[name] = colour, style
    return looks


def _level(panels: Mapping[str, Lines]) -> set[str]:
    """Names of lines that are at one value everywhere, as what is compared to is."""
    found = set()
    for name in {name for lines in panels.values() for name in lines}:
        every = [lines[name] for lines in panels.values() if name in lines]
        levels = [
            {point.value for point in points if math.isfinite(point.value)}
            for points in every
        ]
        if max(map(len, every)) > 1 and max(map(len, levels)) <= 1:
            found.add(name)
    return found


def _draw_panel(
    axes: "Axes", lines: Lines, looks: Mapping[str, tuple[str, str]], *, is_log: bool
) -> None:
    kept = {
        name: sorted(point for point in points if math.isfinite(point.value))
        for name, points in lines.items()
    }
    if is_log:
        axes.set_xscale("log")
    else:
        axes.set_xticks(sorted({each.x for row in kept.values() for each in row}))
    # Bands first: none dims a line.
    for name, points in kept.items():
        axes.fill_between(
            [point.x for point in points],
            [point.value - point.spread for point in points],
            [point.value + point.spread for point in points],
            color=looks[name][0],
            alpha=0.13,
            linewidth=0.0,
        )
    for name, points in kept.items():
        colour, style = looks[name]
        xs, values = [point.x for point in points], [point.value for point in points]
        axes.plot(xs, values, color=colour, linestyle=style, linewidth=1.5)
    axes.grid(axis="y", color=GRID, linewidth=0.7)
    axes.minorticks_off()
    axes.tick_params(length=0)
