"""Tables of clicks: a row a click, which names its list or how to find it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from producers.formats.adapted import Adapted
from producers.formats.columns import is_yes, time_of, whole
from producers.formats.rows_together import ReadRows, Row
from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.fields import needed, text
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS

_encode = msgspec.json.Encoder(enc_hook=str).encode


class Click(msgspec.Struct, array_like=True, kw_only=True):
    """A click before its list is known; empty and None where a row does not say it.

    Parameters
    ----------
    line, file
        Where it stands.
    row
        The row as JSON, for the dead letter that it may become.
    """

    line: int
    file: int
    row: bytes
    impression: str = ""
    session: str = ""
    query: str = ""
    at_ms: int | None = None
    item: str = ""
    position: int | None = None
    action: str = "click"
    event: str = ""


def clicks_of(
    table: ReadRows,
    *,
    options: AdapterOptions,
    adapted: Adapted,
    joins_sessions: bool,
) -> Iterator[Click | Event]:
    """The clicks in rows that are named by roles; a row that is none as an event.

    Rows that say that nothing was clicked say nothing, and so do actions that are no
    clicks.

    Parameters
    ----------
    joins_sessions
        Whether session and time name the list, rather than its id.

    Raises
    ------
    FileUnreadable
    """
    for line, row in table.read(()):
        adapted.documents += 1
        adapted.line = line
        try:
            click = _click(row, line, adapted.file, options, joins_sessions)
        except NotAdapted as error:
            adapted.refuse(error)
            words = f"{error.code}: {error}"
            yield Event(0, CLICKS, _encode(row), words)
            continue
        if click is None:
            adapted.silent += 1
        else:
            yield click


def _click(
    row: Row, line: int, file: int, options: AdapterOptions, joins_sessions: bool
) -> Click | None:
    def told(name: str) -> str:
        return text(row.get(name), name, CLICKS)

    action = told("action") or "click"
    is_other = options.actions and action not in options.actions
    if action in options.impression_actions or is_other:
        return None
    if "clicked" in row and not is_yes(row["clicked"]):
        return None
    impression, session = told("impression"), told("session")
    if joins_sessions:
        why = "it says whose list was clicked, as --session-join asks for"
        needed(session, "session", CLICKS, why)
    elif not impression:
        needed(impression, "impression", CLICKS, "it joins a click to its list")
    when = row.get("clicked_at")
    name = "at" if when in (None, "") else "clicked_at"
    when = row.get(name)
    return Click(
        line=line,
        file=file,
        row=_encode(row),
        impression=impression,
        session=session,
        query=told("query"),
        at_ms=None if when in (None, "") else time_of(when, name, options, CLICKS),
        item=told("item"),
        position=_position(row, options),
        action=action,
        event=told("event"),
    )


def _position(row: Row, options: AdapterOptions) -> int | None:
    told: Any = row.get("position")
    if not options.ordinals or told in (None, ""):
        if not text(row.get("item"), "item", CLICKS):
            raise NotAdapted("no-id", "item or position must be there: it names what")
        return None
    found = whole(told) - options.ordinal_base
    if found < 0:
        remedy = (
            ": set ordinal_base = 0 where places are counted from 0"
            if found == -1 and options.ordinal_base
            else ""
        )
        raise NotAdapted(
            "ordinal",
            f"position must be at least {options.ordinal_base}, ordinal_base; got "
            f"{told!r:.60}{remedy}",
        )
    return found + 1
