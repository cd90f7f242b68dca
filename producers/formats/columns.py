"""Tables of shown items, CSV or Parquet: a row an item, its columns named by roles.

Rows of a list make its query event, and a click for each row that says so. A table may
have a row a list instead, with all its items in one column.
"""

import io
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from producers.formats.adapted import Adapted
from producers.formats.list_policies import drawn_by, shown_and_not
from producers.formats.rows_together import (
    PLAIN,
    EpochMs,
    Numbered,
    ReadRows,
    Row,
    Tables,
    rows_together,
)
from producers.formats.source_file import opened
from producers.formats.tables import columns_by_role, csv_rows, parted_by
from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.events import clicked, listed
from rankstream.adapters.fields import needed, text
from rankstream.adapters.file_formats import LISTS, roles_of
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event
from rankstream.wire.routing import identity
from rankstream.wire.topics import QUERIES

SEPARATORS = "|;,"
"""Between items of a list in one cell: the first of these that is there."""

EPOCH_MS = 1_577_836_800_000
"""2020-01-01: when the first list was shown of a table that has no times."""

STEP_MS = 10
"""Between lists of such a table: those of 90 days are 777 million."""

NO_TIME = "no column says when lists were shown: they are taken one after another"
NO_QUERY = (
    "no column says what was asked for: each list is a query of its own, of which no "
    "other list tells; --columns query=COLUMN names it"
)
NO_POSITION = "no column says positions: rows of a list are taken in their order"

_TRUE = frozenset({"1", "true", "t", "yes", "y"})
_FALSE = frozenset({"0", "false", "f", "no", "n", ""})


class TableForm(NamedTuple):
    """Which columns a table has, as what, and how they are read.

    Parameters
    ----------
    columns
        The column of each role, where it has another name.
    table
        `LISTS` or `CLICKS`.
    joins_sessions
        Whether session and time may stand for the id of a list.
    """

    columns: Mapping[str, str] = {}
    table: str = LISTS
    joins_sessions: bool = False

    def names(self) -> set[str]:
        """Names that its columns may have."""
        known = {each for role in roles_of(self.table) for each in role.names}
        return known | {*self.columns.values()}

    def by_role(self, names: list[str], path: Path) -> dict[str, str]:
        """The column of each role that there is; see `columns_by_role`."""
        return columns_by_role(
            names, self.columns, path, self.table, joins_sessions=self.joins_sessions
        )


T = TypeVar("T", int, float)

_encode = msgspec.json.Encoder(enc_hook=str).encode


def read_csv(
    path: Path,
    *,
    columns: Mapping[str, str] | None = None,
    adapter_options: AdapterOptions | None = None,
    adapted: Adapted | None = None,
    epoch_ms: int = EPOCH_MS,
    tables: Tables = PLAIN,
) -> Iterator[Event]:
    """The lists of a table and their clicks, in the order of their first rows.

    Parameters
    ----------
    columns
        The column of each role, where it has another name.
    epoch_ms
        The time of the first list, where the table has none.
    tables
        Where rows are sorted that are not together.

    Raises
    ------
    FileUnreadable
        Where a column is missing, or a row has another number of cells than the head.
    """
    form = TableForm(columns or {}, joins_sessions=tables.joins_sessions)
    yield from events_of(
        csv_table(path, form),
        options=adapter_options or AdapterOptions(),
        adapted=adapted or Adapted(),
        epoch_ms=epoch_ms,
        tables=tables,
    )


def csv_table(path: Path, form: TableForm) -> ReadRows:
    """The rows of a CSV file, named by roles."""

    def read(roles: tuple[str, ...]) -> Iterator[Numbered]:
        with opened(path) as file:
            lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
            yield from _csv_rows(path, lines, form, roles)

    return ReadRows(read, path)


def csv_names(path: Path, asked: Iterable[str]) -> list[str]:
    """The head of a CSV file.

    Parameters
    ----------
    asked
        Names that are likely to be in it, which tell what separates them.
    """
    with opened(path) as file:
        lines = io.TextIOWrapper(file, "utf-8-sig", newline="")
        known = {*asked}
        return next(csv_rows(path, lines, lambda head: parted_by(head, known), ""))[1]


def events_of(
    table: ReadRows,
    *,
    options: AdapterOptions,
    adapted: Adapted,
    epoch_ms: int = EPOCH_MS,
    tables: Tables = PLAIN,
) -> Iterable[Event]:
    """The lists in rows that are named by roles, and their clicks.

    Raises
    ------
    FileUnreadable
    """
    at_ms = 0
    for place, together in enumerate(rows_together(table, tables)):
        adapted.documents += 1
        adapted.line = together[0][0]
        shown = [row for _, row in together]
        if "at" not in shown[0]:
            adapted.note(NO_TIME)
            now = {"at": EpochMs(epoch_ms + STEP_MS * place)}
            shown = [{**row, **now} for row in shown]
        if "query" not in shown[0]:
            adapted.note(NO_QUERY)
        _note_places(shown, adapted)
        # A cell with all items is a list: the next one of its id repeats it.
        lists = [[row] for row in shown] if "items" in shown[0] else [shown]
        for rows in lists:
            try:
                events = _of_list(rows, options)
            except NotAdapted as error:
                adapted.refuse(error)
                words = f"{error.code}: {error}"
                events = [Event(at_ms, QUERIES, _encode(rows), words)]
            for event in events:
                at_ms = event.at_ms
                yield event


