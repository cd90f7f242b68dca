"""Lines with bands: where they lie, how they look, and the same bytes each time."""

import math
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rankstream.lab.reproduction.picture import (
    DOTTED,
    Lines,
    Point,
    drawing_of,
    looks_of,
    picture_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BIASED = [
    f"{name}{how}"
    for name in ("oblivious", "rerank", "affine")
    for how in ("", ", randomised")
]


def drawn(panels: Mapping[str, Lines], *, is_log: bool = False) -> "Figure":
    """A drawing whose panels have a range each."""
    return drawing_of("t", panels, below="n", is_log=is_log, is_one_scale=False)


def lines_of(figure: "Figure", panel: int = 0) -> list[list[tuple[float, float]]]:
    """Points of all lines of a panel; those of the legend have none."""
    every = [
        [(float(x), float(y)) for x, y in np.asarray(line.get_xydata())]
        for line in figure.axes[panel].get_lines()
    ]
    return [line for line in every if line]


def test_points_lie_where_their_numbers_say() -> None:
    """Bands too, and numbers along the bottom are spaced as is asked."""
    rising = [Point(10.0**power, 0.1 * power, 0.02) for power in range(3, 7)]
    figure = drawn({"NDCG": {"a": rising}}, is_log=True)
    (axes,) = figure.axes

    assert lines_of(figure) == [[(point.x, point.value) for point in rising]]
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "n")
    assert axes.get_title("left") == "NDCG"
    (band,) = axes.collections
    corners = {
        (float(x), round(float(y), 6))
        for x, y in np.asarray(band.get_paths()[0].vertices)
    }
    for x, value, spread in rising:
        assert {(x, round(value + s, 6)) for s in (spread, -spread)} <= corners


def test_panels_have_their_own_ranges_and_lines_their_names() -> None:
    """Ranks beside shares; every number that a point has stands along the bottom."""
    panels = {
        "NDCG": {"b": [Point(1, 0.3, 0.0), Point(7, 0.4, 0.01)]},
        "position": {"b": [Point(1, 31.0, 0.5)], "b, random": [Point(7, 29.0, 0.0)]},
    }
    figure = drawn(panels)
    ranges = [axes.get_ylim() for axes in figure.axes]

    assert ranges[0][1] < 1.0 < ranges[1][0]
    assert [list(axes.get_xticks()) for axes in figure.axes] == [[1.0, 7.0]] * 2
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["b", "b, random"]
    shared = drawing_of("t", panels, below="n", is_log=False, is_one_scale=True)
    assert shared.axes[0].get_ylim() == shared.axes[1].get_ylim()


def test_no_two_lines_look_the_same() -> None:
    """Those of a table of estimators; what is level everywhere has dots."""
    rising = [Point(1, 0.1, 0.0), Point(2, 0.2, 0.0)]
    names = ["policy-aware", *BIASED, "production", "no cutoff", "full information"]
    lines = dict.fromkeys(names, rising) | {"production": [Point(1, 0.1, 0.0)] * 2}
    looks = [
        (line.get_color(), line.get_linestyle())
        for line in drawn({"x": lines}).axes[0].get_lines()
        if np.size(line.get_xdata())
    ]

    assert len({*looks}) == len(names)
    dotted = [name for name, (_, style) in zip(names, looks, strict=True)
              if style == DOTTED]  # fmt: skip
    assert dotted == ["production"]
    colours = {name: colour for name, (colour, _) in looks_of(names, set()).items()}
    assert colours["rerank"] == colours["rerank, randomised"] != colours["affine"]


def test_what_is_missing_is_not_drawn() -> None:
    """Not a point, and not a line without one."""
    panels = {
        "x": {
            "a": [Point(1, math.nan, 0.0), Point(2, 0.5, 0.0), Point(3, 0.6, 0.0)],
            "b": [Point(1, math.nan, 0.0)],
        }
    }

    assert [len(line) for line in lines_of(drawn(panels))] == [2]
    assert "nan" not in picture_of("t", panels, below="k", is_log=False)


def test_the_same_lines_give_the_same_bytes() -> None:
    """In another process too; they are XML whose words are words, and no date."""
    lines = {"a<b": [Point(100, 0.1, 0.01), Point(1_000, 0.2, 0.01)]}
    found = picture_of("NDCG & more", {"x": lines}, below="n", is_log=True)
    words = {
        "".join(element.itertext())
        for element in ET.fromstring(found).iter()  # noqa: S314  we made it
    }
    program = (
        "import sys; from rankstream.lab.reproduction.picture import Point, picture_of;"
        f"lines = {lines!r};"
        'found = picture_of("NDCG & more", {"x": lines}, below="n", is_log=True);'
        "sys.stdout.write(found)"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )

    assert {"NDCG & more", "x", "a<b"} <= words
    assert "date" not in found
    assert other.stdout == found


@pytest.mark.parametrize("missing", ["matplotlib", "matplotlib.figure"])
def test_what_draws_is_an_extra_that_is_named(missing: str) -> None:
    """Whoever lacks it is told what to install."""
    from rankstream.installation import not_installed  # noqa: PLC0415

    error = ModuleNotFoundError("No module named", name=missing)
    assert str(not_installed(error, "reproduce")) == (
        "this command needs the extra `plots`, and matplotlib is not installed: "
        "pip install 'rankstream[plots]'"
    )
