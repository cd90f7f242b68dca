"""Events in files, in the order in which they are sent.

The files are read to their end first: one that is broken anywhere is refused before
anything of it is sent.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from producers.external_sort import OrderedEvents
from producers.formats.adapted import Adapted
from producers.formats.feature_rows import QUERY, read_feature_rows
from producers.formats.joined_features import FeatureTable
from producers.formats.log_files import LogFiles, read_log
from producers.formats.rows_together import Tables
from producers.formats.yandex_sessions import EPOCH_MS
from producers.stop_signal import Stop
from rankstream.adapters.file_formats import FEATURES
from rankstream.operations.terminal.words import counted
from rankstream.wire.input_events import Event

LOOK_EVERY = 4_096
"""Events between two looks at the line and at who asks to stop."""

MEMORY_BYTES = 256 << 20
"""What sorting takes unless another limit is given; more is sorted on disk."""


class Line(Protocol):
    """Where it is said how far something is."""

    def show(self, done: int, note: str = "") -> None:
        """Show what is done by now, with a few words on it."""

    def note(self, words: str) -> None:
        """Show what goes on while nothing more is done."""

    def say(self, line: str) -> None:
        """Say something that stays."""


class Lines(Protocol):
    """Gives a line for each thing that takes long, such as `ProgressLine`."""

    def __call__(
        self, label: str, *, total: int | None, unit: str = ...
    ) -> AbstractContextManager[Line]:
        """The line of what is called so, of so many things where that is known."""


@dataclass(frozen=True)
class Reading:
    """A log in files, and how it is read.

    Parameters
    ----------
    log
        The files.
    features
        Of its items; None where there are none beside what its lists bring.
    memory_bytes, scratch
        What sorting may take, and where it may lie beyond that.
    epoch_ms
        Time zero of formats that do not say it.
    is_sorted
        Whether events are sorted by time, or go as they lie.
    passes_bad_lines
        Whether JSON lines that are no events are sent too.
    identity
        What else makes the log the same, for who goes on with it later.
    """

    log: LogFiles
    features: FeatureTable | None = None
    memory_bytes: int = MEMORY_BYTES
    scratch: Path | None = None
    epoch_ms: int = EPOCH_MS
    is_sorted: bool = True
    passes_bad_lines: bool = False
    identity: Mapping[str, Any] = field(default_factory=dict)

    def events(
        self, adapted: Adapted, bad_lines: list[int] | None = None
    ) -> Iterator[Event]:
        """The events in the order of the files."""
        return read_log(
            self.log,
            tables=Tables(memory_bytes=self.memory_bytes, scratch=self.scratch),
            adapted=adapted,
            epoch_ms=self.epoch_ms,
            bad_lines=bad_lines,
        )


@dataclass(frozen=True)
class RecordedLog:
    """Events that can be read more than once.

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
    identity: Mapping[str, Any] = field(default_factory=dict)
    names: dict[bytes, list[str]] = field(default_factory=dict)


def feature_table(
    log: LogFiles, paths: Sequence[Path] = (), names: Sequence[str] = ()
) -> FeatureTable | None:
    """Features in files beside a log, else in columns of its lists; None without.

    Parameters
    ----------
    names
        Those that are wanted, in their order; without them as `read_feature_rows` says.

    Raises
    ------
    FileUnreadable
        Where a table is not what it must be.
    """
    columns = {**log.columns, **log.lists.columns}
    wanted = {"query", "item"}
    keys = {role: name for role, name in columns.items() if role in wanted}
    if log.features:
        keys[FEATURES] = log.features
    if paths:
        return FeatureTable(read_feature_rows(paths, columns=keys, names=names))
    if not log.features:
        return None
    # A list without a query is one of its own.
    lists = columns.get("impression", "impression"), "impression_id"
    rows = read_feature_rows(
        log.lists.files, columns=keys, names=names, queries=(*QUERY, *lists)
    )
    return FeatureTable(rows)


@contextlib.contextmanager
def recorded_events(
    reading: Reading, stop: Stop, lines: Lines
) -> Iterator[RecordedLog | None]:
    """The events in the order in which they are to be sent; None if stopped.

    Raises
    ------
    FileUnreadable, NothingJoined
    """
    bad_lines: list[int] | None = [] if reading.passes_bad_lines else None
    adapted, features = Adapted(), reading.features
    with lines("reading", total=None) as line:
        events = reading.events(adapted, bad_lines)
        if features is not None:
            if features.is_of_items:
                line.note("which items each query showed")
                features.note_shown(watched(reading.events(Adapted(), []), line, stop))
            events = features.beside(events)
        ordered = OrderedEvents(
            watched(events, line, stop),
            memory_bytes=reading.memory_bytes,
            scratch=reading.scratch,
            is_sorted=reading.is_sorted,
        )
    with ordered:
        if stop.asked:
            yield None
            return
        for told in _told_of_read(ordered, reading.log, adapted, features):
            line.say(told)
        if bad_lines:
            line.say(f"passed on, though no events: {counted(len(bad_lines), 'line')}")
        names = {} if features is None else {features.list_hash: features.rows.names}
        yield RecordedLog(
            reading.log.files, ordered, ordered.n_events, reading.identity, names
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
    yield from _told_of_clicks(log, adapted)
    if features is not None:
        yield from features.told()
    if not ordered.n_events:
        yield "there is nothing to count: `rankstream validate` says why"


def _told_of_clicks(log: LogFiles, adapted: Adapted) -> Iterator[str]:
    """That clicks are likely to be missing."""
    if adapted.lacks_clicked and log.clicks is None:
        yield (
            "no column says what was clicked: --columns clicked=COLUMN names it, or "
            "give clicks with --clicks"
        )
    if n := adapted.n_empty:
        yield (
            f"{counted(n, 'cell')} of the column that says what was clicked "
            f"{'is' if n == 1 else 'are'} empty: taken as not clicked"
        )


def watched(events: Iterator[Event], line: Line, stop: Stop) -> Iterator[Event]:
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
