"""What is drawn is what the picture holds, with its intervals, and no more of it."""

import math
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Sequence

import numpy as np
import pytest
from matplotlib.figure import Figure

from rankstream.operations.plots.figure import figure_bytes, figure_of
from rankstream.operations.plots.labels import LONGEST, label_of
from rankstream.operations.plots.lines import BAND, DAY_MS, JOINED
from rankstream.operations.plots.marks import NO_INTERVAL, VALUES, WITHOUT
from rankstream.operations.plots.matrix import CELLS
from rankstream.operations.plots.picture import (
    MOST_LINES,
    MOST_NAMES,
    MOST_POINTS,
    MOST_ROWS,
    Estimate,
    Line,
    Lines,
    Matrix,
    Panel,
    Picture,
    Rows,
    Series,
)
from rankstream.operations.plots.rows import NOT_KNOWN
from tests.rankstream.operations.plots.drawn_numbers import marks, whiskers, words

NAN = math.nan
THREE = [Estimate(0.1, 0.05, 0.3), Estimate(0.7), Estimate(NAN)]


def drawn(*panels: Panel, notes: Sequence[str] = ()) -> Figure:
    """A figure of panels below each other."""
    return figure_of(Picture("title", [[panel] for panel in panels], notes))


def rows(estimates: Sequence[Estimate], *, is_estimated: bool = True) -> Rows:
    """A panel with a series."""
    names = [f"item {n}" for n in range(len(estimates))]
    return Rows("rows", "unit", names, [Series("s", estimates, is_estimated)])


def test_rows_are_numbers_and_intervals_at_their_places() -> None:
    """To the bit; the first row is at the top, and each has its name."""
    (axes,) = drawn(rows(THREE)).axes

    assert marks(axes, is_down=True) == [(0.0, 0.1), (1.0, 0.7)]
    assert whiskers(axes, is_down=True) == [(0.0, 0.05, 0.3)]
    bottom, top = axes.get_ylim()
    assert top < 0.0
    assert bottom > 2.0
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["item 0", "item 1", "item 2"]


def test_two_series_of_a_row_do_not_cover_each_other() -> None:
    """Each is beside the other, within its row, and the legend names both."""
    counted = [Estimate(0.2), Estimate(0.3)]
    panel = Rows(
        "r", "u", ["a", "b"],
        [Series("_corrected", [Estimate(0.5, 0.4, 0.6)] * 2),
         Series("$clicks$", counted, is_estimated=False)],
    )  # fmt: skip
    figure = drawn(panel)
    found = marks(figure.axes[0], is_down=True)

    assert [round(place) for place, _ in found] == [0, 0, 1, 1]
    assert [value for _, value in found] == [0.5, 0.2, 0.5, 0.3]
    assert len({place for place, _ in found}) == 4
    assert {"_corrected", "$clicks$"} <= words(figure)
    assert NO_INTERVAL not in words(figure)


def test_a_missing_interval_is_hollow_and_a_missing_number_is_said() -> None:
    """The legend says what hollow is; what was counted is never hollow."""
    figure = drawn(rows(THREE))
    (axes,) = figure.axes
    assert marks(axes, is_down=True, kind=WITHOUT) == [(1.0, 0.7)]
    (hollow,) = (x for x in axes.get_lines() if x.get_gid() == WITHOUT)
    assert hollow.get_markerfacecolor() == "#ffffff"
    assert {NO_INTERVAL, NOT_KNOWN} <= words(figure)

    (counted,) = drawn(rows(THREE, is_estimated=False)).axes
    assert marks(counted, is_down=True, kind=VALUES) == [(0.0, 0.1), (1.0, 0.7)]
    assert counted.get_legend() is None