def _note_places(rows: list[Row], adapted: Adapted) -> None:
    """Keep what is not told of where items stood, and whether they were clicked."""
    first = rows[0]
    if "position" not in first and "items" not in first:
        adapted.note(NO_POSITION)
    if "clicked" in first:
        adapted.n_empty += sum(row["clicked"] in (None, "") for row in rows)
    else:
        adapted.lacks_clicked = True


def _csv_rows(
    path: Path, lines: io.TextIOWrapper, form: TableForm, roles: tuple[str, ...]
) -> Iterator[Numbered]:
    known = form.names()
    remedy = "correct it, or leave out its list"
    rows = csv_rows(path, lines, lambda head: parted_by(head, known), remedy)
    _, names = next(rows)
    places = {
        role: names.index(name)
        for role, name in form.by_role(names, path).items()
        if not roles or role in roles
    }
    for number, cells in rows:
        yield number, {role: cells[place] for role, place in places.items()}


def _of_list(rows: list[Row], options: AdapterOptions) -> list[Event]:
    first = rows[0]
    if "impression" in first:
        names = "it says which rows are one list"
        list_id = needed(first["impression"], "impression", QUERIES, names)
    else:
        list_id = list_of_session(first)
    _check_one_list(rows, list_id)
    rows, others = shown_and_not(rows)
    if "items" in first:
        rows = [
            {**first, "item": item} for row in rows for item in _items(row, options)
        ]
    elif "position" in first and options.ordinals:
        rows = _ordered(rows, options.ordinal_base)
    shown = [
        needed(row["item"], "item", QUERIES, "it names what was shown") for row in rows
    ]
    at_ms = time_of(first["at"], "at", options)
    for row in rows:
        if row["at"] != first["at"]:
            time_of(row["at"], "at", options)
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
        if is_yes(row.get("clicked")):
            when = row.get("clicked_at")
            events += clicked(
                list_id,
                query,
                at_ms if when in (None, "") else time_of(when, "clicked_at", options),
                item,
                text(row.get("action"), "action", QUERIES) or "click",
                options=options,
                queries=queries,
                position=place,
                query_field="query",
            )
    return events


def _check_one_list(rows: list[Row], list_id: str) -> None:
    """Refuse rows of two lists that have one id."""
    for name in ("query", "session", "user"):
        told = {text(row.get(name), name, QUERIES) for row in rows}
        if len(told) > 1:
            one, other = sorted(map(repr, told))[:2]
            raise NotAdapted(
                "rows",
                f"rows of list {list_id!r:.60} must have one {name}; got {one:.60} and "
                f"{other:.60}: give each list an id of its own, or take --session-join",
                kind=QUERIES,
            )


def list_of_session(row: Row) -> str:
    """The id of a list that has none: made of its session, query and time."""
    told = [text(row.get(name), name, QUERIES) for name in ("session", "query")]
    session = needed(told[0], "session", QUERIES, "it says which rows are one list")
    return identity(session, told[1], str(row["at"])).hex()


def _items(row: Row, options: AdapterOptions) -> list[Any]:
    """All items in a cell: an array, or text that separates them."""
    cell = row["items"]
    if isinstance(cell, list):
        return cell
    words = text(cell, "items", QUERIES).strip()
    if words.startswith("["):
        try:
            return list(msgspec.json.decode(words, type=list))
        except (msgspec.DecodeError, RecursionError) as error:
            raise NotAdapted(
                "type", f"items must be a JSON array; {error}", kind=QUERIES
            ) from error
    separator = options.separator or next(filter(words.__contains__, SEPARATORS), "|")
    return [each.strip() for each in words.split(separator) if each.strip()]


def _ordered(rows: list[Row], base: int) -> list[Row]:
    places = [whole(row["position"]) for row in rows]
    if sorted(places) != list(range(base, base + len(rows))):
        remedy = ""
        if base and 0 in places:
            remedy = ": set ordinal_base = 0 where places are counted from 0"
        elif len({*places}) < len(places):
            remedy = (
                ": where rows repeat, leave out repeated ones, of a DataFrame with "
                "df.drop_duplicates()"
            )
        raise NotAdapted(
            "ordinal",
            f"positions of a list must be {base} to {base + len(rows) - 1}, each once; "
            f"got {sorted(places)[:8]}{remedy}",
            kind=QUERIES,
        )
    return [row for _, row in sorted(zip(places, rows, strict=True), key=_place)]


def _place(pair: tuple[int, Row]) -> int:
    return pair[0]


def whole(value: Any) -> int:
    """A place, which a cell may have as text.

    Raises
    ------
    NotAdapted
    """
    return _converted(value, int, "position must be a whole number")


def is_yes(value: Any) -> bool:
    """Whether a cell says yes, or a number above 0.

    Raises
    ------
    NotAdapted
    """
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


def time_of(value: Any, name: str, options: AdapterOptions, kind: str = QUERIES) -> int:
    """Epoch milliseconds of a cell.

    Raises
    ------
    NotAdapted
    """
    unit = "ms" if isinstance(value, EpochMs) else options.time_unit
    return at_ms_of(value, unit, name, kind=kind)
