"""Our own events, unchanged but for times in another unit that is said."""

from typing import Any

import msgspec

from rankstream.adapters.adapter import AdapterOptions, Headers, NotAdapted, Queries
from rankstream.adapters.fields import refusing
from rankstream.adapters.impressions import Seen
from rankstream.adapters.times import at_ms_of
from rankstream.wire.input_events import Event, kind_of, recognised


class Own:
    """What services that know us send; see `docs/events.md`."""

    name = "rankstream"
    doc = "query and click events as docs/events.md has them"
    time_field = "at_ms"

    @refusing
    def adapt(
        self,
        document: bytes,
        options: AdapterOptions,
        headers: Headers = (),  # noqa: ARG002
        queries: Queries | None = None,  # noqa: ARG002
        seen: Seen | None = None,  # noqa: ARG002
    ) -> list[Event]:
        """The event itself; ingestion judges its fields."""
        try:
            event = recognised(document)
        except ValueError as error:
            raise NotAdapted("no-event", str(error), kind=kind_of(document)) from error
        return [
            with_time_in_ms(event, options.time_unit) if options.time_unit else event
        ]


def with_time_in_ms(event: Event, unit: str) -> Event:
    """The same event, whose `at_ms` is in a unit.

    Raises
    ------
    NotAdapted
        Where it is in another one.
    """
    at_ms = at_ms_of(event.at_ms, unit, "at_ms", kind=event.kind)
    if at_ms == event.at_ms:
        return event
    fields: dict[str, Any] = _decode(event.value)
    return event._replace(at_ms=at_ms, value=_encode(fields | {"at_ms": at_ms}))


_decode = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder().encode
