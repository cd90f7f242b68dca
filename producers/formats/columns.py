"""Tables of shown items, CSV or Parquet: a row an item, its columns named by roles.

Rows of a list follow one another. They make its query event, and a click for each row
that says so.
"""

import csv
import io
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from producers.formats.adapted import Adapted
from producers.formats.list_policies import drawn_by, shown_and_not
from producers.formats.source_file import UNPACKING_ERRORS, FileUnreadable, opened
from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.events import clicked, listed
from rankstream.adapters.fields import needed, text
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event
from rankstream.wire.topics import QUERIES

NEEDED = ("impression", "item", "at")
OPTIONAL = (
    "position",
    "clicked",
    "clicked_at",
    "query",
    "user",
    "session",
    "action",
    "policy",
    "scores",
    "exposures",
)
ROLES = (*NEEDED, *OPTIONAL)
"""What a column may be; one of the same name is it, unless another is named."""

DELIMITERS = ",;\t|"

_TRUE = frozenset({"1", "true", "t", "yes", "y"})
_FALSE = frozenset({"0", "false", "f", "no", "n", ""})

Row = Mapping[str, Any]


class EpochMs(int):
    """A time whose unit is known, of any year."""


T = TypeVar("T", int, float)

_encode = msgspec.json.Encoder(enc_hook=str).encode


def read_csv(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
) -> Iterator[Event]:
    """The lists of a table and their clicks, in the order of the file.

    Parameters
    ----------
    columns
        The column of each of `ROLES`, where it has another name.

    Raises
    ------
    FileUnreadable
        Where a column is missing, rows of a list lie apart, or one has another number
        of cells than the head.
    """
    with opened(path) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
        yield from events_of(
            _csv_rows(path, lines, columns or {}),
            path,
            options=adapter_options or AdapterOptions(),
            adapted=adapted or Adapted(),
        )


def events_of(
    rows: Iterable[tuple[int, Row]],
    path: Path,
    *,
    options: AdapterOptions,
    adapted: Adapted,
) -> Iterable[Event]:
    """The lists in rows that are named by roles, each with its number.

    Raises
    ------
    FileUnreadable
        Where rows of a list lie apart.
    """
    # Hashes of texts: those of the numbers -1 and -2 are the same.
    seen: set[int] = set()
    at_ms = 0
    for list_id, group in itertools.groupby(rows, lambda each: each[1]["impression"]):
        together = list(group)
        if isinstance(list_id, str | int) and list_id != "":
            if hash(str(list_id)) in seen:
                raise FileUnreadable(
                    path,
                    together[0][0],
                    "rows of a list must follow one another; "
                    f"{list_id!r:.60} was there before: sort the file by that column",
                )
            seen.add(hash(str(list_id)))
        adapted.documents += 1
        adapted.line = together[0][0]
        shown = [row for _, row in together]
        try:
            events = _of_list(shown, options)
        except NotAdapted as error:
            adapted.refused[error.code] += 1
            words = f"{error.code}: {error}"
            events = [Event(at_ms, QUERIES, _encode(shown), words)]
        for event in events:
            at_ms = event.at_ms
            yield event


def columns_by_role(
    names: Sequence[str], asked: Mapping[str, str], path: Path
) -> dict[str, str]:
    """The column of each role that a table has.

    Raises
    ------
    FileUnreadable
        Where one is missing, or there twice.
    """
    found = {role: asked.get(role, role) for role in ROLES}
    for role, name in found.items():
        if name not in names and (role in NEEDED or role in asked):
            raise FileUnreadable(
                path,
                1,
                f"a column {role} must be there; no {name!r} among "
                f"{', '.join(names)!r:.300}: name it with --columns {role}=COLUMN",
            )
        if names.count(name) > 1:
            raise FileUnreadable(
                path,
                1,
                f"a column {role} must be there once; {names.count(name)} are named "
                f"{name!r:.60}: rename the others",
            )
    return {role: name for role, name in found.items() if name in names}


