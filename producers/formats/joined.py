"""Lists in some files and clicks in others, joined into one log of events.

Both are sorted, on disk where memory does not hold them, so that neither needs to fit.
The order of what comes out follows from the files alone: all lists in the order of
theirs, then all clicks in the order of theirs.
"""

import collections
import heapq
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import msgspec

from producers.formats.adapted import Adapted
from producers.formats.click_tables import Click
from producers.formats.rows_together import SortedRow, SortedRows, Tables, packed
from rankstream.adapters.adapter import AdapterOptions, NotAdapted
from rankstream.adapters.events import clicked
from rankstream.wire.input_events import Event
from rankstream.wire.routing import identity, normalised_query
from rankstream.wire.topics import CLICKS, QUERIES

CODE = "not-joined"

MOST_LISTS = 1_000
"""Of a session within a window, the newest: those before are not searched."""

_LIST, _CLICK = 0, 1
_TIME_OFFSET = 1 << 63


class Sight(msgspec.Struct, gc=False):
    """What a click needs to know of its list."""

    impression_id: str
    query_id: str
    at_ms: int
    shown: list[str] = []
    session: str = ""


class NothingJoined(ValueError):
    """No click names a list of the same log.

    Operator action: compare the ids of both files, or name other columns.
    """


class Joining(NamedTuple):
    """How clicks find their lists.

    Parameters
    ----------
    tables
        What sorting may take, and whether sessions join.
    window_ms
        How much later than its list a click may be that is joined by its session.
    """

    tables: Tables
    window_ms: int


_see = msgspec.json.Decoder(Sight).decode
_unpack_list = msgspec.msgpack.Decoder(Sight).decode
_unpack_click = msgspec.msgpack.Decoder(Click).decode
_unpack_event = msgspec.msgpack.Decoder(tuple[int, str, bytes, str, int, int]).decode


