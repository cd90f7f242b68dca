"""Clicks whose form is plain, accepted without decoding each field.

Ingestion checks an event field by field, which costs more than to receive it. Most
clicks are plain: what is here accepted at once, ingestion accepts. All else is checked
as ingestion does, so that a refusal is in its words.
"""

from typing import Annotated

import msgspec

from rankstream.wire.bounds import LAST_MS, MAX_CLICK_BYTES, MAX_ID_CHARACTERS
from rankstream.wire.events import SCHEMA
from rankstream.wire.schemas import decoded
from rankstream.wire.units_of_time import LEAST_MS

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARACTERS)]
Query = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Time = Annotated[int, msgspec.Meta(ge=LEAST_MS, le=LAST_MS)]
Position = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]


class PlainClick(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False
):
    """A click event with a query, whose fields are within every limit."""

    impression_id: Id
    query_id: Query
    at_ms: Time
    item_id: Id | None = None
    position: Position | None = None
    action: Id = "click"
    event_id: Id | None = None
    schema: int = SCHEMA


_decode_one = msgspec.json.Decoder(PlainClick).decode
_decode_many = msgspec.json.Decoder(list[PlainClick]).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode


def plain_clicks(body: bytes, *, latest_ms: int, most: int) -> list[bytes] | None:
    """The clicks in a body, one or an array; None where it holds anything else.

    Parameters
    ----------
    latest_ms
        Latest time that a click may have.
    most
        Largest position.
    """
    is_array = body[:1] == b"["
    try:
        clicks = (
            decoded(_decode_many, body) if is_array else [decoded(_decode_one, body)]
        )
    except msgspec.DecodeError:
        return None
    for click in clicks:
        query, position = click.query_id, click.position
        if (
            click.at_ms > latest_ms
            or (position is None and click.item_id is None)
            or (position is not None and position > most)
            or not query.isascii()
            or query.isspace()
            or click.schema != SCHEMA
        ):
            return None
    values = [bytes(raw) for raw in _decode_raw(body)] if is_array else [body]
    if not values or max(map(len, values)) > MAX_CLICK_BYTES:
        return None
    return values
