"""Pictures of answers hold the answers' numbers: of a real log, and by hand."""

import dataclasses
import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest

from models.estimators.bias_curve import BiasCurve
from models.evaluation.refitted_difference import RefittedDifference
from rankstream.operations.answers.comparisons.experiment_standing import standing_of
from rankstream.operations.answers.comparisons.refitted import Refitted
from rankstream.operations.answers.curve import CurveOfBias, curve_for
from rankstream.operations.answers.policies import files_named, policies_of
from rankstream.operations.answers.relevance import relevance_in
from rankstream.operations.answers.shown_query import shown_query
from rankstream.operations.answers.sources import CountedLog, source_of
from rankstream.operations.answers.statistics import counted_scope
from rankstream.operations.answers.values import ValueOptions, values_of
from rankstream.operations.cli import main
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.plots.answers import picture_of
from rankstream.operations.plots.figure import figure_of
from rankstream.operations.plots.interventions import (
    MOST_CURVES,
    interventions_picture,
)
from rankstream.operations.plots.picture import Lines, Matrix, Rows
from rankstream.operations.plots.relevance import counts_picture
from rankstream.operations.plots.verdicts import verdict_picture
from rankstream.settings import Settings
from rankstream.wire.models.training import EndsUsed
from rankstream.wire.verdicts import Verdict, decode_verdict
from streams.training.curves.curve_estimator import CurveEnds
from tests import monitored
from tests.curve_factory import curve_record, curve_snapshot
from tests.rankstream.operations.commands.test_evaluate import events, written
from tests.rankstream.operations.monitoring.test_monitoring import verdict
from tests.rankstream.operations.plots.drawn_numbers import marks, whiskers, words
from tests.rankstream.training_topic import RUN

