"""Lines with bands over one number, panel beside panel, in plain SVG.

Each panel has its own range of values, as panels may be of different metrics.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

from rankstream.lab.reproduction.picture import COLOURS, STYLE

WIDTH, HEIGHT = 330, 250
LEFT, TOP, BOTTOM, GAP = 52, 46, 40, 64
ROW, SAMPLE = 20, 28
"""Of the legend: height of a row, width of a piece of the line."""

LETTER, OF_TITLE = 7.2, 8.0
"""Widths that are enough for a letter, on the mean of words."""

DASHES, DOTS = "6 4", "1.5 3.5"

STEPS = (1.0, 2.0, 2.5, 5.0)
"""Between lines of a grid, times a power of ten."""


class Point(NamedTuple):
    """A value, and by how much its band goes up and down."""

    x: float
    value: float
    spread: float


Lines = Mapping[str, Sequence[Point]]
"""By what the legend says; points with NaN are left out."""


def line_picture(
    title: str, panels: Mapping[str, Lines], *, below: str, is_log: bool
) -> str:
    """Panels by what stands above them.

    Parameters
    ----------
    below
        What the numbers along the bottom are.
    is_log
        Whether these are spaced by their logarithms, with powers of ten named; else
        every number that a point has is.
    """
    names = list(dict.fromkeys(name for lines in panels.values() for name in lines))
    dressed = _dressed(names, _level(panels))
    entry = SAMPLE + math.ceil(LETTER * max(map(len, names), default=0)) + 16
    width = LEFT + max(len(panels) * (WIDTH + GAP), math.ceil(OF_TITLE * len(title)))
    n_columns = max(1, (width - LEFT) // entry)
    n_rows = math.ceil(len(names) / n_columns)
    height = TOP + HEIGHT + BOTTOM + ROW * n_rows + 8
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>',
    ]
    for number, (above, lines) in enumerate(panels.items()):
        left = LEFT + number * (WIDTH + GAP)
        parts += _panel(left, above, below, lines, dressed, is_log=is_log)
    for i, name in enumerate(names):
        x = LEFT + i % n_columns * entry
        y = TOP + HEIGHT + BOTTOM + ROW * (i // n_columns) + 14
        parts.append(
            f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" '
            f'{dressed[name]} stroke-width="2.5"/>'
            f'<text x="{x + SAMPLE}" y="{y}">{escape(name)}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


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


def _dressed(names: Sequence[str], level: set[str]) -> dict[str, str]:
    """Colours and dashes by name.

    A line named after another one has its colour, and dashes. One that is level has
    dots, so that what lies under it is seen.
    """
    dressed: dict[str, str] = {}
    colours: dict[str, str] = {}
    for number, name in enumerate(names):
        before = [other for other in names[:number] if name.startswith(f"{other}, ")]
        first = before[0] if before else name
        n_colours = len(colours)
        colour = colours.setdefault(first, COLOURS[n_colours % len(COLOURS)])
        is_dashed = bool(before) or n_colours >= len(COLOURS)
        dashes = DOTS if name in level else DASHES if is_dashed else ""
        more = f' stroke-dasharray="{dashes}"' if dashes else ""
        dressed[name] = f'stroke="{colour}"{more}'
    return dressed


class _Frame:
    """Where numbers lie in a panel."""

    def __init__(self, left: int, points: Sequence[Point], *, is_log: bool) -> None:
        self._is_log, self._left = is_log, left
        self.xs = sorted({point.x for point in points})
        placed = [self._along(x) for x in self.xs] or [0.0]
        self._from, self._span = placed[0], max(placed[-1] - placed[0], 1e-9)
        lows = [point.value - point.spread for point in points] or [0.0]
        highs = [point.value + point.spread for point in points] or [1.0]
        self.step = _step(max(highs) - min(lows))
        self.low = math.floor(min(lows) / self.step) * self.step
        self.high = max(math.ceil(max(highs) / self.step), 1) * self.step
        if self.high <= self.low:
            self.high = self.low + self.step

    def _along(self, x: float) -> float:
        return math.log10(x) if self._is_log else x

    def x(self, x: float) -> float:
        return self._left + WIDTH * (self._along(x) - self._from) / self._span

    def y(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return TOP + HEIGHT * (1.0 - share)

    def named(self) -> list[float]:
        """Numbers along the bottom."""
        if not self._is_log:
            return self.xs
        return [x for x in self.xs if math.log10(x).is_integer()] or self.xs[:1]


def _step(span: float) -> float:
    """Between the lines of a grid: 4 to 8 of them."""
    power = 10.0 ** math.floor(math.log10(max(span, 1e-6)))
    steps = [power * factor * step for factor in (0.1, 1.0) for step in STEPS]
    return next(step for step in steps if span / step <= 7.0)


def _panel(
    left: int,
    above: str,
    below: str,
    lines: Lines,
    dressed: Mapping[str, str],
    *,
    is_log: bool,
) -> list[str]:
    kept = {
        name: [point for point in points if math.isfinite(point.value)]
        for name, points in lines.items()
    }
    every = [point for points in kept.values() for point in points]
    frame = _Frame(left, every, is_log=is_log)
    parts = [f'<text x="{left}" y="{TOP - 9}">{escape(above)}</text>']
    digits = max(0, -math.floor(math.log10(frame.step) + 1e-9))
    if not math.isclose(frame.step * 10**digits % 1.0, 0.0, abs_tol=1e-6):
        digits += 1
    for number in range(round((frame.high - frame.low) / frame.step) + 1):
        value = frame.low + number * frame.step
        y = frame.y(value)
        parts.append(
            f'<line class="grid" stroke="#ddd" x1="{left}" x2="{left + WIDTH}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/><text x="{left - 8}" y="{y + 4:.1f}" '
            f'text-anchor="end">{value:.{digits}f}</text>'
        )
    for x in frame.named():
        parts.append(
            f'<text x="{frame.x(x):.1f}" y="{TOP + HEIGHT + 17}" '
            f'text-anchor="middle">{_number(x, is_log=is_log)}</text>'
        )
    parts.append(
        f'<text x="{left + WIDTH / 2:.1f}" y="{TOP + HEIGHT + 33}" '
        f'text-anchor="middle">{escape(below)}</text>'
    )
    drawn = {name: sorted(points) for name, points in kept.items() if points}
    # Bands first: none dims a line.
    parts += [_band(frame, points, dressed[name]) for name, points in drawn.items()]
    parts += [_line(frame, points, dressed[name]) for name, points in drawn.items()]
    return parts


def _number(x: float, *, is_log: bool) -> str:
    """As it stands along the bottom; long numbers would run into each other there."""
    power = math.log10(x) if is_log else math.nan
    if not power.is_integer():
        return f"{x:,.0f}"
    return f'10<tspan dy="-5" font-size="9">{power:.0f}</tspan>'


def _band(frame: _Frame, points: Sequence[Point], dress: str) -> str:
    upper = [(frame.x(x), frame.y(value + spread)) for x, value, spread in points]
    lower = [(frame.x(x), frame.y(value - spread)) for x, value, spread in points]
    colour = dress.split('"')[1]
    return (
        f'<polygon fill="{colour}" fill-opacity="0.13" '
        f'points="{_pairs([*upper, *lower[::-1]])}"/>'
    )


def _line(frame: _Frame, points: Sequence[Point], dress: str) -> str:
    middle = [(frame.x(x), frame.y(value)) for x, value, _ in points]
    return f'<polyline fill="none" {dress} stroke-width="2" points="{_pairs(middle)}"/>'


def _pairs(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
