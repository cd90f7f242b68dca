"""CloudEvents 1.0: an envelope around a document of another format.

*Structured*, the envelope is the JSON itself; *binary*, it is in headers (`ce_id` on
Kafka, `ce-id` in HTTP) and the document is the data alone.
"""

import base64
import binascii
from collections.abc import Callable
from typing import Any

import msgspec

from rankstream.adapters.adapter import (
    Adapter,
    AdapterOptions,
    Headers,
    NotAdapted,
    Queries,
)
from rankstream.adapters.fields import UNREADABLE, place_of, refusing
from rankstream.adapters.impressions import Seen
from rankstream.adapters.times import at_ms_of
from rankstream.wire.bounds import MAX_ID_CHARACTERS
from rankstream.wire.input_events import Event
from rankstream.wire.routing import identity
from rankstream.wire.topics import CLICKS

OWN_TIME = "at_ms"


class _Envelope(msgspec.Struct, gc=False):
    """Of any type: what is of another one is refused where it is used."""

    specversion: Any = None
    id: Any = None
    source: Any = None
    time: Any = None
    data: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    data_base64: str | None = None


_open = msgspec.json.Decoder(_Envelope).decode
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


class CloudEvents:
    """Opens the envelope, and gives its id and its time to events that have none.

    Parameters
    ----------
    inner
        The adapter of what an envelope carries, by its name.
    """

    name = "cloudevents"
    doc = (
        "CloudEvents 1.0, structured, or binary where the headers are there too; what "
        "they carry is told by the option data (default: rankstream)"
    )

    time_field = "time"

    def __init__(self, inner: Callable[[str], Adapter | None]) -> None:
        self._inner = inner

    @refusing
    def adapt(
        self,
        document: bytes,
        options: AdapterOptions,
        headers: Headers = (),
        queries: Queries | None = None,
        seen: Seen | None = None,
    ) -> list[Event]:
        """The events in what the envelope carries."""
        inner = self._inner(options.data)
        if inner is None:
            words = f"data must name what events carry; got {options.data!r:.60}"
            raise NotAdapted("data", words)
        attributes = _attributes(headers)
        if is_binary(headers):
            data = document
        else:
            attributes, data = _opened(document)
        place = place_of(data)
        version = attributes.get("specversion")
        if not isinstance(version, str) or not version.startswith("1."):
            words = (
                "specversion must be 1.0, in the envelope or in a header of that name; "
                f"got {version!r:.60}"
            )
            raise NotAdapted("specversion", words, kind=place)
        if not data.strip() or data == b"null":
            raise NotAdapted("no-data", "a CloudEvent must carry data", kind=place)
        data = _with_time(data, inner.time_field, attributes.get("time"), place)
        events = inner.adapt(data, options, (), queries, seen)
        own_id = _event_id(attributes, place)
        return [_with_id(event, own_id) for event in events]


def is_binary(headers: Headers) -> bool:
    """Whether headers are the envelope: they name one event, so the data is one."""
    return "specversion" in _attributes(headers)


def _attributes(headers: Headers) -> dict[str, Any]:
    """What the headers of a record or a request say of the event."""
    found = {}
    for name, content in headers:
        prefix, attribute = name[:3].lower(), name[3:].lower()
        if prefix in ("ce_", "ce-"):
            found[attribute] = (content or b"").decode("utf-8", "replace")
    return found


def _opened(document: bytes) -> tuple[dict[str, Any], bytes]:
    try:
        envelope = _open(document)
    except UNREADABLE as error:
        words = f"a CloudEvent must be a JSON object, or have headers; {error}"
        raise NotAdapted("not-json", words, kind=place_of(document)) from error
    if envelope.data_base64 is not None:
        try:
            data = base64.b64decode(envelope.data_base64, validate=True)
        except (binascii.Error, ValueError) as error:
            words = f"data_base64 must be base64; {error}"
            raise NotAdapted("no-data", words) from error
    else:
        data = b"" if envelope.data is msgspec.UNSET else bytes(envelope.data)
    names = ("specversion", "id", "source", "time")
    return {name: getattr(envelope, name) for name in names}, data


def _with_time(data: bytes, name: str, time: Any, place: str) -> bytes:
    """The document, with the time of its envelope where it has none itself."""
    if time is None:
        return data
    document = _decode(data)
    if not isinstance(document, dict) or document.get(name) is not None:
        return data
    if name == OWN_TIME:
        time = at_ms_of(time, "", "time", kind=place)
    return _encode(document | {name: time})


def _event_id(attributes: dict[str, Any], place: str) -> str:
    """Source and id: together they name an event, whoever else counts from 1."""
    parts = (attributes.get("source"), attributes.get("id"))
    for name, part in zip(("source", "id"), parts, strict=True):
        if part is not None and not isinstance(part, str):
            words = f"{name} of a CloudEvent must be text; got {part!r:.60}"
            raise NotAdapted("type", words, kind=place)
    if not parts[1]:
        words = "id of a CloudEvent must be there: it tells a repeat"
        raise NotAdapted("no-id", words, kind=place)
    source, own_id = parts[0] or "", parts[1]
    joined = f"{source}#{own_id}"
    # A source with the mark in it could end where an id of another one begins.
    if "#" not in source and len(joined) <= MAX_ID_CHARACTERS:
        return joined
    return identity(source, own_id).hex()


def _with_id(event: Event, event_id: str) -> Event:
    if event.kind != CLICKS:
        return event
    fields = _decode(event.value)
    if fields.get("event_id"):
        return event
    return event._replace(value=_encode(fields | {"event_id": event_id}))