QUERY = "red shoes"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A log of lists of a policy that draws, replayed."""
    folder = tmp_path_factory.mktemp("log")
    log = written(folder / "log.jsonl", events(1_500))
    assert main(["replay", str(log), "--local", "--out", str(folder / "run")]) == 0
    return folder


@pytest.fixture(scope="module")
def source(folder: Path) -> CountedLog:
    """What was counted of it."""
    return source_of(Settings(), folder / "run")


def judged(n: int, *, rankers: int = 3) -> Verdict:
    """A verdict after so many impressions."""
    return decode_verdict(msgspec.json.encode(verdict(n=n, rankers=rankers)))


def test_a_curve_has_its_ratios_and_intervals(source: CountedLog) -> None:
    """The unit is known, and what is not estimated has no whiskers."""
    found = curve_for(source)
    assert found.curve is not None
    assert found.ends is not None
    (axes,) = figure_of(picture_of(found)).axes

    alpha = found.curve.alpha
    expected = [(float(rank), float(each)) for rank, each in enumerate(alpha, 1)]
    assert marks(axes, is_down=False) == expected
    ends = zip(found.ends.low, found.ends.high, strict=True)
    told = [(float(rank), *map(float, each)) for rank, each in enumerate(ends, 1)]
    known = [each for each in told[1:] if not math.isnan(each[1])]
    assert known
    assert whiskers(axes, is_down=False) == [(1.0, 1.0, 1.0), *known]


def test_a_curve_may_have_trust_bias_no_intervals_or_not_be_known() -> None:
    """Beta beside alpha; a curve that was given has nothing missing."""
    given = BiasCurve(np.array([0.9, 0.5]), np.array([0.1, 0.05]))
    figure = figure_of(picture_of(CurveOfBias(given, "given")))
    assert marks(figure.axes[0], is_down=False) == [
        (1.0, 0.1), (1.0, 0.9), (2.0, 0.05), (2.0, 0.5)
    ]  # fmt: skip
    assert whiskers(figure.axes[0], is_down=False) == []
    assert {"alpha", "beta"} <= words(figure)
    assert "no interval" not in words(figure)

    nothing = figure_of(picture_of(CurveOfBias(None, "clicks do not tell")))
    assert {"nothing is known", "clicks do not tell"} <= words(nothing)
    short = CurveEnds(np.array([math.nan]), np.array([math.nan]), None)
    figure = figure_of(picture_of(CurveOfBias(given, "x", "", short)))
    assert "no interval" in words(figure)


def test_relevance_stands_beside_what_was_counted(source: CountedLog) -> None:
    """The most relevant item at the top."""
    scopes = source.statistics.scopes(QUERY)
    by = curve_for(source)
    assert by.curve is not None
    found = relevance_in(source, scopes, by.curve)
    (axes,) = figure_of(picture_of(found)).axes

    drawn = marks(axes, is_down=True)
    assert [value for _, value in drawn[::2]] == [
        each.relevance for each in found.items
    ]
    assert [value for _, value in drawn[1::2]] == [
        each.clicked / each.impressions for each in found.items
    ]
    ends = [(low, high) for _, low, high in whiskers(axes, is_down=True)]
    assert ends == [(each.low, each.high) for each in found.items]
    assert [x.get_text() for x in axes.get_yticklabels()] == [
        each.item for each in found.items
    ]


def test_counts_are_clicks_by_rank_and_item(source: CountedLog) -> None:
    """As the places have them, added up."""
    (scope,) = source.statistics.scopes(QUERY)
    counted = counted_scope(source.statistics, scope)
    (items,), (ranks,) = picture_of(counted).panels
    places = counted.places()
    expected = []
    for rank in (1, 2, 3):
        own = [each for each in places if each.rank == rank]
        expected.append(sum(x.clicked for x in own) / sum(x.shown for x in own))
    assert isinstance(ranks, Lines)
    assert [each.value for each in ranks.lines[0].estimates] == expected
    assert isinstance(items, Rows)
    first = [each for each in places if each.item == items.labels[0]]
    rate = sum(x.clicked for x in first) / sum(x.shown for x in first)
    assert items.series[0].estimates[0].value == rate


def test_a_query_is_its_relevance_with_what_it_is_from(source: CountedLog) -> None:
    """Clicks by rank and the curve below; without a curve items have their clicks."""
    found = shown_query(source, source.statistics.scopes(QUERY))
    figure = figure_of(picture_of(found))
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["relevance, corrected for position", "clicks by rank",
                      "curve of bias"]  # fmt: skip
    assert QUERY in words(figure)
    assert found.relevance is not None
    drawn = [value for _, value in marks(figure.axes[0], is_down=True)[::2]]
    assert drawn == [each.relevance for each in found.relevance.items]

    untold = dataclasses.replace(
        found, curve=CurveOfBias(None, "clicks"), relevance=None
    )
    assert picture_of(untold) == counts_picture(found.together, QUERY)


def test_values_and_differences_are_those_of_the_table(
    source: CountedLog, tmp_path: Path
) -> None:
    """Names stand once at the left, and 0 is marked among differences."""
    file = tmp_path / "best.jsonl"
    lines = [{"query_id": each, "items": [*"cbda"]} for each in (QUERY, "green tea")]
    written(file, lines)
    words_ = [str(file)]
    policies = policies_of(words_, source, files_named(words_))
    found = values_of(source, policies, ValueOptions())
    values, differences = figure_of(picture_of(found)).axes

    rows = found.rows
    assert [each.name for each in rows] == ["logged", "best"]
    assert [x for _, x in marks(values, is_down=True)] == [x.reward for x in rows]
    assert whiskers(values, is_down=True) == [
        (float(place), x.low, x.high) for place, x in enumerate(rows)
    ]
    assert [x for _, x in marks(differences, is_down=True)] == [
        x.difference for x in rows
    ]
    assert (1.0, rows[1].difference_low, rows[1].difference_high) in whiskers(
        differences, is_down=True
    )
    assert [x.get_text() for x in values.get_yticklabels()] == ["logged", "best"]
    assert {x.get_text() for x in differences.get_yticklabels()} == {""}


def test_a_picture_says_the_days_that_the_page_says() -> None:
    """By the pace of the last day, of which the course tells."""
    day_ms = 86_400_000
    early = monitored.verdict_at(1_200, worth=(0.02, 0.0))
    course, gathered = [], Gathered()
    for days, n in ((1.0, 400), (3.0, 1_200), (3.5, 1_205), (4.0, 1_210)):
        told = monitored.verdict_at(n, worth=(0.02, 0.0))
        last_ms = early.first_ms + int(days * day_ms)
        told = msgspec.structs.replace(told, first_ms=early.first_ms, last_ms=last_ms)
        gathered.take_verdict(msgspec.json.encode(told))
        course.append(told)
    (row,) = gathered.overview()["experiments"]
    said = verdict_picture(course[-1], course=course).notes[0]
    assert said == row["words"]
    assert said.endswith(("weeks", "years"))
    assert said != standing_of(course[-1]).words


def test_a_verdict_has_its_pairs_its_course_and_a_matrix_beyond_two() -> None:
    """Both questions of each pair; verdicts of other methods are no part of it."""
    last = judged(100)
    course = [judged(n) for n in (10, 50)] + [last]
    pairs, went, matrix = figure_of(verdict_picture(last, course=course)).axes
    found = last.drawn_by.pairs
    shown = [x for _, x in marks(pairs, is_down=True)]
    assert shown == [each.mean for each in found for _ in range(2)]
    ends = [(low, high) for _, low, high in whiskers(pairs, is_down=True)]
    assert ends == [x for each in found for x in (each.to_come, each.came)]
    assert sorted({x for x, _ in marks(went, is_down=False)}) == [10.0, 50.0, 100.0]
    assert len(marks(went, is_down=False)) == 9
    assert matrix.get_title("left") == "preference of row over column"

    picture = picture_of(judged(100, rankers=2))
    assert picture.notes[0] == standing_of(judged(100, rankers=2)).words
    assert not any(isinstance(x, Matrix) for row in picture.panels for x in row)
    assert len(picture.panels) == 1


def test_what_cannot_be_said_of_a_pair_yet_is_drawn_as_missing() -> None:
    """As at the beginning, where no interval is finite."""
    early = verdict(rankers=2)
    (pair,) = early["methods"]["team-draft"]["pairs"]
    pair["to_come"] = pair["came"] = [None, None]
    figure = figure_of(picture_of(decode_verdict(json.dumps(early).encode())))
    assert whiskers(figure.axes[0], is_down=True) == []
    assert "no interval" in words(figure)


def test_a_refitted_difference_is_one_row() -> None:
    """With the interval that has the curve's own error."""
    numbers = RefittedDifference(0.1, 0.05, 0.15, 0.01, 0.02)
    found = Refitted("boost", 1, "new", "old", "eyes@0.9", 20, numbers)
    (axes,) = figure_of(picture_of(found)).axes
    assert marks(axes, is_down=True) == [(0.0, 0.1)]
    assert whiskers(axes, is_down=True) == [(0.0, 0.05, 0.15)]
    assert axes.get_yticklabels()[0].get_text() == "new less old"


