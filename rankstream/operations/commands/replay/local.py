"""`rankstream replay --local`: the same folds in this process, without Kafka."""

import argparse
import gc
from pathlib import Path

from rich.console import Console
from rich.table import Table

from producers.formats.canonical_dump import read_dump, read_header
from producers.replay import Pace
from producers.stop_signal import Stop
from rankstream.operations.answers.sent import Folded
from rankstream.operations.answers.statistics import left_label
from rankstream.operations.commands import STOPPED, tell, write_json
from rankstream.operations.folded_log import fold_recorded, fold_records
from rankstream.operations.local_replay import LocalReplay, write_results
from rankstream.operations.recorded_log import RecordedLog
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS
from streams.local import local_settings
from streams.statistics.reader import Statistics

NOT_COUNTED_AGAIN = (
    "`rankstream recount` cannot check these: it counts the log `events` again, and "
    "a replay of files of other formats keeps none"
)


def replay_events(
    log: RecordedLog,
    arguments: argparse.Namespace,
    settings: Settings,
    pace: Pace,
    stop: Stop,
) -> int:
    """Pass input events through every stage; 130 if stopped, and nothing written."""
    local = LocalReplay(local_settings(settings))
    # Nothing here is in cycles.
    gc.set_threshold(100_000, 50, 1_000)
    ends = not arguments.no_end
    with ProgressLine("folding", total=log.n_events) as line:
        is_whole = fold_recorded(log, local.pipeline, stop, line, pace=pace, ends=ends)
    if not is_whole:
        return _stopped()
    _conclude(local, line, "events", arguments)
    if arguments.out is not None:
        Console(quiet=arguments.json).print(NOT_COUNTED_AGAIN, highlight=False)
    lost, lacks = local.told_of_lost(), local.lacks()
    if lost:
        tell(lost)
    if lacks:
        tell(f"no {lacks} was applied: what was counted tells nothing")
    return 1 if lacks or (lost and arguments.strict) else 0


def replay_dump(
    file: Path, settings: Settings, arguments: argparse.Namespace, stop: Stop
) -> int:
    """Fold a dump; 130 if stopped, and nothing written.

    Gives the statistics (a dump of `events`) or the snapshots (a dump of
    `interactions`) byte for byte as the workers gave them.
    """
    topic, n_partitions = read_header(file)
    name = "partitions" if topic == EVENTS else "learner_partitions"
    local = LocalReplay(local_settings(settings).with_kafka(**{name: n_partitions}))
    with ProgressLine("folding", total=None, unit="records") as line:
        is_whole = fold_records(read_dump(file), topic, local.pipeline, stop, line)
    if not is_whole:
        return _stopped()
    _conclude(local, line, "records", arguments)
    return 0


def _stopped() -> int:
    tell("stopped; nothing was written")
    return STOPPED


def _conclude(
    local: LocalReplay, line: ProgressLine, what: str, arguments: argparse.Namespace
) -> None:
    changes = list(local.pipeline.statistics())
    statistics = Statistics((change.key, change.value) for change in changes)
    clicked = sum(clicks for _, clicks in statistics.queries().values())
    console = Console(quiet=arguments.json)
    console.print(table_of(local, clicked))
    left = left_label(statistics)
    if left:
        console.print(left, highlight=False)
    console.print(f"{line.mean_rate():,.0f} {what} a second", highlight=False)
    files = {}
    if arguments.out is not None:
        for path, n_values in write_results(local.pipeline, changes, arguments.out):
            files[str(path)] = n_values
            console.print(f"{path}: {n_values:,} values", highlight=False)
    if arguments.json:
        letters = {f"{x}: {code}": n for (x, code), n in sorted(local.letters.items())}
        n_events, outcomes = local.counters()["consumed"], dict(local.outcomes())
        write_json(Folded(n_events, outcomes, letters, clicked, files).to_dict())


def table_of(local: LocalReplay, clicked: int) -> Table:
    """What became of the events, and why letters died."""
    table = Table("outcome", title="events by outcome", title_justify="left")
    table.add_column("events", justify="right")
    for name, count in local.outcomes():
        table.add_row(name, f"{count:,}")
    table.add_section()
    table.add_row("all", f"{local.counters()['consumed']:,}")
    table.add_row("clicked (repeats once)", f"{clicked:,}")
    if local.letters:
        table.add_section()
    for (topic, code), count in sorted(local.letters.items()):
        table.add_row(f"{topic}: {code}", f"{count:,}")
    return table
