"""Our own events, unchanged."""

from rankstream.adapters.adapter import AdapterOptions, Headers, NotAdapted, Queries
from rankstream.adapters.fields import refusing
from rankstream.adapters.impressions import Seen
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
        options: AdapterOptions,  # noqa: ARG002
        headers: Headers = (),  # noqa: ARG002
        queries: Queries | None = None,  # noqa: ARG002
        seen: Seen | None = None,  # noqa: ARG002
    ) -> list[Event]:
        """The event itself; ingestion judges its fields."""
        try:
            return [recognised(document)]
        except ValueError as error:
            raise NotAdapted("no-event", str(error), kind=kind_of(document)) from error
