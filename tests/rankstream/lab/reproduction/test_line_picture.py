"""Lines with bands, in plain SVG."""

import itertools
import math
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from rankstream.lab.reproduction.line_picture import DOTS, Point, line_picture

BIASED = [
    f"{name}{how}"
    for name in ("oblivious", "rerank", "affine")
    for how in ("", ", randomised")
]

SVG = "{http://www.w3.org/2000/svg}"


def root_of(picture: str) -> ET.Element:
    """The picture as a tree."""
    return ET.fromstring(picture)  # noqa: S314  we made it


def lines_of(picture: str) -> list[list[tuple[float, float]]]:
    """Places of all lines, in their order."""
    return [places_of(line) for line in root_of(picture).iter(f"{SVG}polyline")]


def places_of(shape: ET.Element) -> list[tuple[float, float]]:
    """Across and down, of each corner."""
    pairs = (pair.split(",") for pair in str(shape.get("points")).split())
    return [(float(x), float(y)) for x, y in pairs]


def labels_of(picture: str) -> list[str]:
    """All words."""
    return ["".join(text.itertext()) for text in root_of(picture).iter(f"{SVG}text")]


def test_points_lie_where_their_numbers_say() -> None:
    """Even steps of the logarithm are even steps along the bottom, values along it."""
    rising = [Point(10.0**power, 0.1 * power, 0.0) for power in range(3, 7)]
    picture = line_picture("a title", {"NDCG": {"a": rising}}, below="n", is_log=True)
    ((*places,),) = lines_of(picture)
    across = [there[0] - here[0] for here, there in itertools.pairwise(places)]
    down = [there[1] - here[1] for here, there in itertools.pairwise(places)]

    assert across == pytest.approx([across[0]] * 3, abs=0.11)
    assert down == pytest.approx([down[0]] * 3, abs=0.11)
    assert across[0] > 0.0 > down[0]
    assert {"103", "106", "a title", "NDCG", "n", "a"} <= {*labels_of(picture)}
    raised = {span.text for span in root_of(picture).iter(f"{SVG}tspan")}
    assert raised == {"3", "4", "5", "6"}


def test_panels_have_their_own_ranges_and_lines_their_names() -> None:
    """Ranks beside shares; a variant of a line is the same colour, with dashes."""
    panels = {
        "NDCG": {"b": [Point(1, 0.3, 0.0), Point(7, 0.4, 0.01)]},
        "position": {"b": [Point(1, 31.0, 0.5)], "b, random": [Point(7, 29.0, 0.0)]},
    }
    picture = line_picture("t", panels, below="k", is_log=False)
    root = root_of(picture)
    strokes = {
        line.get("stroke-dasharray"): line.get("stroke")
        for line in root.iter(f"{SVG}polyline")
    }
    heights = [y for line in lines_of(picture) for _, y in line]

    assert strokes.keys() == {None, "6 4"}
    assert len({*strokes.values()}) == 1
    assert min(heights) >= 46.0
    assert max(heights) <= 46.0 + 250.0
    assert {"1", "7", "b", "b, random"} <= {*labels_of(picture)}


def test_values_and_bands_lie_on_the_scale_beside_them() -> None:
    """By the lines of the grid and what stands beside them."""
    points = [Point(1, 0.31, 0.02), Point(2, 0.37, 0.01)]
    root = root_of(line_picture("t", {"x": {"a": points}}, below="k", is_log=False))
    grid = [
        float(str(line.get("y1")))
        for line in root.iter(f"{SVG}line")
        if line.get("class") == "grid"
    ]
    values = [
        float(str(text.text))
        for text in root.iter(f"{SVG}text")
        if text.get("text-anchor") == "end"
    ]
    slope, start = np.polyfit(grid, values, 1)

    assert start + slope * np.array(grid) == pytest.approx(values, abs=1e-3)
    line, band = (next(root.iter(f"{SVG}{shape}")) for shape in ("polyline", "polygon"))
    assert [start + slope * y for _, y in places_of(line)] == pytest.approx(
        [0.31, 0.37], abs=1e-3
    )
    assert [start + slope * y for _, y in places_of(band)] == pytest.approx(
        [0.33, 0.38, 0.36, 0.29], abs=1e-3
    )


def test_no_two_lines_look_the_same() -> None:
    """Those of a table of estimators; what is level everywhere has dots."""
    rising = [Point(1, 0.1, 0.0), Point(2, 0.2, 0.0)]
    names = ["policy-aware", *BIASED, "production", "no cutoff", "full information"]
    lines = dict.fromkeys(names, rising) | {"production": [Point(1, 0.1, 0.0)] * 2}
    root = root_of(line_picture("t", {"x": lines}, below="k", is_log=False))
    looks = [
        (line.get("stroke"), line.get("stroke-dasharray"))
        for line in root.iter(f"{SVG}polyline")
    ]

    assert len({*looks}) == len(names)
    dotted = [name for name, (_, dashes) in zip(names, looks, strict=True)
              if dashes == DOTS]  # fmt: skip
    assert dotted == ["production"]


def test_words_have_room() -> None:
    """The picture is as wide as its title, and entries of the legend as their names."""
    points = [Point(1, 0.1, 0.0), Point(2, 0.2, 0.0)]
    names = ["a" * 40, "b" * 40]
    panels = {"x": dict.fromkeys(names, points)}
    root = root_of(line_picture("t" * 100, panels, below="k", is_log=False))
    places = [
        (float(str(text.get("x"))), float(str(text.get("y"))))
        for text in root.iter(f"{SVG}text")
        if text.text in names
    ]

    assert float(str(root.get("width"))) > 100 * 7.7
    (x, y), (other_x, other_y) = places
    assert y != other_y or other_x - x > 40 * 7


def test_what_is_missing_is_not_drawn() -> None:
    """Not a point, and not a line without one."""
    panels = {
        "x": {
            "a": [Point(1, math.nan, 0.0), Point(2, 0.5, 0.0), Point(3, 0.6, 0.0)],
            "b": [Point(1, math.nan, 0.0)],
        }
    }
    picture = line_picture("t", panels, below="k", is_log=False)

    assert [len(line) for line in lines_of(picture)] == [2]
    assert "nan" not in picture
