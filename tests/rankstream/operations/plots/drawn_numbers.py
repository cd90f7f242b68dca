"""Numbers that a figure shows, read back from what is drawn in it."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rankstream.operations.plots.marks import VALUES, WHISKERS, WITHOUT

Point = tuple[float, float]
"""Place and number."""


def marks(axes: Axes, *, is_down: bool, kind: str = "") -> list[Point]:
    """Places and values of marks, filled and hollow; of one kind if it is named."""
    kinds = (kind,) if kind else (VALUES, WITHOUT)
    return sorted(
        point
        for line in axes.get_lines()
        if line.get_gid() in kinds
        for point in _points(line.get_xydata(), is_down=is_down)
    )


def whiskers(axes: Axes, *, is_down: bool) -> list[tuple[float, float, float]]:
    """Places, and both ends of intervals."""
    found = []
    for collection in axes.collections:
        if collection.get_gid() != WHISKERS:
            continue
        for path in collection.get_paths():
            (place, low), (_, high) = _points(path.vertices, is_down=is_down)
            found.append((place, low, high))
    return sorted(found)


def words(figure: Figure) -> set[str]:
    """All that is written."""
    figure.draw_without_rendering()
    return {text.get_text() for text in figure.findobj(_is_text)}  # type: ignore[attr-defined]


def _is_text(artist: Any) -> bool:
    return hasattr(artist, "get_text") and artist.get_visible()


def _points(points: Any, *, is_down: bool) -> Iterator[Point]:
    for x, y in np.asarray(points, np.float64).tolist():
        yield (y, x) if is_down else (x, y)