def joined(
    lists: Iterable[Event],
    clicks: Iterable[Click | Event],
    joining: Joining,
    *,
    options: AdapterOptions,
    adapted: Adapted,
) -> Iterator[Event]:
    """All lists, then all clicks, each with the query of its list.

    Parameters
    ----------
    lists
        Events of lists, and what else their files hold, which is passed on.
    clicks
        Clicks that are to be joined, and finished events, which are passed on.
    options
        Of the clicks.

    Raises
    ------
    NothingJoined
    """
    by_session = joining.tables.joins_sessions
    third = joining.tables._replace(
        memory_bytes=max(1, joining.tables.memory_bytes // 3)
    )
    with (
        third.sorted_rows() as shown,
        third.sorted_rows() as wanted,
        third.sorted_rows() as found,
    ):
        n_lists = 0
        for event in lists:
            yield event
            if event.kind == QUERIES and not event.refusal:
                seen = _seen(event, by_session=by_session)
                if seen is not None:
                    shown.add(_key(seen, by_session), n_lists, packed(seen))
                    n_lists += 1
        for number, click in enumerate(clicks):
            if isinstance(click, Click):
                wanted.add(_key_of_click(click, by_session), number, packed(click))
            else:
                found.add(b"", number, _kept(click, adapted.file, adapted.line))
        join = _by_session if by_session else _by_id
        _join(join(shown, wanted, joining), found, n_lists, options, adapted)
        for _, _, content in found:
            at_ms, kind, value, refusal, adapted.file, adapted.line = _unpack_event(
                content
            )
            yield Event(at_ms, kind, value, refusal)


class Pair(NamedTuple):
    """A click and its list, if there is one."""

    number: int
    click: Click
    list: Sight | None


def _join(
    pairs: Iterator[Pair],
    found: SortedRows,
    n_lists: int,
    options: AdapterOptions,
    adapted: Adapted,
) -> None:
    n_joined = n_lost = 0
    lost: Click | None = None
    for number, click, seen in pairs:
        if seen is None:
            n_lost += 1
            lost = lost if lost and lost.line < click.line else click
        else:
            n_joined += 1
        found.add(b"", number, _event_of(click, seen, options, adapted))
    if lost is not None and not n_joined and n_lists:
        raise NothingJoined(
            f"clicks must name lists of the same log; none of {n_lost:,} does, the "
            f"first of them {_named(lost)}, at line {lost.line}: compare both files, "
            "and name the column that joins them with --columns "
            "queries.impression=COLUMN,clicks.impression=COLUMN, or join by session, "
            "query and time with --session-join"
        )
    words = f"{n_joined:,} of {n_joined + n_lost:,} clicks joined to {n_lists:,} lists"
    adapted.note(words)


def _event_of(
    click: Click, seen: Sight | None, options: AdapterOptions, adapted: Adapted
) -> bytes:
    try:
        if seen is None:
            raise NotAdapted(
                CODE,
                f"a click must name a list that is there; {_named(click)} names none",
            )
        at_ms = seen.at_ms if click.at_ms is None else click.at_ms
        (event,) = clicked(
            seen.impression_id,
            seen.query_id,
            at_ms,
            click.item,
            click.action,
            options=options,
            position=click.position,
            event_id=click.event,
            query_field="query",
        )
    except NotAdapted as error:
        adapted.refuse(error)
        event = Event(click.at_ms or 0, CLICKS, click.row, f"{error.code}: {error}")
    return _kept(event, click.file, click.line)


def _named(click: Click) -> str:
    if click.impression:
        return f"impression {click.impression!r:.60}"
    query = f", query {click.query!r:.60}" if click.query else ""
    item = f", item {click.item!r:.60}" if click.item else ""
    return f"session {click.session!r:.60}{query}{item} at {click.at_ms}"


def _kept(event: Event, file: int, line: int) -> bytes:
    return msgspec.msgpack.encode((*event, file, line))


def _seen(event: Event, *, by_session: bool) -> Sight | None:
    """What a click needs of a list; None where it is no sound event."""
    try:
        seen = _see(event.value)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    if not by_session:
        # The id is enough: items and session only take room.
        seen.shown, seen.session = [], ""
    elif not seen.session:
        return None
    return seen


def _key(seen: Sight, by_session: bool) -> bytes:
    if by_session:
        return _place(seen.session, seen.at_ms)
    return seen.impression_id.encode("utf-8", "replace")


def _key_of_click(click: Click, by_session: bool) -> bytes:
    if by_session:
        return _place(click.session, click.at_ms or 0)
    return click.impression.encode("utf-8", "replace")


def _place(session: str, at_ms: int) -> bytes:
    """Of one length, so that sessions stay apart and their times in order."""
    return identity(session) + (at_ms + _TIME_OFFSET).to_bytes(8, "big")


def _merged(
    shown: SortedRows, wanted: SortedRows
) -> Iterator[tuple[bytes, int, int, bytes]]:
    """Both by key, lists before clicks."""

    def marked(
        rows: Iterable[SortedRow], mark: int
    ) -> Iterator[tuple[bytes, int, int, bytes]]:
        return ((key, mark, number, content) for key, number, content in rows)

    return heapq.merge(marked(shown, _LIST), marked(wanted, _CLICK))


def _by_id(shown: SortedRows, wanted: SortedRows, _: Joining) -> Iterator[Pair]:
    key_found: bytes | None = None
    content_found = b""
    for key, mark, number, content in _merged(shown, wanted):
        if mark == _CLICK:
            seen = _unpack_list(content_found) if key == key_found else None
            yield Pair(number, _unpack_click(content), seen)
        elif key != key_found:
            # A repeated list is a duplicate: the first one counts.
            key_found, content_found = key, content


def _by_session(
    shown: SortedRows, wanted: SortedRows, joining: Joining
) -> Iterator[Pair]:
    session = b""
    recent: collections.deque[Sight] = collections.deque(maxlen=MOST_LISTS)
    for key, mark, number, content in _merged(shown, wanted):
        if key[:-8] != session:
            session = key[:-8]
            recent.clear()
        if mark == _LIST:
            recent.append(_unpack_list(content))
            continue
        click = _unpack_click(content)
        first_ms = (click.at_ms or 0) - joining.window_ms
        while recent and recent[0].at_ms < first_ms:
            recent.popleft()
        matching = (each for each in reversed(recent) if _is_of(click, each))
        yield Pair(number, click, next(matching, None))


def _is_of(click: Click, seen: Sight) -> bool:
    """Whether a list may be that of a click, by its query and what it showed."""
    if click.impression and click.impression != seen.impression_id:
        return False
    # A list without a query bears its id.
    is_named = seen.query_id != seen.impression_id
    if (
        is_named
        and click.query
        and normalised_query(click.query) != normalised_query(seen.query_id)
    ):
        return False
    if click.item and click.item not in seen.shown:
        return False
    return click.position is None or click.position <= len(seen.shown)
