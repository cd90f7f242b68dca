"""What pictures of verdicts on experiments hold."""

import math
from collections.abc import Sequence

from rankstream.operations.answers.comparisons.experiment_standing import (
    pace_of,
    standing_of,
)
from rankstream.operations.answers.comparisons.refitted import Refitted
from rankstream.operations.plots.picture import (
    Estimate,
    Line,
    Lines,
    Matrix,
    Panel,
    Picture,
    Rows,
    Series,
)
from rankstream.wire.verdicts import MethodVerdict, PairVerdict, Verdict

TO_COME, CAME = "sessions to come", "sessions that came"


def verdict_picture(
    verdict: Verdict, *, method: str = "", course: Sequence[Verdict] = ()
) -> Picture:
    """Preferences with both intervals, how they went, and all of them as a matrix.

    Parameters
    ----------
    method
        Which one; empty: that which drew the lists.
    course
        Verdicts of the same epoch, oldest first.
    """
    name = method or verdict.method
    found = verdict.methods[name]
    panels: list[list[Panel]] = [[_pairs(found)]]
    told = [each.methods[name] for each in course if name in each.methods]
    if told:
        panels.append([_course(told)])
    if len(verdict.rankers) > 2:
        panels.append([_matrix(verdict, found)])
    winner = found.winner or "none yet"
    title = f"{verdict.experiment}, epoch {verdict.epoch}, {name}: winner {winner}"
    notes = (
        standing_of(verdict, _pace(verdict, course)).words
        if name == verdict.method
        else "",
        f"Intervals hold for all pairs at {1 - verdict.alpha:.0%}, at any time.",
        verdict.questions.get("to_come", ""),
        verdict.questions.get("came", ""),
        found.sessions.why,
    )
    return Picture(title, panels, notes)


def _pace(verdict: Verdict, course: Sequence[Verdict]) -> float | None:
    """Lists a day at last, as the monitor has it; None where one verdict is known."""
    told = (*course, verdict)
    return pace_of([(x.last_ms, x.drawn_by.impressions) for x in told])


def refitted_picture(found: Refitted) -> Picture:
    """The difference of two rankers under another curve of bias."""
    numbers = found.found
    difference = Estimate.of(numbers.mean, (numbers.low, numbers.high))
    panel = Rows(
        f"under {found.curve}",
        "clicks per list",
        [f"{found.a} less {found.b}"],
        [Series("difference", [difference])],
        reference=0.0,
    )
    title = f"{found.experiment}, epoch {found.epoch}"
    return Picture(title, [[panel]], [found.said()])


def _pairs(found: MethodVerdict) -> Rows:
    pairs = found.pairs
    return Rows(
        "preference",
        "preference, in units of the method",
        [f"{pair.a} over {pair.b}" for pair in pairs],
        [
            Series(TO_COME, [Estimate.of(pair.mean, pair.to_come) for pair in pairs]),
            Series(CAME, [Estimate.of(pair.mean, pair.came) for pair in pairs]),
        ],
        reference=0.0,
    )


def _course(told: Sequence[MethodVerdict]) -> Lines:
    """A line for each pair, over the impressions that there were."""
    names = [(pair.a, pair.b) for pair in told[-1].pairs]
    lines = []
    for a, b in names:
        points = [
            (each.impressions, Estimate.of(pair.mean, pair.to_come))
            for each in told
            for pair in _among(each, a, b)
        ]
        lines.append(
            Line(
                f"{a} over {b}",
                [estimate for _, estimate in points],
                xs=[n for n, _ in points],
            )
        )
    title = f"course, for {TO_COME}"
    return Lines(title, "preference", "impressions", lines, reference=0.0)


def _among(found: MethodVerdict, a: str, b: str) -> list[PairVerdict]:
    return [pair for pair in found.pairs if (pair.a, pair.b) == (a, b)]


def _matrix(verdict: Verdict, found: MethodVerdict) -> Matrix:
    # A ranker has no preference over itself.
    values = [
        [math.nan if i == j else number for j, number in enumerate(row)]
        for i, row in enumerate(found.matrix)
    ]
    return Matrix("preference of row over column", "", verdict.rankers, values)
