"""`rankstream replay --local`: the same folds in this process, without Kafka."""

import argparse
import gc
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from producers.formats.canonical_dump import read_dump, read_header
from producers.replay import Pace, Replayed, replay
from producers.stop_signal import Stop
from rankstream.operations.answers.statistics import left_label
from rankstream.operations.commands import STOPPED, tell
from rankstream.operations.commands.options.recorded_log import RecordedLog
from rankstream.operations.local_replay import LocalReplay, write_results
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
    local.pipeline.start()
    # Nothing here is in cycles.
    gc.set_threshold(100_000, 50, 1_000)
    with ProgressLine("folding", total=log.n_events) as line:

        def look(state: Replayed) -> None:
            line.show(state.done)

        state = replay(log.events, local.pipeline, pace=pace, stop=stop, on_look=look)
        if not state.is_complete:
            return _stopped()
        if not arguments.no_end:
            local.pipeline.end()
        local.pipeline.flush()
        line.show(state.done)
    status = _conclude(local, line, "events", arguments.out)
    if arguments.out is not None:
        Console().print(NOT_COUNTED_AGAIN, highlight=False)
    lost = local.told_of_lost()
    if lost:
        tell(lost)
    return 1 if lost and arguments.strict else status


def fold_dump(
    file: Path, settings: Settings, *, stop: Stop, out: Path | None = None
) -> int:
    """Fold the records of a dump as they are, past ingestion; 130 if stopped.

    Gives the statistics (a dump of `events`) or the snapshots (a dump of
    `interactions`) byte for byte as the workers gave them. Windows that the log
    left open stay open.
    """
    header = read_header(file)
    is_events = header.topic == EVENTS
    name = "partitions" if is_events else "learner_partitions"
    own = local_settings(settings)
    kafka = msgspec.structs.replace(own.kafka, **{name: header.n_partitions})
    local = LocalReplay(msgspec.structs.replace(own, kafka=kafka))
    local.pipeline.start_past_ingestion()
    number = 0
    with ProgressLine("folding", total=None) as line:
        for number, (partition, value) in enumerate(read_dump(file), 1):
            local.pipeline.fold_log(header.topic, partition, value)
            if number % 64 == 0:
                line.show(number)
            if stop.asked:
                return _stopped()
        line.show(number)
    return _conclude(local, line, "records", out)


def _stopped() -> int:
    tell("stopped; nothing was written")
    return STOPPED


def _conclude(
    local: LocalReplay, line: ProgressLine, what: str, out: Path | None
) -> int:
    changes = list(local.pipeline.statistics())
    statistics = Statistics((change.key, change.value) for change in changes)
    clicked = sum(clicks for _, clicks in statistics.queries().values())
    console = Console()
    console.print(table_of(local, clicked))
    left = left_label(statistics)
    if left:
        console.print(left, highlight=False)
    console.print(f"{line.mean_rate():,.0f} {what} a second", highlight=False)
    if out is not None:
        for path, n_values in write_results(local.pipeline, changes, out):
            console.print(f"{path}: {n_values:,} values", highlight=False)
    return 0


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
