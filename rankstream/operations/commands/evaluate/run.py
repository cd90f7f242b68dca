"""What `rankstream evaluate` does: value policies, and print what they are worth."""

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from producers.stop_signal import Stop
from rankstream.operations.answers.curve import curve_label
from rankstream.operations.answers.policies import files_named, policies_of
from rankstream.operations.answers.sources import CountedLog, source_of
from rankstream.operations.answers.statistics import left_label
from rankstream.operations.answers.support import range_of
from rankstream.operations.answers.values import (
    NothingToValue,
    ValueOptions,
    Values,
    values_of,
)
from rankstream.operations.commands import (
    STOPPED,
    Stopped,
    nothing,
    settings_of,
    tell,
    write_json,
)
from rankstream.operations.commands.options.folded_log import folded_log
from rankstream.operations.commands.options.log import has_files
from rankstream.operations.commands.options.plot import draw_if_asked
from rankstream.operations.plots.policies import values_picture
from rankstream.operations.terminal.bars import bars_of
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings
from streams.local import local_settings

SPARE = ("effective clicks", "largest click", "unseen")
"""Columns that a narrow terminal can do without."""


def run(arguments: argparse.Namespace) -> int:
    """Value them; 1 if there is nothing to value them on, 130 if stopped."""
    settings = settings_of(arguments)
    # Before a whole log is read.
    rankings = files_named(arguments.policies)
    try:
        with Stop() as stop:
            source = _source_of(arguments, settings, stop)
            statistics = source.statistics
            if statistics.is_empty():
                return nothing(left_label(statistics) or "there are no statistics yet")
            policies = policies_of(
                arguments.policies,
                source,
                rankings,
                against=arguments.against,
                temperature=arguments.temperature,
            )
            asked = ValueOptions(
                arguments.weights,
                arguments.estimator,
                arguments.examination,
                arguments.curve,
                arguments.ranks,
                arguments.classes,
            )

            @contextlib.contextmanager
            def line(
                label: str, total: int | None, unit: str
            ) -> Iterator[Callable[[int], object]]:
                with ProgressLine(label, total=total, unit=unit) as shown:

                    def show(n: int) -> None:
                        shown.show(n)
                        if stop.asked:
                            raise Stopped

                    yield show

            n_queries = len({name.query for name in statistics.scopes()})
            found = values_of(
                source,
                policies,
                asked,
                fitting=lambda: line("fitting the curve", None, "fits"),
                valuing=lambda: line("valuing", n_queries, "queries"),
            )
    except Stopped:
        tell("stopped")
        return STOPPED
    except NothingToValue as error:
        return nothing(str(error))
    draw_if_asked(arguments, lambda: values_picture(found))
    if arguments.json:
        write_json(found.to_dict())
    else:
        _print(found)
    return 0


def _source_of(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> CountedLog:
    """The source that was asked for: Kafka, a folder, or events that are folded here.

    Raises
    ------
    Stopped
    ValueError
        Where files or a folder are not what they must be.
    TopicUnreadable
    """
    if not has_files(arguments):
        return source_of(settings, arguments.local)
    if arguments.local is not None:
        raise ValueError(
            "a log must be a folder or files; got --local beside --queries and "
            "--clicks: leave out one"
        )
    log = folded_log(arguments, local_settings(settings), stop)
    if log is None:
        raise Stopped
    return log.source(settings, log.recorded())


def _print(found: Values) -> None:
    """The table, and what must be known of it."""
    question, coverage = found.question, found.coverage
    table = Table(
        title=f"{found.weights} per list, by {question.estimator}",
        caption=f"{counted(coverage.n_queries, 'query', 'queries')}, "
        f"{counted(coverage.n_lists, 'list')}, {counted(coverage.n_clicks, 'click')}, "
        f"{counted(len(question.groups), 'group')}",
    )
    against = f"less {plain(question.base)}"
    table.add_column("policy", overflow="fold")
    for column in ("reward", "95 %", against, "95 % ", *SPARE[::-1], ""):
        table.add_column(column, justify="right", no_wrap=True)
    axis, bars = bars_of([(row.reward, row.low, row.high) for row in found.rows])
    table.add_column(axis)
    for row, bar in zip(found.rows, bars, strict=True):
        is_base = row.name == question.base
        table.add_row(
            plain(row.name),
            f"{row.reward:.4f}",
            range_of(row.low, row.high),
            "" if is_base else f"{row.difference:+.4f}",
            "" if is_base else range_of(row.difference_low, row.difference_high, "+"),
            f"{row.unseen:.1%}",
            "-" if math.isnan(row.largest_share) else f"{row.largest_share:.1%}",
            f"{row.effective_clicks:,.0f}",
            row.verdict,
            bar,
        )
    console = wide_console()
    print_fitted(console, table, SPARE)
    curve = question.curve
    label = curve_label(curve.curve, curve.source, curve.ends)
    for remark in (label, *found.remarks()):
        if remark:
            narrow = console if console.width > 80 else Console()
            narrow.print(f"  {remark}", highlight=False)
