"""Lines with bands, in plain SVG."""

import itertools
import math
import xml.etree.ElementTree as ET

import pytest

from rankstream.reproduction.line_picture import Point, line_picture

SVG = "{http://www.w3.org/2000/svg}"


def root_of(picture: str) -> ET.Element:
    """The picture as a tree."""
    return ET.fromstring(picture)  # noqa: S314  we made it


def lines_of(picture: str) -> list[list[tuple[float, float]]]:
    """Places of all lines, in their order."""
    return [
        [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]
        for line in root_of(picture).iter(f"{SVG}polyline")
    ]


def labels_of(picture: str) -> list[str]:
    """All words."""
    return [str(text.text) for text in root_of(picture).iter(f"{SVG}text")]


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
    assert {"1,000", "1,000,000", "a title", "NDCG", "n", "a"} <= {*labels_of(picture)}


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
