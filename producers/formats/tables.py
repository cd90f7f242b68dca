"""Tables with a head: rows of CSV, and which column of any table is which."""

import csv
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path

from producers.formats.source_file import UNPACKING_ERRORS, FileUnreadable
from rankstream.adapters.file_formats import FEATURES, LISTS, Role, roles_of
from rankstream.wire.nearest_name import nearest

_TIME = re.compile(
    r"(?:^|[_\W])(?:at|ts|time|timestamp|date|datetime|moment|when|day|ms)(?:$|[_\W])"
    r"|(?:timestamp|datetime)$|(?-i:[a-z](?:At|Ts|Time|Date)$)",
    re.IGNORECASE,
)


def columns_by_role(
    names: Sequence[str],
    asked: Mapping[str, str],
    path: Path,
    table: str = LISTS,
    *,
    joins_sessions: bool = False,
) -> dict[str, str]:
    """The column of each role that a table has, but for features, which are several.

    Parameters
    ----------
    asked
        The column of a role, where it has another name.
    table
        `LISTS` or `CLICKS`.
    joins_sessions
        Whether session and time stand for the id of a list.

    Raises
    ------
    FileUnreadable
        Where one is missing, or there twice.
    """
    found: dict[str, str] = {}
    for role in roles_of(table):
        if role.name == FEATURES:
            continue
        known = asked.get(role.name)
        if known is not None and known not in names:
            raise _missing(role, known, names, path)
        name = known or next((each for each in role.names if each in names), "")
        if not name:
            continue
        if names.count(name) > 1:
            raise FileUnreadable(
                path,
                1,
                f"a column {role.name} must be there once; {names.count(name)} are "
                f"named {name!r:.60}: rename the others",
            )
        found[role.name] = name
    if "items" in found and "item" in found and "items" not in asked:
        # A column `shown` beside that of an item says something else.
        del found["items"]
    _check(found, asked, names, path, table, joins_sessions=joins_sessions)
    _check_apart(found, asked, path)
    return found


def _check_apart(
    found: Mapping[str, str], asked: Mapping[str, str], path: Path
) -> None:
    """Refuse a column that was given two roles; a user may be the session."""
    for role in sorted(asked):
        column = found.get(role)
        others = [each for each in found if each != role and found[each] == column]
        if column is not None and others and {role, *others} != {"session", "user"}:
            raise FileUnreadable(
                path,
                1,
                f"a column must have one role; {column!r:.60} is {role}, as --columns "
                f"says, and {others[0]}: name another with --columns {others[0]}=...",
            )


def looks_like_time(name: str) -> bool:
    """Whether a column of this name is likely to hold a time.

    Examples
    --------
    >>> [looks_like_time(each) for each in ("shown_at", "createdAt", "ts")]
    [True, True, True]
    >>> [looks_like_time(each) for each in ("format", "items", "beat", "update")]
    [False, False, False, False]
    """
    return bool(_TIME.search(name))


def _check(
    found: Mapping[str, str],
    asked: Mapping[str, str],
    names: Sequence[str],
    path: Path,
    table: str,
    *,
    joins_sessions: bool,
) -> None:
    rows = {role.name: role for role in roles_of(table)}
    if table == LISTS:
        needed = _needed_of_lists(found, names, joins_sessions=joins_sessions)
    else:
        needed = _needed_of_clicks(found, names, joins_sessions=joins_sessions)
    for name in needed:
        if name not in found:
            raise _missing(rows[name], name, names, path, found.values())
    if "items" in found and "item" in asked:
        raise FileUnreadable(
            path, 1, "a table must have item or items; both are named: leave out one"
        )
    if "items" in found and "clicked" in found:
        raise FileUnreadable(
            path,
            1,
            f"a column clicked must be of one item; {found['clicked']!r:.60} stands "
            f"beside {found['items']!r:.60}, which holds many: give clicks in a table "
            "of their own, with --clicks, and name no clicked here",
        )


def _needed_of_lists(
    found: Mapping[str, str], names: Sequence[str], *, joins_sessions: bool
) -> list[str]:
    needed = ["session", "at"] if joins_sessions else ["impression"]
    if "items" not in found:
        needed.append("item")
    if not joins_sessions and _has_time(found, names):
        needed.append("at")
    return needed


def _needed_of_clicks(
    found: Mapping[str, str], names: Sequence[str], *, joins_sessions: bool
) -> list[str]:
    needed = ["session"] if joins_sessions else ["impression"]
    if "clicked_at" not in found and (joins_sessions or _has_time(found, names)):
        needed.append("at")
    if "position" not in found:
        needed.append("item")
    return needed


def _has_time(found: Mapping[str, str], names: Sequence[str]) -> bool:
    """Whether anything here is a time, as it seems: then lists must have one."""
    return "clicked_at" in found or any(
        looks_like_time(name) for name in names if name not in found.values()
    )


def _missing(
    role: Role,
    name: str,
    names: Sequence[str],
    path: Path,
    taken: Collection[str] = (),
) -> FileUnreadable:
    free = [each for each in names if each not in taken]
    near = nearest(name, free)
    if not near and role.name == "at":
        near = next(filter(looks_like_time, free), "")
    among = ", ".join(names)
    if not any(names):
        return FileUnreadable(path, 1, "a table must begin with a head; it is empty")
    remedy = (
        f"did you mean {near!r:.60}? name it with --columns {role.name}={near:.60}"
        if near
        else f"name it with --columns {role.name}=COLUMN"
    )
    if role.name == "item":
        remedy += ", or items=COLUMN where a cell holds a whole list"
    return FileUnreadable(
        path,
        1,
        f"a column {role.name} must be there; no {name!r:.60} among "
        f"{among!r:.300}: {remedy}",
    )


DELIMITERS = ",;\t|"

Head = tuple[list[str], str]
"""Names of the columns, and what separates cells."""


def parted_by(head: str, known: set[str] | None = None) -> Head:
    """The names in a head, by what parts it into most names, or most known ones."""

    def n_parts(delimiter: str) -> int:
        names = _cells(head, delimiter)
        return len(names if known is None else known & {*names})

    delimiter = max(DELIMITERS, key=n_parts)
    return _cells(head, delimiter), delimiter


def _cells(head: str, delimiter: str) -> list[str]:
    return next(csv.reader([head], delimiter=delimiter), [])


def csv_rows(
    path: Path, lines: TextIOWrapper, parted: Callable[[str], Head], remedy: str
) -> Iterator[tuple[int, list[str]]]:
    """The head in line 1, and each row with the line that it ends in.

    Parameters
    ----------
    parted
        The head's names, and what separates cells.
    remedy
        What to do about a row of too few cells, or too many.

    Raises
    ------
    FileUnreadable
    """
    number = 1
    try:
        names, delimiter = parted(lines.readline())
        yield number, names
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
                    f"{len(cells)}: {remedy}",
                )
            yield number, cells
    except (*UNPACKING_ERRORS, UnicodeError, csv.Error) as error:
        raise FileUnreadable(
            path, number, f"a file must be readable to its end; {error}"
        ) from error
