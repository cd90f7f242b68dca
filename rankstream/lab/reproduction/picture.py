"""Learning curves as a picture: a panel for each kind of users, in plain SVG."""

import math
from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

from rankstream.lab.reproduction.plan import BEHIND, LAGS, Cell
from rankstream.lab.reproduction.summary import Curves, figure_of

WIDTH, HEIGHT = 330, 250
LEFT, TOP, BOTTOM, GAP = 52, 46, 44, 22
COLOURS = ("#0b6e99", "#d9730d", "#448361", "#9065b0", "#c4554d", "#787774", "#b8860b")

LABELS = {
    "pdgd-linear": "PDGD",
    "pdgd-neural": "PDGD, neural",
    "dbgd-linear": "P-DBGD",
    "dbgd-neural": "P-DBGD, neural",
    "dbgd-long": "P-DBGD",
    "dbgd-oracle": "DBGD, oracle",
    "mgd-linear": "P-MGD",
    "pairwise-linear": "pairwise",
    "coltr-linear": "COLTR",
    "pl-rank-linear": "PL-Rank",
    **{f"{BEHIND}{lag}": f"{lag:,} behind" for lag in LAGS},
}

STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#555}"
    ".title{font-weight:600;fill:#222}"
    "@media (prefers-color-scheme:dark)"
    "{text{fill:#bbb}.title{fill:#eee}.grid{stroke:#555}}"
)


def picture_of(title: str, cells: Mapping[Cell, Curves]) -> str:
    """The offline curves of all cells, with bands of one deviation within folds."""
    panels: dict[str, list[Cell]] = {}
    for cell in cells:
        panels.setdefault(cell.users, []).append(cell)
    names = sorted({cell.learner for cell in cells})
    colours = {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}
    low, high = _range(cells)
    width = LEFT + len(panels) * (WIDTH + GAP)
    height = TOP + HEIGHT + BOTTOM + 22
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<text class="title" x="{LEFT}" y="18">{escape(title)}</text>',
    ]
    for number, (users, shown) in enumerate(panels.items()):
        left = LEFT + number * (WIDTH + GAP)
        parts += _axes(left, users, low, high, _span(cells), is_first=number == 0)
        for cell in shown:
            parts += _curve(left, cells[cell], colours[cell.learner], low, high)
    for i, name in enumerate(names):
        x, y = LEFT + i * 150, height - 12
        parts.append(
            f'<line x1="{x}" x2="{x + 22}" y1="{y - 4}" y2="{y - 4}" '
            f'stroke="{colours[name]}" stroke-width="2.5"/>'
            f'<text x="{x + 28}" y="{y}">{escape(LABELS.get(name, name))}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def _range(cells: Mapping[Cell, Curves]) -> tuple[float, float]:
    means = [
        figure_of(curves.offline[:, :, at]).mean
        for curves in cells.values()
        for at in range(len(curves.impressions))
    ]
    found = [value for value in means if math.isfinite(value)] or [0.0, 1.0]
    low, high = min(found) - 0.005, max(found) + 0.015
    return math.floor(low * 20.0) / 20.0, math.ceil(high * 20.0) / 20.0


def _span(cells: Mapping[Cell, Curves]) -> tuple[float, float]:
    every = [count for curves in cells.values() for count in curves.impressions]
    return math.log10(min(every)), math.log10(max(every))


def _axes(
    left: int,
    users: str,
    low: float,
    high: float,
    span: tuple[float, float],
    *,
    is_first: bool,
) -> list[str]:
    named = escape(users.replace("_", " "))
    parts = [f'<text x="{left}" y="{TOP - 9}">users: {named}</text>']
    for step in range(round((high - low) / 0.05) + 1):
        value = low + 0.05 * step
        y = _y(value, low, high)
        parts.append(
            f'<line class="grid" stroke="#ddd" x1="{left}" x2="{left + WIDTH}" '
            f'y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        if is_first:
            parts.append(
                f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">'
                f"{value:.2f}</text>"
            )
    for power in range(math.ceil(span[0]), math.floor(span[1]) + 1):
        x = _x(10.0**power, left, span)
        anchor = {left: "start", left + WIDTH: "end"}.get(round(x), "middle")
        parts.append(
            f'<text x="{x:.1f}" y="{TOP + HEIGHT + 18}" text-anchor="{anchor}">'
            f"{10**power:,}</text>"
        )
    return parts


def _curve(
    left: int, curves: Curves, colour: str, low: float, high: float
) -> list[str]:
    counts = curves.impressions
    span = (math.log10(counts[0]), math.log10(counts[-1]))
    figures = [figure_of(curves.offline[:, :, at]) for at in range(len(counts))]
    if any(not figure.n_runs for figure in figures):
        return []
    x = [_x(count, left, span) for count in counts]
    middle = [_y(figure.mean, low, high) for figure in figures]
    # The error is that of a mean over so many runs, without the spread of folds.
    spread = [
        figure.error * math.sqrt(figure.n_runs) if math.isfinite(figure.error) else 0.0
        for figure in figures
    ]
    upper = [_y(f.mean + s, low, high) for f, s in zip(figures, spread, strict=True)]
    lower = [_y(f.mean - s, low, high) for f, s in zip(figures, spread, strict=True)]
    band = _points([*x, *x[::-1]], [*upper, *lower[::-1]])
    return [
        f'<polygon fill="{colour}" fill-opacity="0.13" points="{band}"/>',
        f'<polyline fill="none" stroke="{colour}" stroke-width="2" '
        f'points="{_points(x, middle)}"/>',
    ]


def _points(x: Sequence[float], y: Sequence[float]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))


def _x(count: float, left: int, span: tuple[float, float]) -> float:
    share = (math.log10(count) - span[0]) / max(span[1] - span[0], 1e-9)
    return left + WIDTH * share


def _y(value: float, low: float, high: float) -> float:
    share = (value - low) / max(high - low, 1e-9)
    return TOP + HEIGHT * (1.0 - float(np.clip(share, 0.0, 1.0)))
