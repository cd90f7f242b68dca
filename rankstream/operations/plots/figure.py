"""Pictures as figures of matplotlib, and these as bytes: the same ones each time."""

import contextlib
import io
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankstream.operations.plots.labels import label_of, wrapped
from rankstream.operations.plots.lines import draw_lines
from rankstream.operations.plots.matrix import draw_matrix
from rankstream.operations.plots.picture import (
    Lines,
    Panel,
    Picture,
    Rows,
    bounded,
)
from rankstream.operations.plots.rows import draw_rows
from rankstream.operations.plots.style import BASE, LIGHT, Theme

WIDTH, WIDE = 7.4, 10.4
"""Of a figure with one panel in each row, and with more, in inches."""

COLUMNS_PER_INCH = 15.0
"""Of the text of notes."""

LONGEST_TITLE = 90

UNNAMED = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
}
"""What each kind of file would say of when and by what it was drawn."""

PIXELS_PER_INCH = 144


class Drawn(Figure):
    """A figure that a notebook shows by itself, without a display."""

    def _repr_svg_(self) -> str:
        return figure_bytes(self, "svg").decode()


def figure_of(picture: Picture, theme: Theme = LIGHT) -> Drawn:
    """A picture, drawn.

    Of a panel with too much for one only the first part is drawn, and a note says so.
    """
    said = [bounded(panel) for row in picture.panels for panel in row]
    notes = [*picture.notes, *(words for _, words in said)]
    left = iter(panel for panel, _ in said)
    rows = [[next(left) for _ in row] for row in picture.panels]
    width = WIDE if max(map(len, rows), default=1) > 1 else WIDTH
    heights = [max(map(_height, row)) for row in rows]
    below = "\n".join(
        wrapped(note, int(COLUMNS_PER_INCH * width)) for note in notes if note
    )
    with styled(theme.settings()):
        drawn = Drawn(
            figsize=(width, sum(heights) + 0.4 + 0.14 * (below.count("\n") + 1)),
            layout="constrained",
        )
        drawn.suptitle(
            label_of(picture.title, LONGEST_TITLE), x=0.01, ha="left",
            fontweight="bold", fontsize=10.5,
        )  # fmt: skip
        drawn.supxlabel(below, x=0.01, ha="left", fontsize=7.5, color=theme.faint)
        grid = drawn.add_gridspec(len(rows), 1, height_ratios=heights)
        for number_of_row, row in enumerate(rows):
            parts = grid[number_of_row].subgridspec(1, len(row))
            for number, panel in enumerate(row):
                axes = drawn.add_subplot(parts[number])
                before = row[number - 1] if number else None
                _draw(axes, panel, theme, before)
    return drawn


def figure_bytes(figure: Figure, ending: str) -> bytes:
    """A figure as a file of this kind: no date, and names drawn from no clock.

    Parameters
    ----------
    ending
        One of `UNNAMED`.
    """
    file = io.BytesIO()
    # What was chosen as it was drawn stays; names in the file are drawn now.
    with styled(BASE):
        figure.savefig(
            file, format=ending, metadata=UNNAMED[ending], dpi=PIXELS_PER_INCH
        )
    return file.getvalue()


@contextlib.contextmanager
def styled(settings: Mapping[Any, Any]) -> Iterator[None]:
    """Draw under these settings alone, whatever those of the user are."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()
        mpl.rcParams.update(settings)
        # A PNG has boxes for letters that the font lacks; an SVG has them all.
        warnings.filterwarnings("ignore", r"Glyph \d+ .* missing from", UserWarning)
        yield


def _height(panel: Panel) -> float:
    """Of a panel with its scale, in inches."""
    if isinstance(panel, Rows):
        return 0.8 + (0.2 + 0.05 * len(panel.series)) * max(2, len(panel.labels))
    return 2.6 if isinstance(panel, Lines) else 1.4 + 0.34 * max(2, len(panel.names))


def _draw(axes: Axes, panel: Panel, theme: Theme, before: Panel | None) -> None:
    """Draw a panel; one with the names of that before it does not repeat them."""
    if isinstance(panel, Rows):
        is_repeated = isinstance(before, Rows) and before.labels == panel.labels
        draw_rows(axes, panel, theme, has_names=not is_repeated)
    elif isinstance(panel, Lines):
        draw_lines(axes, panel, theme)
    else:
        draw_matrix(axes, panel, theme)
    title = label_of(panel.title, LONGEST_TITLE)
    axes.set_title(title, loc="left", fontsize=9.0)
    axes.tick_params(length=0)
    axes.minorticks_off()
