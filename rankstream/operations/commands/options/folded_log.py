"""Events in files, or a dump of `events`, that a command line names, folded here."""

import argparse

from producers.stop_signal import Stop
from rankstream.operations import folded_log as folding
from rankstream.operations.commands.options.recorded_log import (
    reading_asked,
    recorded_events,
)
from rankstream.operations.folded_log import FoldedLog, fold_recorded
from rankstream.operations.recorded_log import RecordedLog
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings
from streams.local import LocalPipeline


def fold_events(
    arguments: argparse.Namespace, pipeline: LocalPipeline, stop: Stop
) -> RecordedLog | None:
    """Fold all that a command names, all windows at the end; None if stopped before."""
    with recorded_events(arguments, stop) as log:
        if log is None:
            return None
        with ProgressLine("folding", total=log.n_events) as line:
            is_whole = fold_recorded(log, pipeline, stop, line)
        return log if is_whole else None


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
    return folding.folded_log(reading_asked(arguments), settings, stop, ProgressLine)
