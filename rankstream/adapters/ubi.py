"""User Behavior Insights of OpenSearch: documents of `ubi_queries` and `ubi_events`.

Documents are taken by their fields, never by a published schema: real ones do not keep
to it. One with `action_name` is an event, any other a query.
"""

from typing import Any

from rankstream.adapters.adapter import AdapterOptions, Headers, NotAdapted, Queries
from rankstream.adapters.events import clicked, listed
from rankstream.adapters.fields import (
    items,
    needed,
    object_in,
    objects,
    refusing,
    text,
)
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

JOIN_KEY = "it joins clicks to their list"


class Ubi:
    """A query with its hits is a list, an action on an object of it a click."""

    name = "ubi"
    doc = (
        "documents of ubi_queries and ubi_events (User Behavior Insights), a line or "
        "an element of an array each; lines of a bulk request are passed over"
    )
    time_field = "timestamp"

    @refusing
    def adapt(
        self,
        document: bytes,
        options: AdapterOptions,
        headers: Headers = (),  # noqa: ARG002
        queries: Queries | None = None,
    ) -> list[Event]:
        """The list or the click in a document; none in what is neither."""
        fields = object_in(document)
        if fields.get("action_name") is None:
            return _list(fields, options, queries)
        return _click(fields, options, queries)


def _list(
    fields: dict[str, Any], options: AdapterOptions, queries: Queries | None
) -> list[Event]:
    name = next(
        (each for each in options.hit_fields if fields.get(each) is not None), ""
    )
    list_id = needed(fields.get("query_id"), "query_id", QUERIES, JOIN_KEY)
    asked = text(fields.get("user_query"), "user_query", QUERIES)
    if not name and not any(each in fields for each in options.hit_fields):
        raise NotAdapted(
            "no-list",
            f"a query must have the items that it showed in {options.hit_fields[0]}, "
            "or in another of hit_fields",
            kind=QUERIES,
        )
    shown = [
        needed(each, f"an id in {name}", QUERIES, "it names what was shown", "type")
        for each in items(fields[name] if name else [], name, QUERIES)
    ]
    at_ms = at_ms_of(fields.get("timestamp"), options.time_unit, kind=QUERIES)
    if not shown:
        # A search without hits, or one that asked for facets only, showed no list.
        return []
    user = text(fields.get("user_id"), "user_id", QUERIES)
    return listed(
        list_id,
        asked,
        at_ms,
        shown,
        options=options,
        queries=queries,
        user=user or text(fields.get("client_id"), "client_id", QUERIES),
        session=text(fields.get("session_id"), "session_id", QUERIES),
    )


def _click(
    fields: dict[str, Any], options: AdapterOptions, queries: Queries | None
) -> list[Event]:
    action = needed(
        fields["action_name"], "action_name", CLICKS, "it says what", "type"
    )
    attributes = objects(fields.get("event_attributes"), "event_attributes", CLICKS)
    seen = objects(attributes.get("object"), "object", CLICKS)
    item = text(seen.get("object_id"), "object_id", CLICKS)
    if not item or action in options.impression_actions:
        return []
    if options.actions and action not in options.actions:
        return []
    list_id = needed(fields.get("query_id"), "query_id", CLICKS, JOIN_KEY)
    return clicked(
        list_id,
        text(fields.get("user_query"), "user_query", CLICKS),
        at_ms_of(fields.get("timestamp"), options.time_unit, kind=CLICKS),
        item,
        action,
        options=options,
        queries=queries,
        position=_position(attributes, options),
        event_id=text(fields.get("event_id"), "event_id", CLICKS),
        query_field="user_query",
    )


def _position(attributes: dict[str, Any], options: AdapterOptions) -> int | None:
    place = objects(attributes.get("position"), "position", CLICKS)
    ordinal = place.get("ordinal")
    if ordinal is None or not options.ordinals:
        return None
    if not isinstance(ordinal, int) or isinstance(ordinal, bool):
        raise NotAdapted("type", f"ordinal must be a whole number; got {ordinal!r:.60}")
    if ordinal < options.ordinal_base:
        remedy = (
            ": set ordinal_base = 0 where places are counted from 0"
            if ordinal == 0
            else ""
        )
        raise NotAdapted(
            "ordinal",
            f"ordinal must be at least {options.ordinal_base}, ordinal_base; got "
            f"{ordinal}{remedy}",
        )
    return ordinal + 1 - options.ordinal_base
