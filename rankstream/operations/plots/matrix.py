"""Panels of numbers of row over column, by colour, and in words where there is room."""

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes

from rankstream.operations.plots.labels import label_of
from rankstream.operations.plots.marks import say_nothing_is_known
from rankstream.operations.plots.picture import Matrix
from rankstream.operations.plots.style import Theme

COLOURS = "PuOr_r"
"""From purple over white to orange: told apart by all, and 0 has none."""

MOST_WORDS = 12
"""Names of which cells have room for their numbers."""

CELLS = "cells"


def draw_matrix(axes: Axes, panel: Matrix, theme: Theme) -> None:
    """Draw a panel."""
    values = np.array(panel.values, np.float64)
    known = np.abs(values[np.isfinite(values)])
    if not len(known):
        say_nothing_is_known(axes, theme)
        return
    largest = float(known.max()) or 1.0
    colours = colormaps[COLOURS].with_extremes(bad=theme.grid)
    cells = axes.pcolormesh(
        np.ma.masked_invalid(values), cmap=colours, vmin=-largest, vmax=largest,
        edgecolors=theme.ground, linewidth=1.0, gid=CELLS,
    )  # fmt: skip
    names = [label_of(each) for each in panel.names]
    places = np.arange(len(names)) + 0.5
    axes.set_xticks(places, labels=names, rotation=35.0, ha="right")
    axes.set_yticks(places, labels=names)
    axes.invert_yaxis()
    axes.set_xlabel(panel.unit)
    for row, column in np.ndindex(values.shape) if len(names) <= MOST_WORDS else ():
        number = values[row, column]
        dark = sum(cells.to_rgba(number)[:3]) < 1.2 if np.isfinite(number) else False
        axes.text(
            column + 0.5, row + 0.5, f"{number:+.3f}" if np.isfinite(number) else "–",
            ha="center", va="center", fontsize=7.0,
            color="#ffffff" if dark else "#111111",
        )  # fmt: skip