def _csv_rows(
    path: Path, lines: io.TextIOWrapper, asked: Mapping[str, str]
) -> Iterator[tuple[int, Row]]:
    number = 1
    try:
        head = lines.readline()
        wanted = {asked.get(role, role) for role in NEEDED}
        delimiter = max(
            DELIMITERS, key=lambda each: len(wanted & {*_cells(head, each)})
        )
        names = _cells(head, delimiter)
        places = {
            role: names.index(name)
            for role, name in columns_by_role(names, asked, path).items()
        }
        reader = csv.reader(lines, delimiter=delimiter, strict=True)
        for cells in reader:
            number = 1 + reader.line_num
            if not cells:
                continue
            if len(cells) != len(names):
                raise FileUnreadable(
                    path,
                    number,
                    f"a row must have {len(names)} cells, as the head has; got "
                    f"{len(cells)}: correct it, or leave out its list",
                )
            yield number, {role: cells[place] for role, place in places.items()}
    except (*UNPACKING_ERRORS, UnicodeError, csv.Error) as error:
        raise FileUnreadable(
            path, number, f"a file must be readable to its end; {error}"
        ) from error


def _cells(head: str, delimiter: str) -> list[str]:
    return next(csv.reader([head], delimiter=delimiter), [])


def _of_list(rows: list[Row], options: AdapterOptions) -> list[Event]:
    first = rows[0]
    names = "it says which rows are one list"
    list_id = needed(first["impression"], "impression", QUERIES, names)
    rows, others = shown_and_not(rows)
    if "position" in first and options.ordinals:
        rows = _ordered(rows, options.ordinal_base)
    shown = [
        needed(row["item"], "item", QUERIES, "it names what was shown") for row in rows
    ]
    at_ms = _at_ms(first["at"], "at", options)
    for row in rows:
        if row["at"] != first["at"]:
            _at_ms(row["at"], "at", options)
    query = text(first.get("query"), "query", QUERIES)
    queries: dict[str, str] = {}
    events = listed(
        list_id,
        query,
        at_ms,
        shown,
        options=options,
        queries=queries,
        user=text(first.get("user"), "user", QUERIES),
        session=text(first.get("session"), "session", QUERIES),
        beside=drawn_by(rows, others),
    )
    for place, (row, item) in enumerate(zip(rows, shown, strict=True), 1):
        if _is_yes(row.get("clicked")):
            when = row.get("clicked_at")
            events += clicked(
                list_id,
                query,
                at_ms if when in (None, "") else _at_ms(when, "clicked_at", options),
                item,
                text(row.get("action"), "action", QUERIES) or "click",
                options=options,
                queries=queries,
                position=place,
                query_field="query",
            )
    return events


def _ordered(rows: list[Row], base: int) -> list[Row]:
    places = [_whole(row["position"]) for row in rows]
    if sorted(places) != list(range(base, base + len(rows))):
        remedy = ""
        if base and 0 in places:
            remedy = ": set ordinal_base = 0 where places are counted from 0"
        raise NotAdapted(
            "ordinal",
            f"positions of a list must be {base} to {base + len(rows) - 1}, each once; "
            f"got {sorted(places)[:8]}{remedy}",
            kind=QUERIES,
        )
    return [row for _, row in sorted(zip(places, rows, strict=True), key=_place)]


def _place(pair: tuple[int, Row]) -> int:
    return pair[0]


def _whole(value: Any) -> int:
    return _converted(value, int, "position must be a whole number")


def _is_yes(value: Any) -> bool:
    word = str(value).strip().lower() if value is not None else ""
    if word in _TRUE or word in _FALSE:
        return word in _TRUE
    return _converted(value, float, "clicked must be yes or no, or a number") > 0


def _converted(value: Any, kind: Callable[[Any], T], rule: str) -> T:
    try:
        found = kind(value)
        if not math.isnan(found) and (found == value or isinstance(value, str)):
            return found
    except (TypeError, ValueError, OverflowError):
        pass
    raise NotAdapted("type", f"{rule}; got {value!r:.60}", kind=QUERIES)


def _at_ms(value: Any, name: str, options: AdapterOptions) -> int:
    unit = "ms" if isinstance(value, EpochMs) else options.time_unit
    return at_ms_of(value, unit, name, kind=QUERIES)
