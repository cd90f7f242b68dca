"""`rankstream statistics`: what was shown and clicked, by query, item and rank."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from rankstream.commands.statistics_export import export
from rankstream.commands.statistics_tables import (
    left_label,
    reward_labels,
    shown_scope,
    table_of,
)
from rankstream.settings import load_settings, with_namespace
from rankstream.terminal.counts import counted
from rankstream.terminal.plain_text import plain
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import STATISTICS
from streams.fold.statistics_reader import Statistics, summaries_of

__all__ = ["SUMMARY", "add_arguments", "run", "summaries_of"]

SUMMARY = "what was counted: show one query, list queries, export"

LOCAL_FILE = "statistics.bin"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream statistics list --limit 20\n"
        "  rankstream statistics show 'running shoes'\n"
        "  rankstream statistics export counts.parquet --local run/\n"
        "  rankstream statistics convert --dry-run      after an upgrade, see "
        "docs/upgrading.md\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser("show", help="every item and rank of one query")
    show.add_argument("query")
    show.add_argument("--limit", type=int, default=50, help="rows of each table")
    listing = actions.add_parser("list", help="queries, most shown first")
    listing.add_argument("--limit", type=int, default=50, help="how many queries")
    writing = actions.add_parser("export", help="write Parquet, one row per counter")
    writing.add_argument("file", type=Path)
    converting = actions.add_parser(
        "convert", help="make statistics of the release before scopes those of this one"
    )
    converting.add_argument(
        "--dry-run", action="store_true", help="say what it would do, and do nothing"
    )
    for action in (show, listing, writing, converting):
        action.add_argument(
            "--local",
            type=Path,
            metavar="DIR",
            help="what `replay --local --out DIR` wrote, instead of Kafka",
        )


def run(arguments: argparse.Namespace) -> int:
    """Read the statistics and do what was asked; 1 if there are none."""
    if arguments.action == "convert":
        # Nobody else needs the runtime on Kafka.
        from rankstream.commands.statistics_convert import convert  # noqa: PLC0415

        return convert(arguments)
    statistics = Statistics(_records(arguments))
    if arguments.action == "export":
        return _export(statistics, arguments.file)
    if arguments.action == "list":
        return _list(statistics, arguments.limit)
    return _show(statistics, normalised_query(arguments.query), arguments.limit)


def _records(arguments: argparse.Namespace) -> Iterator[tuple[bytes, bytes | None]]:
    if arguments.local is not None:
        # Kafka's client is not loaded for a file, nor the runtime for Kafka.
        from streams.local import read_changes  # noqa: PLC0415

        file = arguments.local / LOCAL_FILE
        if not file.exists():
            raise ValueError(
                "--local must be a folder that `rankstream replay --local` wrote; "
                f"{file} is not there"
            )
        yield from read_changes(file)
        return
    from producers.topic_reader import read_topic  # noqa: PLC0415

    settings = with_namespace(
        load_settings(getattr(arguments, "config", None)),
        getattr(arguments, "namespace", None),
    )
    for _, _, key, value in read_topic(settings, STATISTICS):
        if key is not None:
            yield key, value


def _export(statistics: Statistics, file: Path) -> int:
    if not len(statistics):
        return _nothing(left_label(statistics) or "there are no statistics yet")
    for path, n_rows in export(statistics, file):
        Console().print(f"{path}: {counted(n_rows, 'row')}", highlight=False)
    return 0


def _list(statistics: Statistics, limit: int) -> int:
    counts = statistics.queries()
    if not counts:
        return _nothing(left_label(statistics) or "there are no statistics yet")
    table = Table(title=counted(len(counts), "query", "queries"))
    table.add_column("query", overflow="fold")
    clicks, _ = reward_labels(statistics.counted[0] if statistics.counted else None)
    for column in ("impressions", clicks, f"{clicks} per list"):
        table.add_column(column, justify="right")
    order = sorted(counts, key=lambda query: (-counts[query][0], query))
    for query in order[:limit]:
        shown, clicked = counts[query]
        rate = f"{clicked / shown:.3f}"
        table.add_row(plain(query), f"{shown:,}", f"{clicked:,}", rate)
    console = Console()
    console.print(table)
    _say_left(statistics, console)
    return 0


def _show(statistics: Statistics, query: str, limit: int) -> int:
    scopes = statistics.scopes(query)
    if not scopes:
        left = left_label(statistics)
        return _nothing(
            f"no closed list of the query {query!r}; lists count when their click "
            f"window has passed (`statistics list`){left and '; '}{left}"
        )
    console = Console()
    settings = statistics.counted[0] if statistics.counted else None
    for name in scopes:
        table, remarks = table_of(shown_scope(statistics, name), settings, limit)
        console.print(table)
        for remark in remarks:
            console.print(f"  {remark}", highlight=False)
    _say_left(statistics, console)
    return 0


def _say_left(statistics: Statistics, console: Console) -> None:
    left = left_label(statistics)
    if left:
        console.print(left, highlight=False)


def _nothing(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 1
