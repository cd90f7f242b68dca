"""Numbers as marks, and their intervals as whiskers whose ends are the interval's."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from rankstream.operations.plots.labels import label_of
from rankstream.operations.plots.picture import Estimate, Series
from rankstream.operations.plots.style import Look, Theme

VALUES, WITHOUT, WHISKERS, CAPS = "values", "without interval", "whiskers", "caps"
"""Ids of artists: what is drawn of a series is found by them."""

NO_INTERVAL = "no interval"

SIZE = 5.0


class Along(NamedTuple):
    """Which way the places of marks lie, and which way their numbers.

    Parameters
    ----------
    is_down
        Whether places are rows, one below the other; else they go along the bottom.
    """

    is_down: bool

    def plot(
        self, axes: Axes, places: Sequence[float], numbers: Sequence[float], **look: Any
    ) -> Line2D:
        """Marks, and lines between them where the look has some."""
        xs, ys = (numbers, places) if self.is_down else (places, numbers)
        (drawn,) = axes.plot(xs, ys, **look)
        return drawn

    def whiskers(
        self,
        axes: Axes,
        places: Sequence[float],
        intervals: Sequence[Estimate],
        colour: str,
    ) -> None:
        """Lines from end to end of intervals, with caps."""
        if not intervals:
            return
        lows = [each.low for each in intervals]
        highs = [each.high for each in intervals]
        draw = axes.hlines if self.is_down else axes.vlines
        whiskers = draw(places, lows, highs, colors=colour, linewidth=1.3, zorder=2.0)
        whiskers.set_gid(WHISKERS)
        self.plot(
            axes,
            [*places, *places],
            [*lows, *highs],
            marker="|" if self.is_down else "_",
            markersize=SIZE,
            markeredgecolor=colour,
            linestyle="none",
            gid=CAPS,
        )


ROWS, PLACES = Along(is_down=True), Along(is_down=False)


def draw_marks(
    axes: Axes,
    along: Along,
    places: Sequence[float],
    series: Series,
    look: Look,
    theme: Theme,
) -> None:
    """Draw a series; a mark is hollow where its interval is missing.

    Parameters
    ----------
    places : [n_estimates]
        Where its numbers lie.
    """
    colour, marker, _ = look
    known = [
        (place, each)
        for place, each in zip(places, series.estimates, strict=True)
        if each.has_value
    ]
    sure = [pair for pair in known if pair[1].has_interval]
    unsure = [pair for pair in known if not pair[1].has_interval]
    filled = sure if series.is_estimated else known
    along.whiskers(axes, [p for p, _ in sure], [e for _, e in sure], colour)
    shape = {"marker": marker, "markersize": SIZE, "linestyle": "none", "zorder": 3.0}
    along.plot(
        axes,
        [place for place, _ in filled],
        [each.value for _, each in filled],
        color=colour,
        gid=VALUES,
        **shape,
    )
    if series.is_estimated and unsure:
        along.plot(
            axes,
            [place for place, _ in unsure],
            [each.value for _, each in unsure],
            markeredgecolor=colour,
            markerfacecolor=theme.ground,
            gid=WITHOUT,
            **shape,
        )


def lacks_intervals(series: Iterable[Series]) -> bool:
    """Whether a number is drawn without an interval that it ought to have."""
    return any(
        each.is_estimated and estimate.has_value and not estimate.has_interval
        for each in series
        for estimate in each.estimates
    )


def add_legend(
    axes: Axes, names: Sequence[str], looks: Sequence[Look], theme: Theme, *,
    is_joined: bool, is_missing: bool,
) -> None:  # fmt: skip
    """What is which, at the right; nothing where there is one kind of mark.

    Parameters
    ----------
    names, looks
        One for each series.
    is_joined
        Whether lines go from mark to mark.
    is_missing
        Whether some have no interval that ought to.
    """
    entries = [
        Line2D(
            [], [], color=look.colour, marker=look.marker, markersize=SIZE,
            linestyle=look.dashes if is_joined else "none",
        )
        for look in looks
    ] if len(names) > 1 else []  # fmt: skip
    told = [label_of(name) for name in names] if entries else []
    if is_missing:
        hollow = Line2D(
            [], [], marker="o", markersize=SIZE, linestyle="none",
            markeredgecolor=theme.faint, markerfacecolor=theme.ground,
        )  # fmt: skip
        entries.append(hollow)
        told.append(NO_INTERVAL)
    if not entries:
        return
    legend = axes.legend(
        entries,
        [str(number) for number in range(len(entries))],
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
        frameon=False,
        fontsize=8.0,
    )
    # A legend leaves out names that begin with an underscore, but not these.
    for text, name in zip(legend.get_texts(), told, strict=True):
        text.set_text(name)


def say_nothing_is_known(axes: Axes, theme: Theme) -> None:
    """Draw that instead of an empty panel."""
    axes.text(
        0.5, 0.5, "nothing is known", color=theme.faint, ha="center", va="center",
        transform=axes.transAxes,
    )  # fmt: skip
    axes.set_xticks([])
    axes.set_yticks([])
