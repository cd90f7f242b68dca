"""Ids and queries in input events: how long they may be, and where they lead."""

import hashlib

from rankstream.wire import routing
from rankstream.wire.bounds import (
    MAX_CANARY_CHARACTERS,
    MAX_ID_CHARACTERS,
    MAX_QUERY_CHARACTERS,
)
from rankstream.wire.events import ClickEvent, QueryEvent
from rankstream.wire.refusal_codes import Code
from rankstream.wire.segments import query_of_list
from streams.ingest.refusal import Refused, refuse


def check_id(name: str, value: str, *, may_be_empty: bool = False) -> None:
    """Refuse an id that is empty or too long."""
    if not value and not may_be_empty:
        refuse(Code.IDENTITY, f"{name} must not be empty")
    _check_length(name, value, MAX_ID_CHARACTERS)


def check_canary(tag: str) -> None:
    """Refuse the name of a stage that none can have; whether it was is for readers."""
    _check_length("canary", tag, MAX_CANARY_CHARACTERS)


def _check_length(name: str, value: str, most: int) -> None:
    if len(value) > most:
        refuse(
            Code.IDENTITY, f"{name} must be at most {most} characters; got {len(value)}"
        )


def query_of(event: QueryEvent, segment: str) -> str:
    """The normalised query, with its segment; empty if nothing of it can be seen.

    Parameters
    ----------
    segment
        The attribute that has it; empty where none is part of queries.
    """
    _check_length("query_id", event.query_id, MAX_QUERY_CHARACTERS)
    try:
        return query_of_list(event.query_id, event.attributes, segment)
    except ValueError as error:
        raise Refused(Code.SEGMENT, str(error)) from error


def query_of_click(query_id: str) -> str:
    """The normalised query of a click; empty if nothing of it can be seen."""
    _check_length("query_id", query_id, MAX_QUERY_CHARACTERS)
    return routing.normalised_query(query_id)


def route_of_click(event: ClickEvent) -> int:
    """The route of its query, else the one that its impression's id holds."""
    if event.query_id is not None:
        _check_length("query_id", event.query_id, MAX_QUERY_CHARACTERS)
    route = routing.route_of_click(event.query_id, event.impression_id)
    if route is None:
        refuse(Code.NO_ROUTE, "a click must name its query_id, or an id that routes it")
    return route


def unit_of(event: QueryEvent) -> int:
    """A hash of the session, else the user, else the id: what clusters errors.

    An empty name is none, or all who have none would be one session.
    """
    if event.session:
        named = "s" + event.session
    elif event.user:
        named = "u" + event.user
    else:
        named = "i" + event.impression_id
    return int.from_bytes(
        hashlib.blake2b(named.encode(), digest_size=8).digest(), "big"
    )
