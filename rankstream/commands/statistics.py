"""`rankstream statistics`: what was shown and clicked, by query, item and rank."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from models.counts.cells import CellSummary
from rankstream.commands.statistics_export import export
from rankstream.settings import load_settings, with_namespace
from rankstream.terminal.counts import counted
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import STATISTICS
from streams.fold.statistics_keys import OPEN_SET, OVERFLOW_SET
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
        return _nothing("there are no statistics yet")
    for path, n_rows in export(statistics, file):
        Console().print(f"{path}: {counted(n_rows, 'row')}", highlight=False)
    return 0


def _list(statistics: Statistics, limit: int) -> int:
    counts = statistics.queries()
    if not counts:
        return _nothing("there are no statistics yet")
    table = Table("query", title=counted(len(counts), "query", "queries"))
    for column in ("impressions", "clicks", "clicks per list"):
        table.add_column(column, justify="right")
    order = sorted(counts, key=lambda query: (-counts[query][0], query))
    for query in order[:limit]:
        shown, clicked = counts[query]
        table.add_row(query, f"{shown:,}", f"{clicked:,}", f"{clicked / shown:.3f}")
    Console().print(table)
    return 0


def _show(statistics: Statistics, query: str, limit: int) -> int:
    merged = statistics.merged(query)
    if not merged:
        return _nothing(
            f"no closed list of the query {query!r}; lists count when their click "
            "window has passed (`statistics list`)"
        )
    console = Console()
    for (candidate_set, intervention), cell in merged.items():
        expected = statistics.exposures(query, candidate_set, intervention, cell)
        title = f"{_set_label(candidate_set)}, intervention {intervention or '-'}"
        console.print(_table_of(cell, expected, title, limit))
    return 0


def _set_label(name: bytes) -> str:
    if name == OPEN_SET:
        return "lists without candidates"
    if name == OVERFLOW_SET:
        return "beyond the limits"
    return f"candidates {name.hex()[:12]}"


def _table_of(
    cell: CellSummary, expected: dict[tuple[str, int], float], title: str, limit: int
) -> Table:
    counts = ", ".join(
        (
            counted(cell.total("impressions"), "list"),
            counted(cell.total("clicks"), "click"),
        )
    )
    table = Table("item", title=title, caption=counts)
    for column in ("rank", "shown", "clicks", "click rate", "expected exposure"):
        table.add_column(column, justify="right")
    shown = {
        (cell.items[item], rank): (n_shown, n_clicked)
        for item, rank, n_shown, n_clicked in cell.pairs[:, :4].tolist()
    }
    places = sorted(
        shown.keys() | expected.keys(),
        key=lambda place: (place[1], -shown.get(place, (0, 0))[0], place[0]),
    )
    for item, rank in places[:limit]:
        n_shown, n_clicked = shown.get((item, rank), (0, 0))
        rate = f"{n_clicked / n_shown:.3f}" if n_shown else "-"
        exposure = expected.get((item, rank))
        table.add_row(
            item,
            str(rank),
            f"{n_shown:,}",
            f"{n_clicked:,}",
            rate,
            "-" if exposure is None else f"{exposure:,.2f}",
        )
    if len(places) > limit:
        table.add_row(f"... {len(places) - limit:,} more")
    return table


def _nothing(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 1
