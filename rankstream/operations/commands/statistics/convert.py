"""`rankstream statistics convert`: statistics of the release before scopes."""

import argparse
import datetime
import sys

from rich.console import Console

from producers.readiness import Waiting, wait_for_kafka
from rankstream.operations.answers.folders import statistics_in
from rankstream.operations.answers.statistics import ConvertedPart
from rankstream.operations.commands import write_json
from rankstream.operations.conversion.local_file import KEPT, convert_file
from rankstream.operations.conversion.scopes import Report
from rankstream.operations.conversion.topics import convert_topics
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS


def convert(settings: Settings, arguments: argparse.Namespace) -> int:
    """Convert what is of before; 0 also where nothing is.

    Raises
    ------
    ConversionRefused, LogRefused
        Where it cannot be, with the remedy.
    """
    found: list[tuple[str, Report | None]] = []
    if arguments.local is not None:
        file = statistics_in(arguments.local)
        report = convert_file(file, settings, is_trial=arguments.dry_run)
        found.append((str(file), report))
        kept = f"{file}{KEPT}" if report is not None else ""
    else:
        found += _converted_on_kafka(settings, is_trial=arguments.dry_run)
        kept = ""
    if arguments.json:
        write_json([_part(place, x).to_dict() for place, x in found if x is not None])
    else:
        _tell(found, settings, kept, is_trial=arguments.dry_run)
    return 0


def _part(place: str, report: Report) -> ConvertedPart:
    counts = report.n_cells, report.n_scopes, report.n_impressions, report.n_clicks
    return ConvertedPart(place, *counts, report.n_rows, report.leaves_ms)


def _converted_on_kafka(
    settings: Settings, *, is_trial: bool
) -> list[tuple[str, Report | None]]:
    found: list[tuple[str, Report | None]] = []
    wait_for_kafka(settings.kafka, Waiting())
    total = settings.kafka.partitions
    with ProgressLine("converting", total=total, unit="partitions") as line:

        def take(partition: int, report: Report | None) -> None:
            found.append((f"{STATISTICS}[{partition}]", report))
            line.show(len(found))

        convert_topics(settings, is_trial=is_trial, on_done=take)
    return found


def _tell(
    found: list[tuple[str, Report | None]],
    settings: Settings,
    kept: str,
    *,
    is_trial: bool,
) -> None:
    console = Console(soft_wrap=True, highlight=False, markup=False)
    for place, report in found:
        told = "nothing of before" if report is None else _sentence(report)
        console.print(f"{place}: {told}")
    reports = [report for _, report in found if report is not None]
    if not reports:
        return
    n_masks = sum(report.n_masks for report in reports)
    if n_masks:
        console.print(
            f"{counted(n_masks, 'record')} of list masks left out: their lists are "
            "counted in the pairs"
        )
    for leaves_ms in sorted({each.leaves_ms for each in reports if each.n_scopes}):
        leaves = datetime.datetime.fromtimestamp(leaves_ms / 1_000, datetime.UTC)
        console.print(f"what is converted leaves on {leaves:%Y-%m-%d} (event time)")
    if settings.statistics.actions:
        console.print("until then clicks include every action, as they did before")
    if kept:
        console.print(f"what the file held is kept as {kept}")
    if is_trial:
        sys.stdout.write("dry run: nothing was changed\n")


def _sentence(report: Report) -> str:
    return ", ".join(
        (
            f"{counted(report.n_cells, 'cell')} in {counted(report.n_scopes, 'scope')}",
            counted(report.n_impressions, "impression"),
            counted(report.n_clicks, "click"),
            counted(report.n_rows, "exposure row"),
        )
    )
