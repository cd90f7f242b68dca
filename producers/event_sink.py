"""Where events go, one after another."""

from typing import Protocol


class EventSink(Protocol):
    """Takes events for their topics; see `producers.event_producer.EventProducer`."""

    def send(
        self,
        kind: str,
        value: bytes,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes], ...] = (),
    ) -> None:
        """Take one event."""

    def send_raw(self, kind: str, value: bytes) -> None:
        """Take bytes that may be no event."""


class EventTooLarge(ValueError):
    """An event is larger than ingestion accepts; it was not sent.

    Operator action: send fewer candidates or features with it.
    """
