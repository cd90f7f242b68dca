"""Events in files, as a command line names them."""

import argparse
import contextlib
import dataclasses
from collections.abc import Iterator

from producers.stop_signal import Stop
from rankstream.operations import recorded_log
from rankstream.operations.commands.options.log import (
    features_asked,
    identity_of_log,
    log_asked,
)
from rankstream.operations.recorded_log import Reading, RecordedLog
from rankstream.operations.terminal.progress_line import ProgressLine


def reading_asked(arguments: argparse.Namespace) -> Reading:
    """The files of the call, and how it has them read.

    Raises
    ------
    ValueError
        As `log_asked` and `features_asked`.
    """
    log = log_asked(arguments)
    return Reading(
        log,
        features_asked(arguments, log),
        max(1, arguments.memory_mb) << 20,
        arguments.scratch,
        arguments.epoch_ms,
        not arguments.as_is,
        arguments.pass_bad_lines,
        identity_of_log(arguments, log),
    )


@contextlib.contextmanager
def recorded_events(
    arguments: argparse.Namespace, stop: Stop
) -> Iterator[RecordedLog | None]:
    """The events in the order in which they are to be sent; None if stopped."""
    reading = reading_asked(arguments)
    beside = getattr(arguments, "features", None) or []
    with recorded_log.recorded_events(reading, stop, ProgressLine) as found:
        # A replay goes on only where the features are the same as well.
        yield found and dataclasses.replace(found, files=[*found.files, *beside])