def test_a_training_has_its_epochs_and_the_curve_it_used() -> None:
    """Loss and DCG; the epoch that was taken is pointed at."""
    run = msgspec.structs.replace(RUN, ends=EndsUsed([math.nan], [math.nan], 0.95))
    figure = figure_of(picture_of(run))
    loss, dcg, curve = figure.axes
    assert marks(loss, is_down=False) == [(0.0, 0.9), (1.0, 0.8)]
    assert marks(dcg, is_down=False) == [(0.0, 1.2), (1.0, 1.3)]
    assert marks(curve, is_down=False) == [(1.0, 1.0)]
    assert "taken" in words(figure)


def test_interventions_go_by_event_time() -> None:
    """Each model's value and DCG, and alpha of each rank of a curve but the unit."""
    runs = [
        msgspec.structs.replace(RUN, created_ms=at_ms, model=model, reward=reward)
        for at_ms, model, reward in (
            (86_400_000, "m", 1.5), (172_800_000, "m", None), (172_800_000, "n", 0.5)
        )
    ]  # fmt: skip
    fits = [
        curve_record(curve_snapshot([1.0, 0.5, alpha]), created_ms=at_ms)
        for at_ms, alpha in ((86_400_000, 0.25), (172_800_000, 0.3))
    ]
    figure = figure_of(interventions_picture([*runs, *fits]))
    value, dcg, alpha = figure.axes
    reason = f"not estimated, of 1 training: {RUN.reward_reason}"
    assert reason in words(figure)
    assert marks(value, is_down=False) == [(1.0, 1.5), (2.0, 0.5)]
    assert marks(dcg, is_down=False) == sorted(
        (day, number) for day in (1.0, 2.0, 2.0) for number in (1.2, 1.3)
    )
    assert marks(alpha, is_down=False) == [
        (1.0, 0.25),
        (1.0, 0.5),
        (2.0, 0.3),
        (2.0, 0.5),
    ]
    assert whiskers(alpha, is_down=False)[0] == (1.0, 0.25 - 0.1, 0.25 + 0.1)

    many = [
        curve_record(curve_snapshot([1.0, 0.5], model=f"c{n}"))
        for n in range(MOST_CURVES + 2)
    ]
    picture = interventions_picture(many)
    assert len(picture.panels) == MOST_CURVES
    assert [*picture.notes] == ["2 more curves: name one"]


def test_a_fit_has_intervals_of_both_of_its_parts() -> None:
    """With what is not known of a rank."""
    record = curve_record(curve_snapshot([1.0, 0.5, math.nan], [0.0, 0.1, math.nan]))
    figure = figure_of(picture_of(record))
    assert marks(figure.axes[0], is_down=False) == [
        (1.0, 0.0), (1.0, 1.0), (2.0, 0.1), (2.0, 0.5)
    ]  # fmt: skip
    assert (2.0, 0.4, 0.6) in whiskers(figure.axes[0], is_down=False)
    assert any("rank 3: not shown" in each for each in words(figure))


def test_what_has_no_picture_is_refused() -> None:
    """By its kind."""
    with pytest.raises(TypeError, match=r"must have a picture; got int"):
        picture_of(3)
