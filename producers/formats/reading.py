"""Events from files of any format: which reader takes which file."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from producers.formats.canonical import is_dump, read_dumped_events
from producers.formats.event import Event
from producers.formats.jsonl import read_jsonl
from producers.formats.parquet import read_parquet
from producers.formats.source_file import FileUnreadable
from producers.formats.yandex_sessions import EPOCH_MS, read_yandex_sessions

AUTO, JSONL, PARQUET, CANONICAL = "auto", "jsonl", "parquet", "canonical"
YANDEX_SESSIONS = "yandex-sessions"

FORMATS = (AUTO, JSONL, PARQUET, CANONICAL, YANDEX_SESSIONS)

ENDINGS = (".jsonl", ".ndjson", ".json", ".parquet", ".dump")
"""Names of event files in a directory, before `.gz` or `.zst`."""

PARQUET_MAGIC = b"PAR1"


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
                path, 0, f"a directory must hold event files: {wanted}"
            )
        files += inside
    for file in files:
        if not file.exists():
            raise FileUnreadable(file, 0, "a file must be there")
    return files


def read_events(
    files: Sequence[Path],
    *,
    form: str = AUTO,
    epoch_ms: int = EPOCH_MS,
    bad_lines: list[int] | None = None,
) -> Iterator[Event]:
    """The events of files one after another.

    Parameters
    ----------
    form
        One of `FORMATS`; `auto` tells Parquet, dumps and JSON lines apart.
    epoch_ms
        For files whose zero of time is unknown.
    bad_lines
        Takes the numbers of JSON lines that are no events, which are passed on then;
        without it the first of them ends the reading.
    """
    for file in files:
        yield from _reader(file, form, epoch_ms, bad_lines)(file)


def _reader(
    file: Path, form: str, epoch_ms: int, bad_lines: list[int] | None
) -> Callable[[Path], Iterator[Event]]:
    if form == YANDEX_SESSIONS:
        return lambda path: read_yandex_sessions(path, epoch_ms=epoch_ms)
    readers: dict[str, Callable[[Path], Iterator[Event]]] = {
        JSONL: lambda path: read_jsonl(path, bad_lines=bad_lines),
        PARQUET: read_parquet,
        CANONICAL: read_dumped_events,
    }
    return readers[form_of(file) if form == AUTO else form]


def form_of(file: Path) -> str:
    """The format that the first bytes of a file tell.

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
    if start == PARQUET_MAGIC:
        return PARQUET
    return CANONICAL if is_dump(file) else JSONL


def _is_event_file(file: Path) -> bool:
    if file.name.startswith((".", "_")):
        return False
    name = file.name.removesuffix(".gz").removesuffix(".zst")
    return name.endswith(ENDINGS)
