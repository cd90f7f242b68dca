"""Bundles: records of one partition that go through Faust together.

Faust spends some ten times as long on a message as ingestion needs for an event. So
records that were fetched together are one message to it. What is folded, weighed and
acknowledged is still each record.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rankstream.wire.bounds import carried_bytes
from rankstream.wire.topics import MIB

RECORDS = 256
"""Most records of a bundle."""

BYTES = MIB
"""Most bytes of a bundle that holds more than one record."""

RECORD_BYTES = 1_024
"""What a waiting record costs beside its value, roughly."""


class Within:
    """What is acknowledged with the last record of its bundle, not by itself."""

    def ack(self) -> None:
        """Nothing: Faust knows of the bundle only."""


WITHIN = Within()


class Together(NamedTuple):
    """Records that go together, and what they take while they wait."""

    records: Sequence[Any]
    n_bytes: int


def bundled(records: Sequence[Any]) -> Iterator[Together]:
    """Cut records of a partition, in their order, into what goes together."""
    first = n_bytes = 0
    for number, record in enumerate(records):
        size = bytes_of(record)
        if number > first and (number - first >= RECORDS or n_bytes + size > BYTES):
            yield Together(records[first:number], n_bytes)
            first, n_bytes = number, 0
        n_bytes += size
    if first < len(records):
        yield Together(records[first:], n_bytes)


def bytes_of(record: Any) -> int:
    """What a record takes while it waits."""
    size = RECORD_BYTES + len(record.value or b"")
    if record.key or record.headers:
        size += carried_bytes(record.key, record.headers or ())
    return size
