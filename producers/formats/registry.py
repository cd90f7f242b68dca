"""Events from files of any format: which reader takes which file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from producers.formats.adapted import (
    Adapted,
    learn_lists,
    read_cloud_events,
    read_metarank,
    read_ubi,
)
from producers.formats.canonical_dump import is_dump, read_dumped_events
from producers.formats.columns import read_csv
from producers.formats.jsonl import read_jsonl
from producers.formats.obd import read_obd
from producers.formats.parquet import read_parquet
from producers.formats.recognised_units import in_one_unit
from producers.formats.source_file import FileUnreadable
from producers.formats.yandex_sessions import read_yandex_sessions
from rankstream.adapters.adapter import AdapterOptions
from rankstream.adapters.file_formats import (
    AUTO,
    CANONICAL,
    CLOUD_EVENTS,
    CSV,
    FILE_FORMATS,
    JSONL,
    METARANK,
    OBD,
    PARQUET,
    UBI,
    YANDEX_SESSIONS,
)
from rankstream.adapters.registry import adapter_named
from rankstream.wire.input_events import Event

TABLE_ENDINGS = (".csv", ".tsv")

ADAPTED_FORMATS = {
    UBI: read_ubi,
    METARANK: read_metarank,
    CLOUD_EVENTS: read_cloud_events,
}
"""Readers of formats that an adapter reads, by its name."""

PARQUET_MAGIC = b"PAR1"


@dataclass(frozen=True)
class Format:
    """A kind of event file.

    Parameters
    ----------
    name
        As `replay --format` takes it.
    doc
        What `replay --help` says of it.
    sniff
        Whether a file is of it, by path and its first four bytes as they lie on the
        disk, packed if it is packed; None where nothing in the file tells. At most one
        format may claim a file.
    read
        Its events. It takes the path and, by name, its options.
    options
        Names of those of `read_events` that it takes.
    has_units
        Whether its times may be in another unit than milliseconds.
    endings
        Names of such files in a directory, before `.gz` or `.zst`.
    """

    name: str
    doc: str
    sniff: Callable[[Path, bytes], bool] | None
    read: Callable[..., Iterator[Event]]
    options: tuple[str, ...] = ()
    has_units: bool = False
    endings: tuple[str, ...] = ()


CATALOGUE = (
    Format(
        JSONL,
        "one query or click event a line; plain, .gz or .zst",
        None,
        read_jsonl,
        ("bad_lines", "adapter_options", "adapted"),
        has_units=True,
        endings=(".jsonl", ".ndjson", ".json"),
    ),
    Format(
        PARQUET,
        "columns are the events' fields, and kind (query or click); with --columns, or "
        "columns that have the names of roles, a table as csv",
        lambda _, start: start == PARQUET_MAGIC,
        read_parquet,
        ("columns", "adapter_options", "adapted", "epoch_ms", "tables"),
        has_units=True,
        endings=(".parquet",),
    ),
    Format(
        CANONICAL,
        "what 'rankstream dump' wrote",
        lambda path, _: is_dump(path),
        read_dumped_events,
        endings=(".dump",),
    ),
    Format(
        YANDEX_SESSIONS,
        "result pages with clicks. Times are seconds t since an unknown moment, so "
        "--epoch-ms is added; click i is at t + i seconds. Items are named query:rank, "
        "with --option items=graded GRADE/TYPE#RANK",
        None,
        read_yandex_sessions,
        ("epoch_ms", "adapter_options"),
    ),
    Format(
        OBD,
        "Open Bandit data: POLICY/CAMPAIGN/CAMPAIGN.csv with item_context.csv beside "
        "it. A row is a list of one item; its place is a part of the query, "
        "CAMPAIGN/PLACE",
        None,
        read_obd,
    ),
    Format(
        CSV,
        "a table with a row for each shown item, or a row for each list; --columns "
        "says which column is what (docs/events.md)",
        lambda path, _: unpacked_name(path).endswith(TABLE_ENDINGS),
        read_csv,
        ("columns", "adapter_options", "adapted", "epoch_ms", "tables"),
        has_units=True,
        endings=TABLE_ENDINGS,
    ),
    *(
        Format(
            name,
            adapter_named(name).doc,
            None,
            read,
            ("adapter_options", "adapted"),
            has_units=True,
        )
        for name, read in ADAPTED_FORMATS.items()
    ),
)
"""In the order in which `replay --help` tells of them, which decides nothing."""

FALLBACK = JSONL
"""What `auto` takes a file for that no format claims."""

FORMATS = FILE_FORMATS

ENDINGS = tuple(ending for each in CATALOGUE for ending in each.endings)


def files_of(paths: Sequence[Path]) -> list[Path]:
    """The event files that these paths name; directories give theirs by name.

    Raises
    ------
    FileUnreadable
        Where a path is not there, or a directory holds no event file.
    """
    files: list[Path] = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        inside = sorted(
            file for file in path.rglob("*") if file.is_file() and _is_event_file(file)
        )
        if not inside:
            wanted = ", ".join(ENDINGS)
            raise FileUnreadable(
                path,
                0,
                f"a directory must hold event files: {wanted}: name others "
                "themselves, with their --format",
            )
        files += inside
    for file in files:
        if not file.exists():
            raise FileUnreadable(file, 0, "a file must be there: correct the path")
    return files


def read_events(
    files: Sequence[Path], *, form: str = AUTO, part: str = "", **options: Any
) -> Iterator[Event]:
    """The events of files one after another.

    Parameters
    ----------
    form
        One of `FORMATS`; `auto` goes by what the file holds.
    part
        Before the names of options in words, where a log has two parts.
    options
        Each goes to the formats that take it. `epoch_ms`, for files whose zero of time
        is unknown; `bad_lines`, a list that takes the numbers of JSON lines that are no
        events, which are passed on then: without it the first of them ends the reading.
        `adapter_options` and `adapted`, which counts, for formats of other systems;
        `columns` and `tables` for tables.

    Raises
    ------
    FileUnreadable
        Where a file is not what it must be, or its times are in another unit.
    """
    options["adapted"] = options.get("adapted") or Adapted()
    if form in ADAPTED_FORMATS:
        learn(files, form, options)
    for file in files:
        found = format_of(file) if form == AUTO else _named(form)
        taken = {name: options[name] for name in found.options if name in options}
        events = found.read(file, **taken)
        if found.has_units:
            asked = options.get("adapter_options") or AdapterOptions()
            events = in_one_unit(
                events, file, options["adapted"], unit=asked.time_unit, part=part
            )
        yield from events


def learn(files: Sequence[Path], form: str, options: Mapping[str, Any]) -> None:
    """Note the query of each list, and the items of lists that only impressions tell.

    Clicks, and impressions, may stand in an earlier file than the rest.

    Raises
    ------
    FileUnreadable
    """
    asked = options.get("adapter_options") or AdapterOptions()
    if form in ADAPTED_FORMATS:
        learn_lists(files, form, asked, options["adapted"])


def _named(form: str) -> Format:
    for each in CATALOGUE:
        if each.name == form:
            return each
    raise ValueError(f"a format must be one of {FORMATS}; got {form!r}")


def format_of(file: Path) -> Format:
    """The format that claims a file, else `FALLBACK`.

    Raises
    ------
    FileUnreadable
        Where it cannot be read.
    """
    try:
        with file.open("rb") as content:
            start = content.read(len(PARQUET_MAGIC))
    except OSError as error:
        raise FileUnreadable(
            file, 0, f"a file must be readable; {error.strerror}"
        ) from error
    claims = (each for each in CATALOGUE if each.sniff and each.sniff(file, start))
    return next(claims, None) or _named(FALLBACK)


def form_of(file: Path, form: str) -> str:
    """The name of a file's format, where `form` is what was asked for.

    Raises
    ------
    FileUnreadable
    """
    return format_of(file).name if form == AUTO else form


def _is_event_file(file: Path) -> bool:
    if file.name.startswith((".", "_")):
        return False
    return unpacked_name(file).endswith(ENDINGS)


def unpacked_name(file: Path) -> str:
    """Without the ending of what packed it."""
    return file.name.removesuffix(".gz").removesuffix(".zst")
