"""Documents of `POST /v1/events` at a look, and what is said of refused ones."""

from http import HTTPStatus
from typing import Annotated, NamedTuple

import msgspec

from rankstream.adapters.adapter import NotAdapted
from rankstream.adapters.registry import NAMES, resembled
from rankstream.operations.serving.problems import Problem
from rankstream.operations.serving.requests import Rejected
from rankstream.operations.serving.sender import Outgoing, joined
from rankstream.wire.bounds import LAST_MS, MAX_CLICK_BYTES, MAX_ID_CHARACTERS
from rankstream.wire.events import SCHEMA
from rankstream.wire.input_events import kind_of, recognised, refused_header
from rankstream.wire.refusal_codes import Code
from rankstream.wire.schemas import decoded
from rankstream.wire.units_of_time import LEAST_MS, unit_of
from streams.ingest.refusal import Refused

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_ID_CHARACTERS)]
Query = Annotated[str, msgspec.Meta(min_length=1, max_length=1_000)]
Time = Annotated[int, msgspec.Meta(ge=LEAST_MS, le=LAST_MS)]
Position = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Schema = Annotated[int, msgspec.Meta(ge=SCHEMA, le=SCHEMA)]


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
    schema: Schema = SCHEMA


_decode_one = msgspec.json.Decoder(PlainClick).decode
_decode_many = msgspec.json.Decoder(list[PlainClick]).decode
_decode_raw = msgspec.json.Decoder(list[msgspec.Raw]).decode


class PlainClicks(NamedTuple):
    """Clicks that are accepted: how many, and the records that hold them."""

    n: int
    records: list[bytes]


def plain_clicks(body: bytes, *, latest_ms: int, most: int) -> PlainClicks | None:
    """The clicks in a body, one or an array; None where it holds anything else.

    Ingestion checks an event field by field, which costs more than to receive it. Most
    clicks are plain: what is here accepted at once, ingestion accepts. All else is
    checked as ingestion does, so that a refusal is in its words.

    A body that is no larger than a click may be is a record as it came, as no click in
    it can be too large. A larger one is parted.

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
            or (click.item_id is None if position is None else position > most)
            or not query.isascii()
            or query.isspace()
        ):
            return None
    if not clicks:
        return None
    if len(body) <= MAX_CLICK_BYTES:
        return PlainClicks(len(clicks), [body])
    values = [bytes(raw) for raw in _decode_raw(body)] if is_array else [body]
    if max(map(len, values)) > MAX_CLICK_BYTES:
        return None
    return PlainClicks(len(clicks), list(joined(values)))


MOST_TOLD = 100
"""Documents whose refusal an answer tells."""


def letter_of(document: bytes, error: NotAdapted | Refused) -> Outgoing:
    """The document as it came, with what ingestion is to say of it."""
    if isinstance(error, NotAdapted):
        return Outgoing(error.kind, document, (error.header,))
    header = refused_header(f"{error.code}: {error}")
    return Outgoing(kind_of(document), document, (header,))


def rejected_of(
    index: int, document: bytes, error: NotAdapted | Refused, asked: str
) -> Rejected:
    """Which one it is, and why; `asked` is the format that it was taken for."""
    reason = f"{error}{_hint(document, asked, error)}"
    return Rejected(index=index, code=str(error.code), reason=reason)


def _hint(document: bytes, asked: str, error: NotAdapted | Refused) -> str:
    """Which parameter to give: the format that a document looks like, or its unit."""
    form = resembled(document) if asked == NAMES[0] else ""
    if form:
        return f"; it looks like {form}: name it with ?format={form}"
    unit = _unit(document, error)
    if not unit:
        return ""
    return f": with ?format={asked}&time_unit={unit} it is taken as such"


def _unit(document: bytes, error: NotAdapted | Refused) -> str:
    """Of a time that is refused as it is in no milliseconds; empty for all else."""
    if isinstance(error, NotAdapted):
        return error.unit
    if error.code != Code.TIME:
        return ""
    try:
        unit = unit_of(recognised(document).at_ms)
    except ValueError:
        return ""
    return "" if unit == "ms" else unit


def refusal_of(rejected: list[Rejected], n_documents: int) -> Problem:
    """The answer where some are not taken: none is."""
    first = rejected[0]
    return Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        "rejected",
        f"every document must be taken; {len(rejected):,} of {n_documents:,} are not, "
        f"the first at {first.index}: {first.reason}: nothing was sent, correct them "
        "or leave them out",
        rejected=rejected[:MOST_TOLD],
    )
