"""Our events, made of what an adapter found."""

from collections.abc import Mapping
from typing import Any

import msgspec

from rankstream.adapters.adapter import (
    NO_QUERY,
    AdapterOptions,
    NotAdapted,
    Queries,
)
from rankstream.wire.input_events import Event
from rankstream.wire.routing import normalised_query, route_of_click
from rankstream.wire.topics import CLICKS, QUERIES

_encode = msgspec.json.Encoder().encode


def query_of_list(list_id: str, asked: str, options: AdapterOptions) -> str:
    """The query that a list and its clicks go by."""
    # A text without a visible character names no query.
    is_named = options.query == "text" and normalised_query(asked)
    return asked if is_named else list_id


def listed(  # noqa: PLR0913  what a list has
    list_id: str,
    asked: str,
    at_ms: int,
    shown: list[str],
    *,
    options: AdapterOptions,
    queries: Queries | None = None,
    user: str = "",
    session: str = "",
    features: list[list[float]] | None = None,
    beside: Mapping[str, Any] | None = None,
) -> list[Event]:
    """The event of a list that was shown.

    Parameters
    ----------
    asked
        What the user asked for; empty where that is not known.
    beside
        Further fields of the event.
    """
    query = query_of_list(list_id, asked, options)
    if queries is not None:
        queries[list_id] = query
    event: dict[str, Any] = {
        "impression_id": list_id,
        "query_id": query,
        "at_ms": at_ms,
        "shown": shown,
    }
    optional = (
        ("model", options.model),
        ("user", user),
        ("session", session),
        ("features", features),
    )
    event |= {name: value for name, value in optional if value}
    event |= beside or {}
    return [Event(at_ms, QUERIES, _encode(event))]


def clicked(  # noqa: PLR0913  what a click has
    list_id: str,
    asked: str,
    at_ms: int,
    item: str,
    action: str,
    *,
    options: AdapterOptions,
    queries: Queries | None = None,
    position: int | None = None,
    event_id: str = "",
    query_field: str,
) -> list[Event]:
    """The event of an action on an item.

    Parameters
    ----------
    asked
        The query as the click has it; that of its list, where it is known, counts.
    query_field
        Where documents have it, for who must be told.

    Raises
    ------
    NotAdapted
        Where nothing says to which partition its list went.
    """
    if options.query == "id":
        query = list_id
    else:
        query = (queries.get(list_id) if queries is not None else None) or asked
    if route_of_click(query, list_id) is None:
        raise NotAdapted(
            NO_QUERY,
            f"a click must have {query_field}, as it goes where lists of its query "
            'are; send it, or set query = "id", which keeps each list apart',
        )
    event: dict[str, Any] = {
        "impression_id": list_id,
        "query_id": query,
        "at_ms": at_ms,
        "item_id": item,
        "action": action,
    }
    optional = (("position", position), ("event_id", event_id))
    event |= {name: value for name, value in optional if value}
    if not normalised_query(query):
        del event["query_id"]
    return [Event(at_ms, CLICKS, _encode(event))]
