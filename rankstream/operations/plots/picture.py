"""What a picture holds: panels of numbers with intervals, before anybody draws them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Self

MOST_ROWS = 40
"""Rows of a panel; of more the first ones are drawn, and it says so."""

MOST_LINES = 8
"""Lines of a panel, likewise."""

MOST_POINTS = 500
"""Points of a line; of more every so many are drawn, and it says so."""

MOST_NAMES = 20
"""Rows and columns of a matrix, likewise."""


class Estimate(NamedTuple):
    """A number and the ends of its interval; NaN is what is not known."""

    value: float
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of(
        cls, value: float | None, ends: Sequence[float | None] | None = None
    ) -> Self:
        """It from an answer, in which None, or no finite number, is not known.

        Examples
        --------
        >>> Estimate.of(0.5, (None, None)), Estimate.of(None).has_value
        (Estimate(value=0.5, low=nan, high=nan), False)
        """
        low, high = ends or (None, None)
        return cls(*map(_finite, (value, low, high)))

    @property
    def has_value(self) -> bool:
        """Whether there is a number."""
        return math.isfinite(self.value)

    @property
    def has_interval(self) -> bool:
        """Whether there is one, with both of its ends."""
        return self.has_value and math.isfinite(self.low) and math.isfinite(self.high)


def _finite(number: float | None) -> float:
    return math.nan if number is None or not math.isfinite(number) else float(number)


@dataclass(frozen=True)
class Series:
    """Numbers of one kind, one for each row.

    Parameters
    ----------
    estimates
        One for each label of the panel.
    is_estimated
        Whether they ought to have intervals, so that a missing one is drawn as missing;
        what was counted has none.
    """

    name: str
    estimates: Sequence[Estimate]
    is_estimated: bool = True


@dataclass(frozen=True)
class Line(Series):
    """The same, one for each place along the bottom.

    Parameters
    ----------
    xs : [n_points]
        Where they lie, ascending.
    """

    xs: Sequence[float] = ()


@dataclass(frozen=True)
class Rows:
    """A row for each label, the first one at the top.

    Parameters
    ----------
    unit
        What the numbers are.
    reference
        A number that others are seen against, such as no difference; None: none.
    is_from_zero
        Whether the scale begins at 0.
    """

    title: str
    unit: str
    labels: Sequence[str]
    series: Sequence[Series]
    reference: float | None = None
    is_from_zero: bool = False


@dataclass(frozen=True)
class Lines:
    """Numbers over places along the bottom: ranks, lists, or moments.

    Parameters
    ----------
    unit, below
        What the numbers are, and the places.
    is_time
        Whether places are epoch milliseconds.
    mark
        A place that is pointed at, and what it is; None: none.
    """

    title: str
    unit: str
    below: str
    lines: Sequence[Line]
    reference: float | None = None
    is_from_zero: bool = False
    is_time: bool = False
    mark: tuple[float, str] | None = None


@dataclass(frozen=True)
class Matrix:
    """Numbers of row over column; 0 is no preference.

    Parameters
    ----------
    values : [n_names, n_names]
        NaN where nothing is known.
    """

    title: str
    unit: str
    names: Sequence[str]
    values: Sequence[Sequence[float]]


Panel = Rows | Lines | Matrix


@dataclass(frozen=True)
class Picture:
    """Panels below each other, those of one row beside each other.

    Parameters
    ----------
    notes
        What who looks at it must know, a sentence each; empty ones say nothing.
    """

    title: str
    panels: Sequence[Sequence[Panel]]
    notes: Sequence[str] = field(default=())


def bounded(panel: Panel) -> tuple[Panel, str]:
    """What is drawn of a panel, and in words what is not; empty where all is."""
    if isinstance(panel, Rows):
        n, kept = len(panel.labels), MOST_ROWS
        series = [
            replace(each, estimates=each.estimates[:kept]) for each in panel.series
        ]
        drawn: Panel = replace(panel, labels=panel.labels[:kept], series=series)
    elif isinstance(panel, Lines):
        n, kept = len(panel.lines), MOST_LINES
        step = -(-max((len(each.xs) for each in panel.lines), default=0) // MOST_POINTS)
        drawn = replace(
            panel, lines=[_thinned(each, max(1, step)) for each in panel.lines[:kept]]
        )
        if n <= kept and step > 1:
            return drawn, f"{panel.title}: one of {step} points is drawn"
    else:
        n, kept = len(panel.names), MOST_NAMES
        values = [row[:kept] for row in panel.values[:kept]]
        drawn = replace(panel, names=panel.names[:kept], values=values)
    if n <= kept:
        return drawn, ""
    return drawn, f"{panel.title}: the first {kept} of {n:,} are drawn"


def _thinned(line: Line, step: int) -> Line:
    """Every so many points, the last one among them."""
    first = (len(line.xs) - 1) % step
    kept = slice(first, None, step)
    return replace(line, xs=line.xs[kept], estimates=line.estimates[kept])


def ends_of(estimates: Iterable[Estimate]) -> tuple[float, float] | None:
    """The least and the largest number of values and intervals; None without any."""
    known = [x for each in estimates for x in each if math.isfinite(x)]
    return (min(known), max(known)) if known else None
