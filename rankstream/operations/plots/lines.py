"""Panels of lines over ranks, lists or moments, with whiskers, or bands of many."""

from collections.abc import Sequence
from datetime import UTC

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter
from matplotlib.ticker import MaxNLocator, StrMethodFormatter

from rankstream.operations.plots.marks import (
    PLACES,
    add_legend,
    draw_marks,
    lacks_intervals,
    say_nothing_is_known,
)
from rankstream.operations.plots.picture import Line, Lines, ends_of
from rankstream.operations.plots.style import Look, Theme

MOST_WHISKERS = 40
"""Points of a line; more have a band instead."""

JOINED, BAND = "line", "band"
"""Ids of artists, beside those of `marks`."""

DAY_MS = 86_400_000

FIRST_MS, LAST_MS = -62_135_596_800_000, 253_402_300_799_000
"""Moments of the years 1 to 9999: others have no date."""


def draw_lines(axes: Axes, panel: Lines, theme: Theme) -> None:
    """Draw a panel."""
    span = ends_of(each for line in panel.lines for each in line.estimates)
    if span is None:
        say_nothing_is_known(axes, theme)
        return
    is_dated = panel.is_time and all(map(_has_dates, panel.lines))
    looks = [theme.look(number) for number in range(len(panel.lines))]
    for line, look in zip(panel.lines, looks, strict=True):
        xs = [x / DAY_MS for x in line.xs] if is_dated else [*map(float, line.xs)]
        _draw_line(axes, xs, line, look, theme)
    _say_places(axes, panel, is_dated=is_dated)
    if panel.is_from_zero and span[0] >= 0.0:
        axes.set_ylim(bottom=0.0, top=span[1] * 1.05 or 1.0)
    if panel.reference is not None:
        axes.axhline(panel.reference, color=theme.faint, linewidth=0.9, zorder=1.0)
    if panel.mark is not None:
        place, words = panel.mark
        axes.axvline(place, color=theme.faint, linewidth=0.9, linestyle=":", zorder=1.0)
        axes.annotate(
            words, (place, 1.0), xycoords=("data", "axes fraction"), va="bottom",
            ha="center", color=theme.faint, fontsize=7.0,
        )  # fmt: skip
    axes.grid(axis="y", color=theme.grid, linewidth=0.7)
    axes.set_ylabel(panel.unit)
    add_legend(
        axes, [each.name for each in panel.lines], looks, theme,
        is_joined=True, is_missing=lacks_intervals(panel.lines),
    )  # fmt: skip


def _has_dates(line: Line) -> bool:
    return all(FIRST_MS <= x <= LAST_MS for x in line.xs)


def _draw_line(
    axes: Axes, xs: Sequence[float], line: Line, look: Look, theme: Theme
) -> None:
    colour, _, dashes = look
    # A number that is not known breaks it.
    values = [each.value for each in line.estimates]
    axes.plot(xs, values, color=colour, linestyle=dashes, linewidth=1.2, gid=JOINED)
    if len(xs) <= MOST_WHISKERS:
        draw_marks(axes, PLACES, xs, line, look, theme)
        return
    numbers = np.array(line.estimates, np.float64)
    axes.fill_between(
        xs, numbers[:, 1], numbers[:, 2], color=colour, alpha=0.2, linewidth=0.0,
        where=[each.has_interval for each in line.estimates], gid=BAND,
    )  # fmt: skip
    # One between two that are not known has no line.
    axes.plot(xs, values, ".", color=colour, markersize=2.0)


def _say_places(axes: Axes, panel: Lines, *, is_dated: bool) -> None:
    if is_dated:
        locator = AutoDateLocator(tz=UTC)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_locator(locator)
        dates = ConciseDateFormatter(locator, tz=UTC)  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(dates)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True))
        axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel(f"{panel.below} (UTC)" if is_dated else panel.below)
