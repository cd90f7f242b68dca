"""Events in files, or a dump of `events`, folded in this process."""

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec

from producers.formats.canonical_dump import read_dump, read_header
from producers.replay import Pace, replay
from producers.stop_signal import Stop
from rankstream.operations.commands.options.log import log_asked
from rankstream.operations.commands.options.recorded_log import recorded_events
from rankstream.operations.local_replay import LocalReplay, dump_of
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, EVENTS
from streams.stage import Change, Output


def fold_events(
    arguments: argparse.Namespace,
    local: LocalReplay,
    stop: Stop,
    names: dict[bytes, list[str]] | None = None,
) -> bool:
    """Fold all of them, all windows at the end; whether it was not stopped before.

    Parameters
    ----------
    names
        Takes names of features by the hash of their list, where files have them.
    """
    with recorded_events(arguments, stop) as events:
        if events is None:
            return False
        if names is not None:
            names.update(events.names)
        local.pipeline.start()
        with ProgressLine("folding", total=events.n_events) as line:
            state = replay(
                events.events,
                local.pipeline,
                pace=Pace(None),
                stop=stop,
                on_look=lambda state: line.show(state.done),
            )
        if state.is_complete:
            local.pipeline.end()
            local.pipeline.flush()
        return state.is_complete


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
        kafka = msgspec.structs.replace(settings.kafka, partitions=header.n_partitions)
        settings = msgspec.structs.replace(settings, kafka=kafka)
    replay = LocalReplay(settings)
    candidates: dict[bytes, bytes | None] = {}
    names: dict[bytes, list[str]] = {}

    def take(output: Output) -> None:
        if output.topic == CANDIDATES and output.key and output.value:
            candidates[output.key] = output.value

    replay.pipeline.show_also(take)
    is_whole = (
        fold_events(arguments, replay, stop, names)
        if dump is None
        else _fold_dump(dump, replay, stop)
    )
    return FoldedLog(replay, candidates, settings, names) if is_whole else None


def _fold_dump(dump: Path, local: LocalReplay, stop: Stop) -> bool:
    local.pipeline.start_past_ingestion()
    with ProgressLine("folding", total=None, unit="records") as line:
        for number, (partition, value) in enumerate(read_dump(dump), 1):
            local.pipeline.fold_log(EVENTS, partition, value)
            if number % 64 == 0:
                line.show(number)
            if stop.asked:
                return False
    return True
