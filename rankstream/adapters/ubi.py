"""User Behavior Insights of OpenSearch: documents of `ubi_queries` and `ubi_events`.

Documents are taken by their fields, never by a published schema: real ones do not keep
to it. One with `action_name` is an event, any other a query.
"""

from typing import Any, NamedTuple

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
from rankstream.adapters.impressions import Impression, Seen
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

JOIN_KEY = "it joins clicks to their list"


class Ubi:
    """A query with its hits is a list, an action on an object of it a click.

    Where its answer has no hits, what was seen of it is the list.
    """

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
        seen: Seen | None = None,
    ) -> list[Event]:
        """The list or the click in a document; none in what is neither."""
        fields = object_in(document)
        lists = None
        if seen is not None and queries is not None and options.impression_ms:
            lists = _Lists(seen, queries)
        if fields.get("action_name") is None:
            return _list(fields, options, queries, lists)
        return _click(fields, options, queries, lists)


class _Lists(NamedTuple):
    """Where lists are made of impressions, and which are known already."""

    seen: Seen
    queries: Queries

    def knows(self, list_id: str) -> bool:
        """Whether a list is there, or was refused."""
        return self.seen.is_known(list_id, self.queries)


def _list(
    fields: dict[str, Any],
    options: AdapterOptions,
    queries: Queries | None,
    lists: _Lists | None,
) -> list[Event]:
    name = next(
        (each for each in options.hit_fields if fields.get(each) is not None), ""
    )
    list_id = needed(fields.get("query_id"), "query_id", QUERIES, JOIN_KEY)
    asked = text(fields.get("user_query"), "user_query", QUERIES)
    if not name and not any(each in fields for each in options.hit_fields):
        if lists is not None:
            at_ms = at_ms_of(fields.get("timestamp"), options.time_unit, kind=QUERIES)
            if lists.knows(list_id) or lists.seen.is_listed(list_id, asked, at_ms):
                return []
        raise NotAdapted(
            "no-list",
            f"a query must have the items that it showed in {options.hit_fields[0]}, "
            "or in another of hit_fields, or impression events with its query_id",
            kind=QUERIES,
        )
    shown = [
        needed(each, f"an id in {name}", QUERIES, "it names what was shown", "type")
        for each in items(fields[name] if name else [], name, QUERIES)
    ]
    at_ms = at_ms_of(fields.get("timestamp"), options.time_unit, kind=QUERIES)
    if not shown:
        # A search without hits, or one that asked for facets only, showed no list; what
        # was seen of it may be one, and has its query.
        if lists is not None and not lists.knows(list_id):
            lists.seen.is_listed(list_id, asked, at_ms)
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
    fields: dict[str, Any],
    options: AdapterOptions,
    queries: Queries | None,
    lists: _Lists | None,
) -> list[Event]:
    """A click; none without an object's id, refused without that of its query."""
    action = needed(
        fields["action_name"], "action_name", CLICKS, "it says what", "type"
    )
    attributes = objects(fields.get("event_attributes"), "event_attributes", CLICKS)
    target = objects(attributes.get("object"), "object", CLICKS)
    item = text(target.get("object_id"), "object_id", CLICKS)
    if not item:
        return []
    if action in options.impression_actions:
        if lists is None:
            return []
        return _impression(fields, attributes, item, options, lists)
    if options.actions and action not in options.actions:
        return []
    list_id = needed(fields.get("query_id"), "query_id", CLICKS, JOIN_KEY)
    under_way = lists.seen.query_of(list_id, options) if lists is not None else ""
    return clicked(
        list_id,
        under_way or text(fields.get("user_query"), "user_query", CLICKS),
        at_ms_of(fields.get("timestamp"), options.time_unit, kind=CLICKS),
        item,
        action,
        options=options,
        queries=queries,
        position=_position(attributes, options),
        event_id=text(fields.get("event_id"), "event_id", CLICKS),
        query_field="user_query",
    )


def _impression(
    fields: dict[str, Any],
    attributes: dict[str, Any],
    item: str,
    options: AdapterOptions,
    lists: _Lists,
) -> list[Event]:
    """The list that an item was seen in; none where it does not say in which place."""
    ordinal = objects(attributes.get("position"), "position", QUERIES).get("ordinal")
    list_id = text(fields.get("query_id"), "query_id", QUERIES)
    if ordinal is None or not list_id or lists.knows(list_id):
        return []
    user = text(fields.get("user_id"), "user_id", QUERIES)
    seen = Impression(
        at_ms_of(fields.get("timestamp"), options.time_unit, kind=QUERIES),
        _whole(ordinal, QUERIES),
        item,
        list_id,
        text(fields.get("user_query"), "user_query", QUERIES),
        user or text(fields.get("client_id"), "client_id", QUERIES),
        text(fields.get("session_id"), "session_id", QUERIES),
    )
    return lists.seen.impression(seen, options, lists.queries)


def _whole(ordinal: Any, kind: str) -> int:
    if not isinstance(ordinal, int) or isinstance(ordinal, bool):
        words = f"ordinal must be a whole number; got {ordinal!r:.60}"
        raise NotAdapted("type", words, kind=kind)
    return int(ordinal)


def _position(attributes: dict[str, Any], options: AdapterOptions) -> int | None:
    place = objects(attributes.get("position"), "position", CLICKS)
    ordinal = place.get("ordinal")
    if ordinal is None or not options.ordinals:
        return None
    if _whole(ordinal, CLICKS) < options.ordinal_base:
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
    return int(ordinal) + 1 - options.ordinal_base
