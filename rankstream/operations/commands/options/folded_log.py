"""Events in files, or a dump of `events`, folded in this process."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from producers.formats.canonical_dump import read_dump, read_header
from producers.replay import Pace, Replayed, replay
from producers.stop_signal import Stop
from rankstream.operations.commands.options.log import log_asked
from rankstream.operations.commands.options.recorded_log import (
    RecordedLog,
    recorded_events,
)
from rankstream.operations.local_replay import LocalReplay, dump_of
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, EVENTS
from streams.local import LocalPipeline
from streams.stage import Change, Output

AT_ONCE = Pace(None)


def fold_recorded(
    log: RecordedLog,
    pipeline: LocalPipeline,
    stop: Stop,
    *,
    pace: Pace = AT_ONCE,
    ends: bool = True,
) -> ProgressLine | None:
    """Fold events of files; the line that told of it, None if stopped before the end.

    Parameters
    ----------
    ends
        Whether all windows are closed at the end.
    """

    def look(state: Replayed) -> None:
        line.show(state.done)

    pipeline.start()
    with ProgressLine("folding", total=log.n_events) as line:
        state = replay(log.events, pipeline, pace=pace, stop=stop, on_look=look)
        if not state.is_complete:
            return None
        if ends:
            pipeline.end()
        pipeline.flush()
        line.show(state.done)
    return line


def fold_dump(
    dump: Path, topic: str, pipeline: LocalPipeline, stop: Stop
) -> ProgressLine | None:
    """Fold the records of a dump as they are, past ingestion; as `fold_recorded`.

    Windows that the log left open stay open.
    """
    pipeline.start_past_ingestion()
    number = 0
    with ProgressLine("folding", total=None, unit="records") as line:
        for number, (partition, value) in enumerate(read_dump(dump), 1):
            pipeline.fold_log(topic, partition, value)
            if number % 64 == 0:
                line.show(number)
            if stop.asked:
                return None
        line.show(number)
    return line


def fold_events(
    arguments: argparse.Namespace, pipeline: LocalPipeline, stop: Stop
) -> RecordedLog | None:
    """Fold all that a command names, all windows at the end; None if stopped before."""
    with recorded_events(arguments, stop) as log:
        if log is None or fold_recorded(log, pipeline, stop) is None:
            return None
        return log


class FoldedLog(NamedTuple):
    """What a log gave.

    Parameters
    ----------
    replay
        The pipeline, and what became of the events.
    candidates
        Values of `candidates` by their keys; those that left as well, as statistics of
        a moment ago still ask for them.
    settings
        Those that it was folded under: of a dump with its number of partitions.
    names
        Names of features by the hash of their list, where files have them.
    """

    replay: LocalReplay
    candidates: dict[bytes, bytes | None]
    settings: Settings
    names: dict[bytes, list[str]]

    def changes(self) -> Iterable[Change]:
        """The statistics, once."""
        return self.replay.pipeline.statistics()


def folded_log(
    arguments: argparse.Namespace, settings: Settings, stop: Stop
) -> FoldedLog | None:
    """Fold the files that a command names; None if stopped.

    Parameters
    ----------
    settings
        Their numbers of partitions hold for files of events.

    Raises
    ------
    ValueError
        Where a dump is of another topic, or a file is not what it must be.
    """
    dump = dump_of(log_asked(arguments))
    if dump is not None:
        header = read_header(dump)
        if header.topic != EVENTS:
            raise ValueError(
                f"a dump must be one of `{EVENTS}` to be counted; {dump} is of "
                f"`{header.topic}`: `rankstream dump` writes what is needed"
            )
        settings = settings.with_kafka(partitions=header.n_partitions)
    local = LocalReplay(settings)
    candidates: dict[bytes, bytes | None] = {}

    def take(output: Output) -> None:
        if output.topic == CANDIDATES and output.key and output.value:
            candidates[output.key] = output.value

    local.pipeline.show_also(take)
    if dump is not None:
        is_whole = fold_dump(dump, EVENTS, local.pipeline, stop) is not None
        names: dict[bytes, list[str]] = {}
    else:
        log = fold_events(arguments, local.pipeline, stop)
        is_whole, names = log is not None, log.names if log else {}
    return FoldedLog(local, candidates, settings, names) if is_whole else None
