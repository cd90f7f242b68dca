"""Feedback events of Metarank: `ranking`, `interaction`, `item` and `user`."""

import sys
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
from rankstream.adapters.impressions import Seen
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event
from rankstream.wire.topics import CLICKS, QUERIES

QUERY_FIELD = "query"
"""The field of a ranking, and of an interaction, that says what the user asked for."""


class Metarank:
    """A ranking is a list, an interaction a click; metadata says nothing to us."""

    name = "metarank"
    doc = (
        "feedback events of Metarank: a ranking is a list, an interaction a click; "
        "item and user are passed over"
    )
    time_field = "timestamp"

    @refusing
    def adapt(
        self,
        document: bytes,
        options: AdapterOptions,
        headers: Headers = (),  # noqa: ARG002
        queries: Queries | None = None,
        seen: Seen | None = None,  # noqa: ARG002
    ) -> list[Event]:
        """The list or the click in an event; none in metadata."""
        fields = object_in(document)
        event = fields.get("event")
        if event == "ranking":
            return _list(fields, options, queries)
        if event == "interaction":
            return _click(fields, options, queries)
        if event in ("item", "user"):
            return []
        raise NotAdapted(
            "event",
            f"event must be ranking, interaction, item or user; got {event!r:.60}",
        )


def _list(
    fields: dict[str, Any], options: AdapterOptions, queries: Queries | None
) -> list[Event]:
    list_id = needed(fields.get("id"), "id", QUERIES, "it joins clicks to their list")
    at_ms = at_ms_of(fields.get("timestamp"), options.time_unit, kind=QUERIES)
    if fields.get("items") is None:
        raise NotAdapted("no-list", "a ranking must have items", kind=QUERIES)
    rows = [
        objects(each, "an item", QUERIES)
        for each in items(fields["items"], "items", QUERIES)
    ]
    shown = [
        needed(each.get("id"), "id of an item", QUERIES, "it names what was shown")
        for each in rows
    ]
    if not shown:
        return []
    return listed(
        list_id,
        _asked(fields, QUERIES),
        at_ms,
        shown,
        options=options,
        queries=queries,
        user=text(fields.get("user"), "user", QUERIES),
        session=text(fields.get("session"), "session", QUERIES),
        features=_features(rows),
    )


def _click(
    fields: dict[str, Any], options: AdapterOptions, queries: Queries | None
) -> list[Event]:
    why = "it says what the user did"
    action = needed(fields.get("type"), "type", CLICKS, why, "type")
    if action in options.impression_actions:
        return []
    if options.actions and action not in options.actions:
        return []
    if fields.get("ranking") is None:
        raise NotAdapted(
            "no-id", "ranking must be there: it joins a click to the list it was on"
        )
    return clicked(
        needed(fields["ranking"], "ranking", CLICKS, "it joins clicks to their list"),
        _asked(fields, CLICKS),
        at_ms_of(fields.get("timestamp"), options.time_unit, kind=CLICKS),
        needed(fields.get("item"), "item", CLICKS, "it names what was clicked"),
        action,
        options=options,
        queries=queries,
        event_id=text(fields.get("id"), "id", CLICKS),
        query_field=f"a field named {QUERY_FIELD}",
    )


def _asked(fields: dict[str, Any], kind: str) -> str:
    for name, value in _named(fields, kind):
        if name == QUERY_FIELD:
            return text(value, f"the field {QUERY_FIELD}", kind)
    return ""


def _features(rows: list[dict[str, Any]]) -> list[list[float]] | None:
    """A row of each item, by names of the fields; None where they have not the same."""
    found = [_numbers(row) for row in rows]
    names = sorted(found[0])
    if not names or any(sorted(each) != names for each in found):
        return None
    return [[each[name] for name in names] for each in found]


def _numbers(row: dict[str, Any]) -> dict[str, float]:
    return {
        name: value
        for name, value in _named(row, QUERIES)
        if isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    }


def _named(fields: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    if fields.get("fields") is None:
        return []
    pairs = []
    for each in items(fields["fields"], "fields", kind):
        field = objects(each, "a field", kind)
        pairs.append((text(field.get("name"), "name of a field", kind), field))
    return [(name, field.get("value")) for name, field in pairs]
