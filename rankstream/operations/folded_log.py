"""Events in files, or records of the log `events`, folded in this process."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from producers.formats.canonical_dump import read_dump, read_header
from producers.replay import Pace, Replayed, replay
from producers.stop_signal import Stop
from rankstream.operations.answers.sources import CountedLog, source_of_replay
from rankstream.operations.local_replay import LocalReplay, dump_of
from rankstream.operations.recorded_log import (
    Line,
    Lines,
    Reading,
    RecordedLog,
    recorded_events,
)
from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, EVENTS
from streams.local import LocalPipeline
from streams.stage import Output
from streams.training.recorded_inputs import Recorded

AT_ONCE = Pace(None)

Records = Iterable[tuple[int, bytes]]
"""Partitions and values of a log, each partition in its order."""


def fold_recorded(
    log: RecordedLog,
    pipeline: LocalPipeline,
    stop: Stop,
    line: Line,
    *,
    pace: Pace = AT_ONCE,
    ends: bool = True,
) -> bool:
    """Fold events of files; False if stopped before the end.

    Parameters
    ----------
    ends
        Whether all windows are closed at the end.
    """

    def look(state: Replayed) -> None:
        line.show(state.done)

    pipeline.start()
    state = replay(log.events, pipeline, pace=pace, stop=stop, on_look=look)
    if not state.is_complete:
        return False
    if ends:
        pipeline.end()
    pipeline.flush()
    line.show(state.done)
    return True


def fold_records(
    records: Records, topic: str, pipeline: LocalPipeline, stop: Stop, line: Line
) -> bool:
    """Fold records of a log as they are, past ingestion; False if stopped.

    Windows that the log left open stay open.
    """
    pipeline.start_past_ingestion()
    number = 0
    for number, (partition, value) in enumerate(records, 1):
        pipeline.fold_log(topic, partition, value)
        if number % 64 == 0:
            line.show(number)
        if stop.asked:
            return False
    line.show(number)
    return True


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

    def recorded(self) -> Recorded:
        """What was counted, once: as a training reads it."""
        changes = self.replay.pipeline.statistics()
        return Recorded(
            {change.key: change.value for change in changes}, self.candidates
        )

    def source(self, settings: Settings, recorded: Recorded) -> CountedLog:
        """The same as answers take it, under settings that may have more models."""
        return source_of_replay(
            settings,
            recorded.sums(),
            self.candidates.items,
            self.replay.pipeline.snapshots,
            n_partitions=self.settings.kafka.partitions,
        )


def folded_log(
    reading: Reading, settings: Settings, stop: Stop, lines: Lines
) -> FoldedLog | None:
    """Fold files of events, or a dump; None if stopped.

    Parameters
    ----------
    settings
        Their numbers of partitions hold for files of events.

    Raises
    ------
    ValueError
        Where a dump is of another topic, or a file is not what it must be.
    """
    dump = dump_of(reading.log)
    if dump is not None:
        n_partitions = _partitions_of(dump)
        records = read_dump(dump)
        return folded_records(records, n_partitions, settings, stop, lines)
    folded = started_log(settings)
    with recorded_events(reading, stop, lines) as log:
        if log is None:
            return None
        with lines("folding", total=log.n_events) as line:
            is_whole = fold_recorded(log, folded.replay.pipeline, stop, line)
        return folded._replace(names=log.names) if is_whole else None


def folded_records(
    records: Records, n_partitions: int, settings: Settings, stop: Stop, lines: Lines
) -> FoldedLog | None:
    """Fold the records of the log `events`; None if stopped."""
    folded = started_log(settings.with_kafka(partitions=n_partitions))
    with lines("folding", total=None, unit="records") as line:
        is_whole = fold_records(records, EVENTS, folded.replay.pipeline, stop, line)
    return folded if is_whole else None


def started_log(settings: Settings) -> FoldedLog:
    """A pipeline that has folded nothing, and keeps features of candidates."""
    local = LocalReplay(settings)
    candidates: dict[bytes, bytes | None] = {}

    def take(output: Output) -> None:
        if output.topic == CANDIDATES and output.key and output.value:
            candidates[output.key] = output.value

    local.pipeline.show_also(take)
    return FoldedLog(local, candidates, settings, {})


def _partitions_of(dump: Path) -> int:
    """How many the log of a dump had.

    Raises
    ------
    ValueError
        Where it is of another topic than `events`.
    """
    header = read_header(dump)
    if header.topic != EVENTS:
        raise ValueError(
            f"a dump must be one of `{EVENTS}` to be counted; {dump} is of "
            f"`{header.topic}`: `rankstream dump` writes what is needed"
        )
    return header.n_partitions
