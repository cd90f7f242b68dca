"""`rankstream statistics`: what was shown and clicked, by query, item and rank."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from models.estimators.bias_curve import BiasCurve
from rankstream.commands.relevance_tables import (
    NO_CURVE,
    SPARE_OF_RELEVANCE,
    curve_label,
    relevance_table,
)
from rankstream.commands.statistics_curve import curve_of_clicks, curve_told
from rankstream.commands.statistics_export import check_target, export
from rankstream.commands.statistics_scopes import (
    ShownScope,
    Together,
    Wanted,
    chosen,
    shown_scope,
    together,
)
from rankstream.commands.statistics_tables import (
    SPARE_OF_SCOPES,
    directory_of,
    left_label,
    missing_label,
    remarks_on,
    reward_labels,
    scope_title,
    table_of,
)
from rankstream.local_results import statistics_in
from rankstream.relevance import Trust, relevance_of
from rankstream.settings import Settings, load_settings, with_namespace
from rankstream.terminal.counts import counted
from rankstream.terminal.fitted_table import print_fitted, wide_console
from rankstream.terminal.plain_text import plain
from rankstream.wire.routing import normalised_query
from rankstream.wire.topics import STATISTICS
from streams.fold.statistics_keys import Counted, ScopeName
from streams.fold.statistics_reader import Statistics, summaries_of

__all__ = ["SUMMARY", "add_arguments", "run", "summaries_of"]

SUMMARY = "what was counted: show one query, list queries, export"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "examples:\n"
        "  rankstream statistics list --limit 20\n"
        "  rankstream statistics show 'running shoes'\n"
        "  rankstream statistics show 'running shoes' --intervention v2 --by-scope\n"
        "  rankstream statistics export counts.parquet --local run/\n"
        "  rankstream statistics convert --dry-run      after an upgrade, see "
        "docs/upgrading.md\n"
    )
    actions = parser.add_subparsers(dest="action", required=True)
    show = actions.add_parser(
        "show",
        help="every item and rank of one query",
        description="Every item and rank of one query. Where several scopes counted "
        "it (docs/statistics.md), they are listed, and shown together.",
    )
    show.add_argument("query")
    show.add_argument("--limit", type=_rows, default=50, help="rows of each table")
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
    listing = actions.add_parser("list", help="queries, most shown first")
    listing.add_argument("--limit", type=_rows, default=50, help="how many queries")
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
        action.add_argument(
            "--examination",
            metavar="CURVE",
            type=_curve,
            help="what relevance is corrected by: probabilities of looking at ranks 1, "
            "2, ..., such as 1,0.6,0.4, or a JSON file with them or with alpha and "
            "beta; estimated from all clicks if not given",
        )
    for action in (show, listing, writing, converting):
        action.add_argument(
            "--local",
            type=Path,
            metavar="DIR",
            help="what `replay --local --out DIR` wrote, instead of Kafka",
        )


def _curve(told: str) -> BiasCurve:
    try:
        return curve_told(told)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def _rows(told: str) -> int:
    if not told.lstrip("+-").isdecimal() or int(told) < 1:
        raise argparse.ArgumentTypeError(
            f"must be a whole number, 1 or more; got {told}"
        )
    return int(told)


def run(arguments: argparse.Namespace) -> int:
    """Read the statistics and do what was asked; 1 if there are none."""
    if arguments.action == "convert":
        # Nobody else needs the runtime on Kafka.
        from rankstream.commands.statistics_convert import convert  # noqa: PLC0415

        return convert(arguments)
    if arguments.action == "export":
        # Before all of a topic is read.
        check_target(arguments.file)
    # Also beside --local: what is wrong with them would be met later.
    settings = with_namespace(
        load_settings(getattr(arguments, "config", None)),
        getattr(arguments, "namespace", None),
    )
    statistics = Statistics(_records(arguments, settings))
    trust = Trust(frozenset(settings.models))
    if arguments.action == "export":
        curve = arguments.examination or curve_of_clicks(statistics.columns())
        return _export(statistics, arguments.file, curve, trust)
    if arguments.action == "list":
        return _list(statistics, arguments.limit)
    return _show(statistics, arguments, trust)


def _records(
    arguments: argparse.Namespace, settings: Settings
) -> Iterator[tuple[bytes, bytes | None]]:
    if arguments.local is not None:
        # Kafka's client is not loaded for a file, nor the runtime for Kafka.
        from streams.local import read_changes  # noqa: PLC0415

        yield from read_changes(statistics_in(arguments.local))
        return
    from producers.topic_reader import read_topic  # noqa: PLC0415

    for _, _, key, value in read_topic(settings, STATISTICS):
        if key is not None:
            yield key, value


def _export(
    statistics: Statistics, file: Path, curve: BiasCurve | None, trust: Trust
) -> int:
    if statistics.is_empty():
        return _nothing(_label_of_none(statistics))
    for path, n_rows in export(statistics, file, curve, trust):
        Console().print(f"{path}: {counted(n_rows, 'row')}", highlight=False)
    if n_converted := statistics.n_converted():
        Console().print(
            f"{counted(n_converted, 'scope')} converted from an earlier release: their "
            "exposures are left out (flag 8 in the totals)",
            highlight=False,
        )
    for remark in [NO_CURVE] if curve is None else curve.remarks():
        _say(Console(), remark)
    _say(Console(), _missing(statistics, statistics.queries()))
    return 0


def _list(statistics: Statistics, limit: int) -> int:
    counts = statistics.queries()
    if not counts:
        return _nothing(_label_of_none(statistics))
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
    _say(console, left_label(statistics))
    _say(console, _missing(statistics, counts))
    return 0


def _show(statistics: Statistics, arguments: argparse.Namespace, trust: Trust) -> int:
    query = normalised_query(arguments.query)
    scopes = statistics.scopes(query)
    left = left_label(statistics)
    n_headless = statistics.n_headless(query)
    missing = missing_label(n_headless, "head of a scope", "heads of scopes")
    if not scopes:
        return _nothing(
            f"no closed list of the query {query!r}; lists count when their click "
            f"window has passed (`statistics list`){left and '; '}{left}"
            f"{missing and '; '}{missing}"
        )
    settings = statistics.counted[0] if statistics.counted else None
    wanted = Wanted(arguments.candidates, arguments.intervention, arguments.era)
    names = chosen(scopes, wanted, settings)
    if not names:
        asked = [
            f"--{name} {value!r}"
            for name, value in wanted._asdict().items()
            if value is not None
        ]
        return _nothing(
            f"none of the {counted(len(scopes), 'scope')} of the query {query!r} is "
            f"of {' and '.join(asked)}; without {'it' if len(asked) == 1 else 'them'} "
            "all are listed"
        )
    console = wide_console()
    found = [shown_scope(statistics, name) for name in names]
    if len(found) > 1 and not arguments.by_scope:
        several = f"{len(found):,} of " if len(found) < len(scopes) else ""
        title = f"{several}{counted(len(scopes), 'scope')} of {plain(query)}"
        directory = directory_of(found, title, settings, arguments.limit)
        print_fitted(console, directory, SPARE_OF_SCOPES)
        _tell(console, together(found), "all of these together", settings, arguments)
        console.print("--by-scope shows each; --intervention, --era, --candidates some")
    else:
        for one in found:
            _tell(console, one, scope_title(one.name, settings), settings, arguments)
    _tell_relevance(console, statistics, query, names, (arguments, trust))
    _say(console, left)
    _say(console, missing)
    return 0


def _tell_relevance(
    console: Console,
    statistics: Statistics,
    query: str,
    names: Sequence[ScopeName],
    how: tuple[argparse.Namespace, Trust],
) -> None:
    """The items of all these scopes together, corrected for where they stood."""
    arguments, trust = how
    curve = arguments.examination or curve_of_clicks(statistics.columns())
    if curve is None or not statistics.counted:
        console.print(NO_CURVE, highlight=False)
        return
    wanted = set(names)
    columns = statistics.columns([query], is_wanted=lambda name: name in wanted)
    found = relevance_of(columns, curve, statistics.counted[0].groups, trust)
    source = "given" if arguments.examination else "estimated from all clicks"
    table = relevance_table(found, arguments.limit)
    print_fitted(console, table, SPARE_OF_RELEVANCE)
    for remark in (curve_label(curve, source), found.warning, *found.remarks):
        _say(console, remark and f"  {remark}")


def _tell(
    console: Console,
    found: ShownScope | Together,
    title: str,
    settings: Counted | None,
    arguments: argparse.Namespace,
) -> None:
    _, rate = reward_labels(settings)
    print_fitted(console, table_of(found, title, settings, arguments.limit), [rate])
    for remark in remarks_on(found):
        console.print(f"  {remark}", highlight=False)


def _missing(statistics: Statistics, queries: Mapping[str, tuple[int, int]]) -> str:
    return missing_label(
        statistics.n_missing(queries),
        "interaction that was counted",
        "interactions that were counted",
    )


def _label_of_none(statistics: Statistics) -> str:
    missing = _missing(statistics, {})
    return missing or left_label(statistics) or "there are no statistics yet"


def _say(console: Console, label: str) -> None:
    if label:
        console.print(label, highlight=False)


def _nothing(reason: str) -> int:
    sys.stderr.write(f"{reason}\n")
    return 1
