"""Why an event that was read cannot be sent."""


class EventTooLarge(ValueError):
    """An event is larger than ingestion accepts; it was not sent.

    Operator action: send fewer candidates or features with it.
    """
