"""`rankstream statistics`: what was shown and clicked, by query, item and rank."""

import argparse
from collections.abc import Iterator, Mapping
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rankstream.operations.answers.curve import NO_CURVE, curve_for
from rankstream.operations.answers.export import check_target, export
from rankstream.operations.answers.relevance import beyond_label
from rankstream.operations.answers.sources import CountedLog, source_of
from rankstream.operations.answers.statistics import left_label, missing_label
from rankstream.operations.commands import nothing, settings_of
from rankstream.operations.commands.options.curves import (
    add_curve,
    add_estimator,
    whole_number,
)
from rankstream.operations.commands.options.query import add_query
from rankstream.operations.commands.statistics.actions import (
    add_options,
    show_actions,
)
from rankstream.operations.commands.statistics.show import show
from rankstream.operations.commands.statistics.tables import reward_labels, say
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from streams.statistics.reader import Statistics


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.epilog = (
        "examples:\n"
        "  rankstream statistics list --limit 20\n"
        "  rankstream statistics show 'running shoes'\n"
        "  rankstream statistics show 'running shoes' --intervention v2 --by-scope\n"
        "  rankstream statistics actions shoes --segment NL\n"
        "  rankstream statistics export counts.parquet --local run/\n"
        "  rankstream statistics convert --dry-run      after an upgrade, see "
        "docs/upgrading.md\n\n"
        "exit status: 1 where nothing was counted, or where clicks tell no curve to "
        "correct\nrelevance by: counts are there all the same, and --examination is "
        "the remedy\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser(
        "show",
        help="every item and rank of one query",
        description="Every item and rank of one query. Where several scopes counted "
        "it (docs/statistics.md), they are listed, and shown together.",
    )
    add_query(show)
    show.add_argument(
        "--limit", type=whole_number, default=50, help="rows of each table"
    )
    show.add_argument(
        "--by-scope", action="store_true", help="a table of each scope instead"
    )
    show.add_argument(
        "--intervention", metavar="NAME", help="only this one; '' for lists without"
    )
    show.add_argument(
        "--era", metavar="N|DAY", help="only this one, or those of a day (2025-09-09)"
    )
    show.add_argument(
        "--candidates", metavar="HEX", help="only sets whose name begins so"
    )
    show.add_argument(
        "--classes",
        action="store_true",
        help="relevance of items whose ids are equal before # together, and the curve "
        "from these (docs/estimators.md)",
    )
    listing = actions.add_parser("list", help="queries, most shown first")
    listing.add_argument(
        "--limit", type=whole_number, default=50, help="how many queries"
    )
    earning = actions.add_parser(
        "actions",
        help="what each action of a context earns, of lists of one item",
        description="What each action of a context earns: a list of one item is an "
        "action, a query with its candidates the context, a click the reward "
        "(docs/decisions.md).",
    )
    add_query(earning, is_needed=False)
    add_options(earning)
    writing = actions.add_parser(
        "export",
        help="write Parquet, one row per counter",
        description="Write Parquet: the file that is named has a row for each item and "
        "rank; its siblings have the rest. docs/statistics.md has all columns.",
    )
    writing.add_argument("file", type=Path)
    converting = actions.add_parser(
        "convert",
        help="make statistics of the release before scopes those of this one",
        description="Make statistics of the release before scopes those of this one. "
        "Stop all workers first (docs/upgrading.md). On Kafka a partition is converted "
        "in one transaction. With --local the file is replaced, and what it held is "
        "kept beside it as statistics.bin.schema1. Nothing happens where all is of "
        "this release.",
    )
    converting.add_argument(
        "--dry-run", action="store_true", help="say what it would do, and do nothing"
    )
    for action in (show, writing):
        add_curve(
            action,
            what="what relevance is corrected by",
            default="the newest of --curve",
        )
        add_estimator(action, of="relevance")
    for action in (show, listing, earning, writing, converting):
        action.add_argument(
            "--local",
            type=Path,
            metavar="DIR",
            help="what `replay --local --out DIR` wrote, instead of Kafka",
        )


def run(arguments: argparse.Namespace) -> int:
    """Read the statistics and do what was asked; 1 if there are none, or no curve."""
    if arguments.action == "export":
        # Before all of a topic is read.
        check_target(arguments.file)
    # Also beside --local: what is wrong with them would be met later.
    settings = settings_of(arguments)
    if arguments.action == "convert":
        # Nobody else needs the runtime on Kafka.
        from rankstream.operations.commands.statistics.convert import convert  # noqa: PLC0415

        return convert(settings, arguments)
    source = source_of(settings, arguments.local)
    if arguments.action == "list":
        return _list(source.statistics, arguments.limit)
    return _ANSWERS[arguments.action](source, arguments)


def _export(source: CountedLog, arguments: argparse.Namespace) -> int:
    statistics = source.statistics
    if statistics.is_empty():
        return nothing(_label_of_none(statistics))
    found = curve_for(source, given=arguments.examination, model=arguments.curve)
    curve = found.curve
    written = export(
        statistics, arguments.file, curve, source.policies, arguments.estimator
    )
    for path, n_rows in written.files:
        Console().print(f"{path}: {counted(n_rows, 'row')}", highlight=False)
    if written.n_converted:
        Console().print(
            f"{counted(written.n_converted, 'scope')} converted from an earlier "
            "release: their exposures are left out (flag 8 in the totals)",
            highlight=False,
        )
    if curve is not None:
        chosen = _chosen(written.chosen)
        for remark in (*found.said(), *curve.remarks(), *chosen):
            say(Console(), remark)
        if written.n_beyond:
            say(Console(), beyond_label(curve, written.n_beyond))
    say(Console(), _missing(statistics, written.n_impressions))
    return nothing(NO_CURVE) if curve is None else 0


def _chosen(chosen: Mapping[str, int]) -> Iterator[str]:
    """How relevance was estimated, of how many queries."""
    for said, n_queries in chosen.items():
        yield f"relevance of {counted(n_queries, 'query', 'queries')} {said}"


def _list(statistics: Statistics, limit: int) -> int:
    counts = statistics.queries()
    if not counts:
        return nothing(_label_of_none(statistics))
    table = Table(title=counted(len(counts), "query", "queries"))
    table.add_column("query", overflow="fold")
    clicks, _ = reward_labels(statistics.counted[0] if statistics.counted else None)
    rate_header = f"{clicks} per list"
    for column in ("impressions", clicks, rate_header):
        table.add_column(column, justify="right", no_wrap=True)
    order = sorted(counts, key=lambda query: (-counts[query][0], query))
    for query in order[:limit]:
        shown, clicked = counts[query]
        rate = f"{clicked / shown:.3f}"
        table.add_row(plain(query), f"{shown:,}", f"{clicked:,}", rate)
    console = wide_console()
    print_fitted(console, table, [rate_header])
    say(console, left_label(statistics))
    n_impressions = sum(shown for shown, _ in counts.values())
    say(console, _missing(statistics, n_impressions))
    return 0


def _missing(statistics: Statistics, n_impressions: int) -> str:
    return missing_label(
        statistics.n_missing(n_impressions),
        "interaction that was counted",
        "interactions that were counted",
    )


_ANSWERS = {"actions": show_actions, "export": _export, "show": show}


def _label_of_none(statistics: Statistics) -> str:
    missing = _missing(statistics, 0)
    return missing or left_label(statistics) or "there are no statistics yet"