@pytest.mark.parametrize("n", [3, 60])
def test_lines_are_numbers_over_places(n: int) -> None:
    """Whiskers of a few and a band of many; a number that is not known breaks them."""
    xs = [10 * (k + 1) for k in range(n)]
    numbers = [Estimate(k / n, k / n - 0.1, k / n + 0.2) for k in range(n)]
    numbers[1] = Estimate(NAN)
    (axes,) = drawn(Lines("t", "u", "lists", [Line("a", numbers, xs=xs)])).axes
    (joined,) = (x for x in axes.get_lines() if x.get_gid() == JOINED)

    np.testing.assert_array_equal(joined.get_xdata(), xs)
    np.testing.assert_array_equal(joined.get_ydata(), [each.value for each in numbers])
    known = [(x, e) for x, e in zip(xs, numbers, strict=True) if e.has_value]
    if n == 3:
        expected = [(float(x), each.low, each.high) for x, each in known]
        assert whiskers(axes, is_down=False) == expected
        return
    (band,) = (x for x in axes.collections if x.get_gid() == BAND)
    corners = {
        (float(x), float(y))
        for path in band.get_paths()
        for x, y in np.asarray(path.vertices)
    }
    # The first one stands alone before the gap, where no band can be.
    for x, each in known[1:]:
        assert {(x, each.low), (x, each.high)} <= corners
    assert all(x != xs[1] for x, _ in corners)


def test_moments_are_dates_unless_no_calendar_has_them() -> None:
    """Days since 1970; beyond the year 9999 milliseconds stand as they are."""
    at_ms = [1_750_000_000_000, 1_750_100_000_000]
    line = Line("a", [Estimate(1.0)] * 2, is_estimated=False, xs=at_ms)
    panel = Lines("t", "u", "event time", [line], is_time=True)
    (axes,) = drawn(panel).axes
    places = [place for place, _ in marks(axes, is_down=False)]
    assert places == [x / DAY_MS for x in at_ms]
    assert axes.get_xlabel() == "event time (UTC)"

    far = Line("a", [Estimate(1.0)], is_estimated=False, xs=[10**15])
    (axes,) = drawn(Lines("t", "u", "event time", [far], is_time=True)).axes
    assert marks(axes, is_down=False) == [(1e15, 1.0)]
    assert axes.get_xlabel() == "event time"


def test_cells_of_a_matrix_are_its_numbers() -> None:
    """Row over column, the first row at the top; what is not known has a dash."""
    values = [[NAN, 0.25, -0.5], [-0.25, NAN, 0.0], [0.5, 0.0, NAN]]
    figure = drawn(Matrix("m", "", ["a", "b", "c"], values))
    (axes,) = figure.axes
    (cells,) = (x for x in axes.collections if x.get_gid() == CELLS)

    found = cells.get_array().filled(NAN)  # type: ignore[union-attr]
    np.testing.assert_array_equal(found.reshape(3, 3), values)
    assert cells.get_clim() == (-0.5, 0.5)
    assert axes.get_ylim() == (3.0, 0.0)
    assert {"+0.250", "-0.500", "+0.000", "–"} <= words(figure)


@pytest.mark.parametrize(
    ("panel", "most", "said"),
    [
        (rows([Estimate(k / 1_000) for k in range(1_000)]), MOST_ROWS,
         "rows: the first 40 of 1,000 are drawn"),
        (Lines("lines", "u", "x",
               [Line(f"l{n}", [Estimate(1.0)], xs=[n]) for n in range(30)]), MOST_LINES,
         "lines: the first 8 of 30 are drawn"),
    ],
)  # fmt: skip
def test_of_too_much_the_first_part_is_drawn_and_it_says_so(
    panel: Rows | Lines, most: int, said: str
) -> None:
    """The figure stays as large as it is with as much as there is room for."""
    figure = drawn(panel)
    is_down = isinstance(panel, Rows)
    found = marks(figure.axes[0], is_down=is_down)
    assert [place for place, _ in found] == [*range(most)]
    assert [value for _, value in found] == [
        each.value
        for series in (panel.series if isinstance(panel, Rows) else panel.lines)
        for each in series.estimates
    ][:most]
    assert said in words(figure)
    assert figure.get_size_inches()[1] < 15.0


