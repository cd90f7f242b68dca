"""`rankstream evaluate`: what policies would be worth, before anybody sees them."""

import argparse
import contextlib
import math
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from producers.stop_signal import Stop
from rankstream.operations.answers.curve import curve_label
from rankstream.operations.answers.policies import files_named, policies_of
from rankstream.operations.answers.sources import (
    CountedLog,
    source_of,
    source_of_replay,
)
from rankstream.operations.answers.statistics import left_label
from rankstream.operations.answers.values import (
    WEIGHTS,
    NothingToValue,
    ValueOptions,
    Values,
    range_of,
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
from rankstream.operations.commands.options.curves import (
    add_curve,
    add_estimator,
    whole_number,
)
from rankstream.operations.commands.options.files import add_folded_format
from rankstream.operations.commands.options.folded_log import folded_log
from rankstream.operations.commands.options.log import has_files
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings
from streams.estimation.question import LOGGED
from streams.local import local_settings
from streams.statistics.reader import Statistics

SPARE = ("effective clicks", "largest click", "unseen")
"""Columns that a narrow terminal can do without."""

EPILOG = """examples:
  rankstream evaluate search@1.120000          a version, beside what was logged
  rankstream evaluate search new=rankings.jsonl --against search
  rankstream evaluate rankings.jsonl --local run/ --examination 1,0.6,0.4
  rankstream evaluate rankings.jsonl --log events/ --format jsonl --json

A file has a line for each query:
  {"query_id": "shoes", "items": ["a", "b"]}            always in this order
  {"query_id": "shoes", "items": ["a", "b"], "scores": [1.5, 0.2], "temperature": 1}
                                                        drawn by Plackett-Luce

Nothing is shown to anybody, and nothing is written. docs/evaluate.md says how to
read the table.

exit status: 0 if policies were valued, 1 if there is nothing to value them on
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "policies",
        nargs="+",
        metavar="POLICY",
        help="MODEL (the version that is served), MODEL@EPOCH.VERSION, or a file of "
        "rankings, FILE.jsonl or NAME=FILE.jsonl",
    )
    parser.add_argument(
        "--against",
        default=LOGGED,
        metavar="POLICY",
        help="whom the others are compared with: one of them by its name in the table, "
        "or what was logged",
    )
    add_estimator(parser, of="the values of items")
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default="clicks",
        help="what an item at a rank is worth",
    )
    add_curve(
        parser,
        what="the curve of bias",
        default="that of models.NAME.training, else the newest of --curve",
    )
    parser.add_argument(
        "--ranks",
        type=whole_number,
        default=0,
        metavar="N",
        help="how many items policies show, at most as many as lists of the same "
        "candidates did (default: so many)",
    )
    parser.add_argument(
        "--temperature",
        type=_temperature,
        default=1.0,
        metavar="T",
        help="what scores of models are divided by before lists are drawn; 0: the best "
        "always goes first",
    )
    parser.add_argument(
        "--classes",
        action="store_true",
        help="items whose ids are equal before # count as one, over all queries "
        "(docs/estimators.md)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--local",
        type=Path,
        metavar="DIR",
        help="what `replay --local --out DIR` wrote, instead of Kafka; it has no "
        "features, so rankings alone can be valued",
    )
    source.add_argument(
        "--log",
        nargs="+",
        type=Path,
        metavar="FILE",
        dest="paths",
        help="events in files, or a dump, folded here, instead of Kafka",
    )
    add_folded_format(parser)


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
    statistics = Statistics((change.key, change.value) for change in log.changes())
    snapshots = log.replay.pipeline.snapshots
    return source_of_replay(
        settings,
        statistics,
        log.candidates.items,
        snapshots,
        n_partitions=log.settings.kafka.partitions,
    )


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
    for row in found.rows:
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
        )
    console = wide_console()
    print_fitted(console, table, SPARE)
    curve = question.curve
    label = curve_label(curve.curve, curve.source, curve.ends)
    for remark in (label, *found.remarks()):
        if remark:
            narrow = console if console.width > 80 else Console()
            narrow.print(f"  {remark}", highlight=False)


def _temperature(told: str) -> float:
    try:
        found = float(told)
    except ValueError:
        found = math.nan
    if not 0.0 <= found < math.inf:
        raise argparse.ArgumentTypeError(f"must be a number, 0 or more; got {told}")
    return found
