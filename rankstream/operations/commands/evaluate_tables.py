"""Valued policies as a table that is read at a glance, and as JSON."""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from models.estimators.adaptivity import Basis
from models.estimators.policy_comparison import PolicyComparison
from models.estimators.registry import ESTIMATORS, POLICIES
from rankstream.operations.commands.relevance_tables import curve_label
from rankstream.operations.commands.statistics_asked import say
from rankstream.operations.terminal.counts import counted
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.plain_text import plain
from streams.estimation.curve_replicates import CurveReplicates
from streams.estimation.evaluation import LOGGED, Evaluation, Question
from streams.estimation.policy_rows import PolicyRow, no_interval
from streams.estimation.policy_rows import rows_of as policy_rows

SPARE = ("effective clicks", "largest click", "unseen")
"""Columns that a narrow terminal can do without."""

MOST_UNSEEN = 0.05
"""Above this share of what could never be seen it is said in words."""

ONE_CLICK = 0.2
"""From this share of one click on it is said in words."""

FEW_CLICKS = 30.0
"""Below so many effective clicks it is said in words."""


class Answer(NamedTuple):
    """What came of it.

    Parameters
    ----------
    question
        What was asked.
    weights
        The name of what ranks are worth.
    basis
        Whose clicks it is from.
    found
        Figures and how much of the log they are of.
    """

    question: Question
    weights: str
    basis: Basis
    found: Evaluation

    @property
    def no_interval(self) -> str:
        """Why no figure has an interval; empty where some may."""
        return no_interval(self.basis, self.question.curve)

    @property
    def comparison(self) -> PolicyComparison:
        """Of policies that were valued."""
        if self.found.comparison is None:
            raise ValueError("no candidate set was ranked by all policies")
        return self.found.comparison


def rows_of(answer: Answer) -> list[PolicyRow]:
    """A row for each policy, what was logged first."""
    return policy_rows(answer.comparison, answer.no_interval)


def remarks_of(answer: Answer) -> Iterator[str]:
    """What who reads the figures must know, the most important first."""
    question, coverage = answer.question, answer.found.coverage
    curve = question.curve
    yield answer.basis.warning
    yield question.choice.said(coverage.n_as_shown)
    yield _counted(answer)
    yield from _left_out(answer)
    if coverage.mixed and POLICIES in ESTIMATORS[question.estimator].needs:
        named = ", ".join(repr(name) for name in coverage.mixed[:3])
        more = len(coverage.mixed) - 3
        yield (
            f"lists of {named}{f' and {more} more' if more > 0 else ''} had several "
            "placements in a query: clicks per exposure row cannot be told, so each "
            "is corrected by their mean"
        )
    yield from curve.curve.remarks()
    yield curve.bias
    yield curve.warning
    for row in rows_of(answer):
        yield from _support_of(row)


def _counted(answer: Answer) -> str:
    """What was clicked, beside the estimate of the same."""
    naive = answer.comparison.naive
    told = f"{naive.values[0]:.4f} clicks per list"
    if not naive.reasons[0]:
        told += f" ({_ends(float(naive.low[0]), float(naive.high[0]))})"
    if answer.weights != "clicks":
        return f"counted, and not estimated: {told} were logged"
    return (
        f"counted, and not estimated: {told} were logged. The row {LOGGED!r} estimates "
        "the same as all other rows are estimated, so that it compares with them; if "
        "it lies far off, the curve is not that of these users"
    )


def _left_out(answer: Answer) -> Iterator[str]:
    """What the figures are not of."""
    coverage, curve = answer.found.coverage, answer.question.curve
    if coverage.n_classes:
        classes = counted(coverage.n_classes, "class", "classes")
        yield f"items whose ids are equal before # count as one: {classes}"
    yield curve.reason and f"no intervals: {curve.reason}; give --examination"
    for name, n in coverage.lacking.items():
        yield (
            f"{name} says nothing of the candidates of {counted(n, 'list')}, "
            f"{n / coverage.n_all:.1%}: they are left out for all"
        )
    if coverage.n_left_out:
        yield (
            f"{counted(coverage.n_left_out, 'list')} left out: in their group of a "
            "scope are some of unknown policies"
        )
    if coverage.n_beyond:
        yield (
            f"the curve has {curve.curve.n_ranks} ranks: "
            f"{counted(coverage.n_beyond, 'click')} further down are left out"
        )


