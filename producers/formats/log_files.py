"""A log as a call names it: all in the same files, or clicks in files of their own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from producers.formats.adapted import Adapted
from producers.formats.click_tables import Click, clicks_of
from producers.formats.columns import TableForm, csv_names, csv_table
from producers.formats.joined import Joining, joined
from producers.formats.parquet import is_table, parquet_names, parquet_table
from producers.formats.recognised_units import in_one_unit
from producers.formats.registry import (
    ADAPTED_FORMATS,
    form_of,
    read_events,
)
from producers.formats.rows_together import PLAIN, Tables
from producers.formats.source_file import FileUnreadable
from producers.formats.tables import columns_by_role
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import AUTO, CSV, LISTS, PARQUET, roles_of
from rankstream.adapters.file_formats import CLICKS as CLICK_ROWS
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

QUERY_FILES, CLICK_FILES = "queries", "clicks"
"""The two parts of a log, as options and settings name them."""

TABLE_FORMS = (CSV, PARQUET)


@dataclass(frozen=True)
class FilesOfAForm:
    """Files, and how they are read.

    Parameters
    ----------
    form
        One of `FORMATS`.
    columns
        The column of each role of a table, where it has another name.
    """

    files: Sequence[Path]
    form: str = AUTO
    columns: Mapping[str, str] = field(default_factory=dict)
    options: AdapterOptions = field(default_factory=AdapterOptions)


@dataclass(frozen=True)
class LogFiles:
    """All files of a log.

    Parameters
    ----------
    lists
        Those of lists; without `clicks` they hold clicks as well.
    clicks
        Those of clicks alone.
    columns
        Columns that were named for both: each must be in a table of one of them.
    joins_sessions
        Whether clicks find their lists by session, query and time.
    window_ms
        How much later than its list such a click may be.
    features
        Which columns of the files of lists are features, as `--columns features=` says
        it; empty where none are.
    """

    lists: FilesOfAForm
    clicks: FilesOfAForm | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    joins_sessions: bool = False
    window_ms: int = 300_000
    features: str = ""

    @property
    def files(self) -> list[Path]:
        """All of them, those of lists first."""
        return [*self.lists.files, *(self.clicks.files if self.clicks else ())]

    def forms(self) -> list[str]:
        """The names of their formats, each once."""
        parts = (self.lists, *([self.clicks] if self.clicks else []))
        return sorted({_form(file, part) for part in parts for file in part.files})


def read_log(
    log: LogFiles, *, tables: Tables = PLAIN, adapted: Adapted, **options: Any
) -> Iterator[Event]:
    """The events of a log: of one file after another, or joined.

    Parameters
    ----------
    tables
        What sorting may take.
    adapted
        Counts; says of which file and line an event is, where files are joined.
    options
        Others of `read_events`.

    Raises
    ------
    FileUnreadable, NothingJoined
    """
    tables = tables._replace(joins_sessions=log.joins_sessions)
    options |= {"tables": tables, "adapted": adapted}
    if log.clicks is None:
        yield from read_events(
            log.lists.files,
            form=log.lists.form,
            columns={**log.columns, **log.lists.columns},
            adapter_options=log.lists.options,
            **options,
        )
        return
    columns = _columns(log, log.clicks)
    _check_times(log, log.clicks, columns)
    yield from joined(
        _lists(log.lists, columns, log.clicks, options),
        _clicks(log, log.clicks, columns, options),
        Joining(tables, log.window_ms),
        options=log.clicks.options,
        adapted=adapted,
    )


def _lists(
    part: FilesOfAForm,
    columns: Mapping[Path, Mapping[str, str]],
    clicks: FilesOfAForm,
    options: dict[str, Any],
) -> Iterator[Event]:
    adapted: Adapted = options["adapted"]
    are_asked = any(_form(file, clicks) in ADAPTED_FORMATS for file in clicks.files)
    for adapted.file, file in enumerate(part.files):
        adapted.line = 0
        events = read_events(
            [file],
            form=_form(file, part),
            columns=columns[file],
            adapter_options=part.options,
            part=f"{QUERY_FILES}.",
            **options,
        )
        has_lines = _is_table(file, part)
        for number, event in enumerate(events, 1):
            adapted.line = adapted.line if has_lines else number
            if are_asked and event.kind == QUERIES and not event.refusal:
                _remember(event, adapted)
            yield event


def _clicks(
    log: LogFiles,
    part: FilesOfAForm,
    columns: Mapping[Path, Mapping[str, str]],
    options: dict[str, Any],
) -> Iterator[Click | Event]:
    adapted: Adapted = options["adapted"]
    for adapted.file, file in enumerate(part.files, len(log.lists.files)):
        adapted.line = 0
        unit = part.options.time_unit
        if _is_table(file, part):
            form = TableForm(columns[file], CLICK_ROWS, log.joins_sessions)
            is_csv = _form(file, part) == CSV
            rows = clicks_of(
                csv_table(file, form) if is_csv else parquet_table(file, form),
                options=part.options,
                adapted=adapted,
                joins_sessions=log.joins_sessions,
            )
            yield from in_one_unit(
                rows, file, adapted, unit=unit, part=f"{CLICK_FILES}."
            )
            continue
        events = read_events(
            [file],
            form=_form(file, part),
            adapter_options=part.options,
            part=f"{CLICK_FILES}.",
            **options,
        )
        for adapted.line, event in enumerate(events, 1):
            yield _without_query(event, adapted) or event


class _Own(msgspec.Struct, gc=False):
    """A click event of ours."""

    impression_id: str
    at_ms: int
    query_id: str = ""
    item_id: str = ""
    position: int | None = None
    action: str = "click"
    event_id: str = ""


class _Named(msgspec.Struct, gc=False):
    impression_id: str
    query_id: str


_decode_own = msgspec.json.Decoder(_Own).decode
_decode_named = msgspec.json.Decoder(_Named).decode


def _without_query(event: Event, adapted: Adapted) -> Click | None:
    """A click that does not say its query, which its list will; None of all others."""
    if event.kind != CLICKS or event.refusal:
        return None
    try:
        own = _decode_own(event.value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if own.query_id:
        return None
    return Click(
        line=adapted.line,
        file=adapted.file,
        row=event.value,
        impression=own.impression_id,
        at_ms=own.at_ms,
        item=own.item_id,
        position=own.position,
        action=own.action,
        event=own.event_id,
    )


def _remember(event: Event, adapted: Adapted) -> None:
    try:
        named = _decode_named(event.value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return
    adapted.queries[named.impression_id] = named.query_id


def _form(file: Path, part: FilesOfAForm) -> str:
    """As it was asked for; of a table, as its bytes are."""
    found = form_of(file, AUTO) if part.form in (AUTO, *TABLE_FORMS) else part.form
    if part.form in TABLE_FORMS and found not in TABLE_FORMS:
        return part.form
    return found


def _is_table(file: Path, part: FilesOfAForm) -> bool:
    return _form(file, part) in TABLE_FORMS


def _names(file: Path, log: LogFiles, part: FilesOfAForm) -> list[str]:
    """The names of the columns of a table; none of what is no table."""
    if not _is_table(file, part):
        return []
    if _form(file, part) == PARQUET:
        return parquet_names(file)
    known = {*log.columns.values(), *part.columns.values()}
    for table in (LISTS, CLICK_ROWS):
        known.update(each for role in roles_of(table) for each in role.names)
    return csv_names(file, known)


def _columns(log: LogFiles, clicks: FilesOfAForm) -> dict[Path, Mapping[str, str]]:
    """The columns that were named, for each file.

    One that was named for both parts counts where it is, and must be somewhere.
    """
    found: dict[Path, Mapping[str, str]] = {}
    used: set[str] = set()
    for table, part in ((LISTS, log.lists), (CLICK_ROWS, clicks)):
        roles = {role.name for role in roles_of(table)}
        for file in part.files:
            names = _names(file, log, part)
            shared = {
                role: name
                for role, name in log.columns.items()
                if name in names and role in roles
            }
            used.update(shared)
            found[file] = {**shared, **part.columns}
    for role in log.columns.keys() - used:
        # Nowhere: the first table that could have it says so.
        is_of_lists = role in {each.name for each in roles_of(LISTS)}
        part, table = (log.lists, LISTS) if is_of_lists else (clicks, CLICK_ROWS)
        file = part.files[0]
        asked = {role: log.columns[role]}
        columns_by_role(_names(file, log, part), asked, file, table)
    return found


def _check_times(
    log: LogFiles, clicks: FilesOfAForm, columns: Mapping[Path, Mapping[str, str]]
) -> None:
    """Refuse lists without times, where clicks have some.

    Raises
    ------
    FileUnreadable
    """

    def roles(file: Path, part: FilesOfAForm, table: str) -> dict[str, str]:
        form = TableForm(columns[file], table, log.joins_sessions)
        return form.by_role(_names(file, log, part), file)

    have_times = [
        file
        for file in clicks.files
        if not _is_table(file, clicks)
        or not {"at", "clicked_at"}.isdisjoint(roles(file, clicks, CLICK_ROWS))
    ]
    for file in log.lists.files:
        if not _is_table(file, log.lists) or _is_of_events(file, log, columns):
            continue
        if "at" not in roles(file, log.lists, LISTS) and have_times:
            raise FileUnreadable(
                file,
                1,
                "lists must have times where clicks have some, as those of "
                f"{have_times[0]}: name their column with --columns queries.at=COLUMN",
            )


def _is_of_events(
    file: Path, log: LogFiles, columns: Mapping[Path, Mapping[str, str]]
) -> bool:
    """Whether a Parquet file holds events, and no table of lists."""
    if _form(file, log.lists) != PARQUET:
        return False
    return not is_table(parquet_names(file), columns[file], log.joins_sessions)
