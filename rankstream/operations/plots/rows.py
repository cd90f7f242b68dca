"""Panels of rows: names at the left, marks and whiskers beside them."""

from matplotlib.axes import Axes

from rankstream.operations.plots.labels import label_of
from rankstream.operations.plots.marks import (
    ROWS,
    add_legend,
    draw_marks,
    lacks_intervals,
    say_nothing_is_known,
)
from rankstream.operations.plots.picture import Rows, ends_of
from rankstream.operations.plots.style import Theme

APART = 0.28
"""Rows between marks of two series of one name."""

NOT_KNOWN = "not known"


def draw_rows(axes: Axes, panel: Rows, theme: Theme, *, has_names: bool) -> None:
    """Draw a panel.

    Parameters
    ----------
    has_names
        Whether names stand at the left; else a panel beside it has them.
    """
    estimates = [each for series in panel.series for each in series.estimates]
    span = ends_of(estimates)
    if span is None:
        say_nothing_is_known(axes, theme)
        return
    looks = [theme.look(number) for number in range(len(panel.series))]
    for number, series in enumerate(panel.series):
        offset = (number - (len(panel.series) - 1) / 2) * APART
        places = [row + offset for row in range(len(panel.labels))]
        draw_marks(axes, ROWS, places, series, looks[number], theme)
        for place, each in zip(places, series.estimates, strict=True):
            if not each.has_value:
                axes.annotate(
                    NOT_KNOWN, (0.01, place), xycoords=("axes fraction", "data"),
                    color=theme.faint, fontsize=7.0, va="center",
                )  # fmt: skip
    n_rows = len(panel.labels)
    axes.set_ylim(n_rows - 0.4, -0.6)
    names = [label_of(each) for each in panel.labels] if has_names else [""] * n_rows
    axes.set_yticks(range(n_rows), labels=names)
    if panel.is_from_zero and span[0] >= 0.0:
        axes.set_xlim(left=0.0, right=span[1] * 1.05 or 1.0)
    if panel.reference is not None:
        axes.axvline(panel.reference, color=theme.faint, linewidth=0.9, zorder=1.0)
    axes.grid(axis="x", color=theme.grid, linewidth=0.7)
    axes.set_xlabel(panel.unit)
    add_legend(
        axes, [each.name for each in panel.series], looks, theme,
        is_joined=False, is_missing=lacks_intervals(panel.series),
    )  # fmt: skip