def _support_of(row: PolicyRow) -> Iterator[str]:
    """What must be known of one policy."""
    if row.unseen > MOST_UNSEEN:
        yield (
            f"{row.unseen:.1%} of what {row.name} would show could never be seen: it "
            "counts as not relevant, so the figure is rather too low"
        )
    if row.largest_share > ONE_CLICK:
        yield f"one click is {row.largest_share:.0%} of what {row.name} is from"
    if row.effective_clicks < FEW_CLICKS:
        n = round(row.effective_clicks)
        yield f"{row.name} is as precise as {counted(n, 'click')} of equal weight"


def print_answer(answer: Answer) -> None:
    """Print the table and what must be known of it."""
    question, coverage = answer.question, answer.found.coverage
    table = Table(
        title=f"{answer.weights} per list, by {question.estimator}",
        caption=f"{counted(coverage.n_queries, 'query', 'queries')}, "
        f"{counted(coverage.n_lists, 'list')}, {counted(coverage.n_clicks, 'click')}, "
        f"{counted(len(question.groups), 'group')}",
    )
    against = f"less {plain(question.base)}"
    table.add_column("policy", overflow="fold")
    for column in ("reward", "95 %", against, "95 % ", *SPARE[::-1], ""):
        table.add_column(column, justify="right", no_wrap=True)
    for row in rows_of(answer):
        is_base = row.name == question.base
        table.add_row(
            plain(row.name),
            f"{row.reward:.4f}",
            _ends(row.low, row.high),
            "" if is_base else f"{row.difference:+.4f}",
            "" if is_base else _ends(row.difference_low, row.difference_high, "+"),
            f"{row.unseen:.1%}",
            "-" if math.isnan(row.largest_share) else f"{row.largest_share:.1%}",
            f"{row.effective_clicks:,.0f}",
            row.verdict,
        )
    console = wide_console()
    print_fitted(console, table, SPARE)
    curve = question.curve
    label = curve_label(curve.curve, curve.source, curve.ends)
    for remark in (label, *remarks_of(answer)):
        say(console if console.width > 80 else Console(), remark and f"  {remark}")


def as_builtins(answer: Answer) -> dict[str, Any]:
    """All of it, NaN as None."""
    question, coverage = answer.question, answer.found.coverage
    curve, naive = question.curve.curve, answer.comparison.naive
    return {
        "estimator": question.estimator,
        "chosen": question.choice.said(coverage.n_as_shown),
        "weights": answer.weights,
        "against": question.base,
        "groups": list(question.groups),
        "curve": {
            "alpha": curve.alpha.tolist(),
            "beta": curve.beta.tolist(),
            "is_ratio_only": curve.is_ratio_only,
            **_ends_of(question.curve),
            "source": question.curve.source,
        },
        "policies": [
            {name: _or_none(value) for name, value in row._asdict().items()}
            for row in rows_of(answer)
        ],
        "logged_clicks": {
            "value": _or_none(float(naive.values[0])),
            "low": _or_none(float(naive.low[0])),
            "high": _or_none(float(naive.high[0])),
        },
        "coverage": {
            **coverage._asdict(),
            "lacking": dict(coverage.lacking),
            "mixed": list(coverage.mixed),
        },
        "remarks": [remark for remark in remarks_of(answer) if remark],
    }


def _ends_of(curve: CurveReplicates) -> dict[str, Any]:
    """Of alpha, null where there is no interval."""
    ends = curve.ends
    sides = (None, None) if ends is None else (ends.low, ends.high)
    return {
        name: None if side is None else [_or_none(x) for x in side.tolist()]
        for name, side in zip(("alpha_low", "alpha_high"), sides, strict=True)
    }


def _or_none(value: object) -> object:
    return None if isinstance(value, float) and math.isnan(value) else value


def _ends(low: float, high: float, sign: str = "") -> str:
    if math.isnan(low):
        return "-"
    return f"{low:{sign}.4f} to {high:{sign}.4f}"
