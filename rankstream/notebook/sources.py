"""Where a log comes from: frames, files, or the log `events` of a cluster."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

import msgspec

from producers.formats.canonical_dump import checked_records
from producers.formats.log_files import CLICK_FILES, QUERY_FILES
from producers.readiness import why_no_kafka
from producers.stop_signal import Stop
from rankstream.adapters.file_formats import AUTO, CLICKS, LISTS
from rankstream.installation import not_installed
from rankstream.notebook.frames import Frame, columns_of, is_frame
from rankstream.notebook.python_words import told_in_python
from rankstream.operations.folded_log import FoldedLog, folded_log, folded_records
from rankstream.operations.named_log import NamedLog, parts_of
from rankstream.operations.recorded_log import (
    MEMORY_BYTES,
    Line,
    Lines,
    Reading,
    feature_table,
)
from rankstream.settings import Settings, with_namespace
from rankstream.wire.topics import EVENTS
from streams.local import local_settings

SCHEME = "kafka://"

ANSWERS_WITHIN_S = 10.0
"""How long a cluster may take to answer at all."""

Table = Any
"""A frame, or the path of one or more files."""


class Source(Protocol):
    """What can be folded, as often as it is asked for."""

    @property
    def name(self) -> str:
        """What it is, in a few words."""

    def folded(self, settings: Settings, features: Table, lines: Lines) -> FoldedLog:
        """Fold it.

        Parameters
        ----------
        features
            Of its items, beside those that it has; None without.
        """


@dataclass(frozen=True)
class Tables:
    """Frames and files.

    Parameters
    ----------
    lists
        With lists; without `clicks` with clicks as well.
    clicks
        With clicks alone.
    form, columns, options, joins_sessions
        See `rankstream.operations.named_log.NamedLog`.
    memory_bytes
        What sorting may take; more is sorted on disk.
    """

    lists: Table
    clicks: Table = None
    form: str = AUTO
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    joins_sessions: bool = False
    memory_bytes: int = MEMORY_BYTES

    @property
    def name(self) -> str:
        """What it is, in a few words."""
        parts = [each for each in (self.lists, self.clicks) if each is not None]
        return " and ".join(map(_name_of, parts))

    def folded(self, settings: Settings, features: Table, lines: Lines) -> FoldedLog:
        """Fold them, with features of items in another frame or file."""
        with tempfile.TemporaryDirectory(prefix="rankstream-frames-") as folder:
            written = _Written(Path(folder), self)
            with told_in_python(written.names):
                with lines("copying", total=None, unit="rows") as line:
                    named = written.log(line)
                    beside = written.features(features, line)
                log = named.files(settings)
                reading = Reading(
                    log, feature_table(log, beside), memory_bytes=self.memory_bytes
                )
                found = folded_log(reading, local_settings(settings), Stop(), lines)
        return _whole(found)


class _Written:
    """Frames as files in a folder, and all else as it is."""

    def __init__(self, folder: Path, tables: Tables) -> None:
        self._folder = folder
        self._tables = tables
        self.names: dict[str, str] = {}

    def log(self, line: Line) -> NamedLog:
        """The log, in which each frame is a file with its columns by role."""
        tables = self._tables
        has_parts = tables.clicks is not None
        lists, of_lists = self._part(QUERY_FILES if has_parts else "", LISTS, line)
        clicks: Sequence[Path] = ()
        of_clicks: dict[str, str] = {}
        if has_parts:
            clicks, of_clicks = self._part(CLICK_FILES, CLICKS, line)
        are_frames = is_frame(tables.lists), is_frame(tables.clicks)
        form = tables.form
        if are_frames == (True, has_parts) and form != AUTO:
            raise ValueError(
                f"format must be left out where all is DataFrames; got {form!r}"
            )
        return NamedLog(
            lists, clicks, form, {**tables.columns, **of_lists, **of_clicks},
            tables.options, tables.joins_sessions,
        )  # fmt: skip

    def features(self, table: Table, line: Line) -> list[Path]:
        """Files of features."""
        if not is_frame(table):
            return [] if table is None else _paths(table)
        path = self._path("features")
        Frame(table, self.names[str(path)]).write(path, line)
        return [path]

    def _part(
        self, part: str, table: str, line: Line
    ) -> tuple[list[Path], dict[str, str]]:
        tables = self._tables
        value = tables.clicks if part == CLICK_FILES else tables.lists
        if not is_frame(value):
            return _paths(value), {}
        path = self._path(CLICK_FILES if part == CLICK_FILES else "lists")
        frame = Frame(value, self.names[str(path)])
        schema = frame.write(path, line)
        told = parts_of(tables.columns)
        asked = {**_there(told[""], schema.names, part), **(told[part] if part else {})}
        found, notes = columns_of(
            frame, schema, asked, table=table, joins_sessions=tables.joins_sessions
        )
        for note in notes:
            line.say(note)
        mark = f"{part}." if part else ""
        return [path], {f"{mark}{role}": name for role, name in found.items()}

    def _path(self, name: str) -> Path:
        path = self._folder / f"{name}.parquet"
        self.names[str(path)] = f"the DataFrame of {name}"
        return path


def _there(asked: Mapping[str, str], names: list[str], part: str) -> dict[str, str]:
    """Columns that were named for a log; of one of two tables those that it has."""
    return {role: name for role, name in asked.items() if not part or name in names}


@dataclass(frozen=True)
class Cluster:
    """The log `events` of a cluster, up to its present end.

    Parameters
    ----------
    name
        Its address, `kafka://HOST:PORT/NAMESPACE`.
    """

    name: str

    def settings(self, settings: Settings) -> Settings:
        """Settings of this cluster and namespace.

        Raises
        ------
        ValueError
            Where the address is none, or has a password.
        """
        place = urlsplit(self.name)
        namespace = place.path.strip("/")
        if "@" in place.netloc:
            raise ValueError(
                f"{SCHEME} must have no user and no password; give them in settings, "
                'as read("kafka://HOST:PORT/NAMESPACE", settings="shop.toml")'
            )
        if not place.netloc or "/" in namespace or place.query:
            raise ValueError(
                f"a cluster must be {SCHEME}HOST:PORT/NAMESPACE; got {self.name!r:.200}"
            )
        kafka = msgspec.structs.replace(settings.kafka, bootstrap=place.netloc)
        told: Settings = msgspec.structs.replace(settings, kafka=kafka)
        return with_namespace(told, namespace) if namespace else told

    def folded(self, settings: Settings, features: Table, lines: Lines) -> FoldedLog:
        """Fold the log as it stands: windows that are open stay open."""
        if features is not None:
            raise ValueError(
                f"features must come with the lists of a log in Kafka; got them beside "
                f"{self.name}: dump it, and read the file with features"
            )
        own = self.settings(settings)
        with _reader(own) as reader, lines("reading", total=None) as line:
            n_partitions = len(reader.bounds(EVENTS))
            line.note(f"{n_partitions} partitions")
            records = checked_records(reader.records(EVENTS), EVENTS)
            return _whole(folded_records(records, n_partitions, own, Stop(), lines))


@contextmanager
def _reader(settings: Settings) -> Iterator[Any]:
    """A reader of topics; its client is loaded only where it is needed."""
    try:
        from producers.topic_reader import TopicReader  # noqa: PLC0415
    except ImportError as error:
        raise not_installed(error, asked=SCHEME) from error
    if why := why_no_kafka(settings.kafka, ANSWERS_WITHIN_S):
        raise RuntimeError(
            f"Kafka must answer at {settings.kafka.bootstrap} for its log to be read; "
            f"{why}: start it, or correct the address"
        )
    with TopicReader(settings) as reader:
        yield reader


def _whole(found: FoldedLog | None) -> FoldedLog:
    """What was folded: nothing here asks a fold to stop."""
    if found is None:
        raise KeyboardInterrupt
    return found


def _name_of(table: Table) -> str:
    """A table in a few words."""
    if is_frame(table):
        return f"a {type(table).__name__}"
    first, *others = _paths(table)
    return f"{first} and {len(others)} more" if others else str(first)


def _paths(value: Any) -> list[Path]:
    """One path or several.

    Raises
    ------
    ValueError
        Where it is neither a path nor a frame.
    """
    if isinstance(value, str | Path):
        return [Path(value)]
    several = value if isinstance(value, Sequence) else ()
    if several and all(isinstance(each, str | Path) for each in several):
        return [Path(each) for each in several]
    raise ValueError(
        "a log must be a DataFrame with Arrow's interface (pandas 2.2, polars 1, "
        f"pyarrow 15), a file, a list of files, or {SCHEME}HOST:PORT/NAMESPACE; got "
        f"a {type(value).__name__}"
    )