def test_a_long_line_keeps_its_last_point_and_a_large_matrix_its_corner() -> None:
    """One point of so many, and the first names."""
    n = 5 * MOST_POINTS + 5
    line = Line("a", [Estimate(x, x - 1.0, x + 1.0) for x in range(n)], xs=range(n))
    names = [f"r{k}" for k in range(100)]
    zeros = [[0.0] * 100 for _ in names]
    figure = drawn(Lines("l", "u", "x", [line]), Matrix("m", "", names, zeros))
    (joined,) = (x for x in figure.axes[0].get_lines() if x.get_gid() == JOINED)
    xs = np.asarray(joined.get_xdata())

    assert xs[-1] == n - 1
    assert len(xs) <= MOST_POINTS
    (note,) = (each for each in words(figure) if "one of" in each)
    assert "l: one of 6 points is drawn" in note
    assert f"m: the first {MOST_NAMES} of 100 are drawn" in note


@pytest.mark.parametrize(
    "panel",
    [
        rows([]), rows([Estimate(NAN)]), Lines("l", "u", "x", []),
        Lines("l", "u", "x", [Line("a", [Estimate(NAN)], xs=[1])]),
        Matrix("m", "", [], []), Matrix("m", "", ["a"], [[NAN]]),
    ],
)  # fmt: skip
def test_a_panel_without_numbers_says_so(panel: Panel) -> None:
    """Instead of a scale of nothing."""
    assert "nothing is known" in words(drawn(panel))


def test_a_scale_from_zero_begins_there_unless_something_is_below() -> None:
    """Also where all is 0."""
    for numbers, first in (([0.5, 0.6], 0.0), ([0.0], 0.0), ([-0.2, 0.5], None)):
        names = [str(n) for n in numbers]
        series = [Series("s", [Estimate(n) for n in numbers])]
        (axes,) = drawn(Rows("r", "u", names, series, is_from_zero=True)).axes
        left, right = axes.get_xlim()
        assert left < right
        assert left == first if first is not None else left < -0.2


HOSTILE = [
    "$x_1$ and \\alpha^2", "_hidden", "red\nshoes\ttab", "a\x1b[2J\x00b", "שלום עולם",
    "مرحبا", "鞋子", "👟", "\u202egnirts", "<b>&amp;", "w" * 5_000, "\ud800", "",
]  # fmt: skip


@pytest.mark.parametrize("ending", ["svg", "png"])
def test_names_of_users_are_text_whatever_is_in_them(ending: str) -> None:
    """Of rows, series, lines, rankers, titles and notes; not one warning."""
    few = HOSTILE[:MOST_LINES]
    numbers = [Estimate(0.1, 0.0, 0.2)] * len(HOSTILE)
    panels: list[Panel] = [
        Rows(HOSTILE[3], "u", HOSTILE, [Series(x, numbers) for x in few]),
        Lines("t", "u", "x", [Line(x, numbers[:1], xs=[1]) for x in few]),
        Matrix("m", "", few, [[0.0] * len(few) for _ in few]),
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        figure = figure_of(Picture(HOSTILE[2], [[x] for x in panels], HOSTILE))
        found = figure_bytes(figure, ending)

    labels = [text.get_text() for text in figure.axes[0].get_yticklabels()]
    assert labels == [label_of(name) for name in HOSTILE]
    if ending == "png":
        assert found.startswith(b"\x89PNG")
        return
    written = {"".join(x.itertext()) for x in ET.fromstring(found).iter()}  # noqa: S314  we made it
    for name in ("$x_1$ and \\alpha^2", "_hidden", "red\\nshoes\\ttab", "שלום עולם",
                 "鞋子", "<b>&amp;", "\\ud800"):  # fmt: skip
        assert name in written


def test_a_long_name_loses_its_middle() -> None:
    """Both ends stay, by which such names are told apart; wide letters count twice."""
    from rich.cells import cell_len  # noqa: PLC0415

    assert label_of("a" * LONGEST) == "a" * LONGEST
    found = label_of("begin" + "x" * 100 + "end")
    assert found.startswith("beginx")
    assert found.endswith("xend")
    assert cell_len(found) == LONGEST
    assert cell_len(label_of("鞋" * 100)) <= LONGEST
