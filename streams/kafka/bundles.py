"""Bundles: records of one partition that go through Faust together.

Faust spends some ten times as long on a message as ingestion needs for an event. So
records that were fetched together are one message to it. What is folded, weighed and
acknowledged is still each record; a rebalance finds all of them taken, or none.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankstream.wire.bounds import carried_bytes
from rankstream.wire.topics import MIB

BYTES = MIB
"""Most bytes of a bundle that holds more than one record."""

RECORD_BYTES = 1_024
"""What a waiting record costs beside its value, roughly."""


class Together(NamedTuple):
    """Records that go together, and what they take while they wait."""

    records: Sequence[Any]
    n_bytes: int


def bundled(records: Sequence[Any]) -> Iterator[Together]:
    """Cut records of a partition, in their order, into what goes together."""
    ends = np.cumsum(sizes_of(records))
    first = before = 0
    while first < len(records):
        fitting = int(np.searchsorted(ends, before + BYTES, "right"))
        last = max(fitting, first + 1)
        n_bytes = int(ends[last - 1]) - before
        yield Together(records[first:last], n_bytes)
        first, before = last, before + n_bytes


def sizes_of(records: Sequence[Any]) -> list[int]:
    """What each record takes while it waits; bytes [n]."""
    sizes = [RECORD_BYTES + len(record.value or b"") for record in records]
    for number, record in enumerate(records):
        if record.key or record.headers:
            sizes[number] += carried_bytes(record.key, record.headers or ())
    return sizes
