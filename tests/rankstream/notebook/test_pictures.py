"""`plot()` draws what an answer says; pictures themselves are tested beside them."""

from typing import Any

import matplotlib.figure
import pytest

import rankstream
from tests.rankstream.notebook.test_light_import import WITHOUT, said


def test_answers_with_figures_have_pictures(
    log: rankstream.Log, ranker: rankstream.ClickRanker
) -> None:
    """Of the answers themselves, light or dark."""
    shown: list[Any] = [
        log.bias(),
        log.relevance("query 1"),
        log.statistics("query 1"),
        log.statistics(),
        log.evaluate({"new": ranker}),
        ranker.training(),
    ]
    for answer in shown:
        for is_dark in (False, True):
            figure = answer.plot(is_dark=is_dark)
            assert isinstance(figure, matplotlib.figure.Figure)
            assert figure.axes
    assert "query 1" in [text.get_text() for text in shown[1].plot().texts]


def test_a_picture_says_what_its_table_says(log: rankstream.Log) -> None:
    """That the curve is not well known; no title stands there twice."""
    relevance = log.relevance("query 1")
    below = relevance.plot().get_supxlabel().replace("\n", " ")
    assert "examination is not well known at ranks 2 to 4" in repr(relevance)
    assert "examination is not well known at ranks 2 to 4" in below
    figure = log.bias().plot()
    titles = [axes.get_title(loc) for axes in figure.axes for loc in ("left", "center")]
    assert figure.get_suptitle() not in titles


def test_lists_of_names_have_none(log: rankstream.Log) -> None:
    """It says what to draw instead."""
    with pytest.raises(ValueError, match="draw what to_pandas"):
        log.dead_letters().plot()


def test_without_matplotlib_it_says_what_to_install() -> None:
    """On one line."""
    program = WITHOUT.format(
        missing="matplotlib",
        program="import tests.clicked_tables as t\n"
        "log = rankstream.read(t.shop(n_lists=9).clicks, progress=False)\n"
        "log.bias().plot()",
    )
    assert said(program) == (
        "rankstream.installation.NotInstalled: plot() needs the extra `plots`, and "
        "matplotlib is not installed: pip install 'rankstream[plots]'"
    )
