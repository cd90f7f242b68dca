"""What `rankstream statistics` does: read what was counted, and print it."""

import argparse
from collections.abc import Iterator, Mapping

from rich.console import Console
from rich.table import Table

from rankstream.configuration.counting import CLICK
from rankstream.operations.answers.curve import NO_CURVE, CurveOfBias, curve_for
from rankstream.operations.answers.exports.export import (
    RECORDS_SUFFIX,
    Exported,
    check_target,
    export,
)
from rankstream.operations.answers.relevance import beyond_label
from rankstream.operations.answers.sources import (
    CountedLog,
    counted_records,
    source_of,
)
from rankstream.operations.answers.statistics import (
    CountedQueries,
    CountedQuery,
    WrittenStatistics,
    left_label,
    missing_label,
)
from rankstream.operations.commands import nothing, settings_of, write_json
from rankstream.operations.commands.statistics.actions import (
    show_actions,
)
from rankstream.operations.commands.statistics.graded import (
    check_asked,
    export_graded,
)
from rankstream.operations.commands.statistics.show import show
from rankstream.operations.commands.statistics.tables import reward_labels, say
from rankstream.operations.terminal.fitted_table import print_fitted, wide_console
from rankstream.operations.terminal.words import counted, plain
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from streams.local import write_changes
from streams.stage import Change
from streams.statistics.reader import Statistics


def run(arguments: argparse.Namespace) -> int:
    """Read the statistics and do what was asked; 1 if there are none, or no curve."""
    if arguments.action == "export":
        # Before all of a topic is read.
        if arguments.to == "parquet":
            check_target(arguments.file)
        else:
            check_asked(arguments)
    # Also beside --local: what is wrong with them would be met later.
    settings = settings_of(arguments)
    if arguments.action == "convert":
        # Nobody else needs the runtime on Kafka.
        from rankstream.operations.commands.statistics.convert import convert  # noqa: PLC0415

        return convert(settings, arguments)
    if arguments.action == "export" and arguments.file.suffix == RECORDS_SUFFIX:
        return _export_records(settings, arguments)
    source = source_of(settings, arguments.local)
    if arguments.action == "list":
        return _list(source.statistics, arguments)
    return _ANSWERS[arguments.action](source, arguments)


def _export_records(settings: Settings, arguments: argparse.Namespace) -> int:
    records = counted_records(settings, arguments.local)
    changes = (Change(STATISTICS, key, value) for key, value in records)
    n = write_changes(arguments.file, changes)
    if not n:
        return nothing("there are no statistics yet")
    if arguments.json:
        write_json(WrittenStatistics({str(arguments.file): n}, False).to_dict())
    else:
        line = f"{arguments.file}: {counted(n, 'record')}, for `rankstream train`"
        Console().print(line, highlight=False, markup=False)
    return 0


def _export(source: CountedLog, arguments: argparse.Namespace) -> int:
    statistics = source.statistics
    if statistics.is_empty():
        return nothing(_label_of_none(statistics))
    if arguments.to != "parquet":
        return export_graded(source, arguments)
    found = curve_for(source, given=arguments.examination, model=arguments.curve)
    curve = found.curve
    written = export(
        statistics, arguments.file, curve, source.policies, arguments.estimator
    )
    if arguments.json:
        files = {str(path): n_rows for path, n_rows in written.files}
        write_json(WrittenStatistics(files, curve is not None).to_dict())
    else:
        _tell_written(written, found, statistics)
    return nothing(NO_CURVE) if curve is None else 0


def _tell_written(
    written: Exported, found: CurveOfBias, statistics: Statistics
) -> None:
    curve = found.curve
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


def _chosen(chosen: Mapping[str, int]) -> Iterator[str]:
    """How relevance was estimated, of how many queries."""
    for said, n_queries in chosen.items():
        yield f"relevance of {counted(n_queries, 'query', 'queries')} {said}"


def _list(statistics: Statistics, arguments: argparse.Namespace) -> int:
    counts = statistics.queries()
    if not counts:
        return nothing(_label_of_none(statistics))
    order = sorted(counts, key=lambda query: (-counts[query][0], query))
    listed = [CountedQuery(query, *counts[query]) for query in order[: arguments.limit]]
    if arguments.json:
        known = statistics.counted[0].reward if statistics.counted else CLICK
        write_json(CountedQueries(len(counts), known, listed).to_dict())
        return 0
    table = Table(title=counted(len(counts), "query", "queries"))
    table.add_column("query", overflow="fold")
    clicks, _ = reward_labels(statistics.counted[0] if statistics.counted else None)
    rate_header = f"{clicks} per list"
    for column in ("impressions", clicks, rate_header):
        table.add_column(column, justify="right", no_wrap=True)
    for each in listed:
        rate = f"{each.clicks / each.impressions:.3f}"
        row = f"{each.impressions:,}", f"{each.clicks:,}", rate
        table.add_row(plain(each.query), *row)
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
