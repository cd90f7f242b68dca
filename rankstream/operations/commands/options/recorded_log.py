"""Events in files, in the order in which they are sent."""

import argparse
import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from producers.external_sort import OrderedEvents
from producers.formats.adapted import Adapted
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import LogFiles, read_log
from producers.formats.rows_together import Tables
from producers.stop_signal import Stop
from rankstream.operations.commands.options.log import (
    features_asked,
    identity_of_log,
    log_asked,
    names_of,
)
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.operations.terminal.words import counted
from rankstream.wire.input_events import Event

LOOK_EVERY = 4_096
"""Events between two looks at the line and at who asks to stop."""


@dataclass(frozen=True)
class RecordedLog:
    """The events that a command line names, readable more than once.

    Parameters
    ----------
    identity
        What else makes them the same, beside the options of the call.
    names
        Names of features by the hash of their list, where files have them.
    """

    files: list[Path]
    events: OrderedEvents | list[Event]
    n_events: int
    identity: dict[str, Any] = field(default_factory=dict)
    names: dict[bytes, list[str]] = field(default_factory=dict)


@contextlib.contextmanager
def recorded_events(
    arguments: argparse.Namespace, stop: Stop
) -> Iterator[RecordedLog | None]:
    """The events in the order in which they are to be sent; None if stopped.

    The files are read to their end first: a file that is broken anywhere is refused
    before anything of it is sent.
    """
    asked = log_asked(arguments)
    bad_lines: list[int] | None = [] if arguments.pass_bad_lines else None
    adapted = Adapted()
    features = features_asked(arguments, asked)
    memory_bytes = max(1, arguments.memory_mb) << 20

    def read(adapted: Adapted, bad_lines: list[int] | None) -> Iterator[Event]:
        return read_log(
            asked,
            tables=Tables(memory_bytes=memory_bytes, scratch=arguments.scratch),
            adapted=adapted,
            epoch_ms=arguments.epoch_ms,
            bad_lines=bad_lines,
        )

    with ProgressLine("reading", total=None) as line:
        events = read(adapted, bad_lines)
        if features is not None:
            if features.is_of_items:
                line.note("which items each query showed")
                features.note_shown(watched(read(Adapted(), []), line, stop))
            events = features.beside(events)
        seen = watched(events, line, stop)
        ordered = OrderedEvents(
            seen,
            memory_bytes=memory_bytes,
            scratch=arguments.scratch,
            is_sorted=not arguments.as_is,
        )
    with ordered:
        if stop.asked:
            yield None
            return
        for told in _told_of_read(ordered, asked, adapted, features):
            line.say(told)
        if bad_lines:
            line.say(f"passed on, though no events: {counted(len(bad_lines), 'line')}")
        identity = identity_of_log(arguments, asked)
        beside = getattr(arguments, "features", None) or []
        yield RecordedLog(
            [*asked.files, *beside],
            ordered,
            ordered.n_events,
            identity,
            names_of(features),
        )


def _told_of_read(
    ordered: OrderedEvents,
    log: LogFiles,
    adapted: Adapted,
    features: FeatureTable | None,
) -> Iterator[str]:
    """What was found in the files, in words."""
    where = f", sorted in {ordered.n_runs + 1} runs" if ordered.n_runs else ""
    yield (
        f"{counted(ordered.n_events, 'event')} in {counted(len(log.files), 'file')}, "
        f"{ordered.n_disordered:,} out of order{where}"
    )
    yield from lines_of_adapted(adapted, " and ".join(log.forms()))
    if features is not None:
        yield from features.told()
    if not ordered.n_events:
        yield "there is nothing to count: `rankstream validate` says why"


def watched(events: Iterator[Event], line: ProgressLine, stop: Stop) -> Iterator[Event]:
    """The same events, shown as they come, until somebody asks to stop."""
    for number, event in enumerate(events):
        if number % LOOK_EVERY == 0:
            line.show(number)
            if stop.asked:
                return
        yield event


def lines_of_adapted(adapted: Adapted, form: str) -> list[str]:
    """What a person is told of documents of another format."""
    if not adapted.documents:
        return [*adapted.notes]
    lines = [
        f"{counted(adapted.documents, 'document')} of {form}, of which "
        f"{adapted.silent:,} say nothing of lists or clicks"
    ]
    if n_made := adapted.seen.n_made:
        lines.append(f"made of impression events: {counted(n_made, 'list')}")
    if n_refused := adapted.refused.total():
        each = ", ".join(f"{n:,} {code}" for code, n in adapted.refused.most_common())
        lines.append(
            f"not adapted, and sent to the dead letters: "
            f"{counted(n_refused, 'document')} ({each})"
        )
    return lines + adapted.notes
