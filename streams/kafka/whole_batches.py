"""Batches of records as a whole, for who reads much.

aiokafka makes an object of eleven fields for each record, beside the one that its own
reader has made, and passes it through two generators. A consumer that is told
`key_deserializer=WHOLE` gives the records of a batch as its reader made them, together.
All else is as ever: sums are checked, and what was aborted is left out.
"""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from aiokafka.consumer import fetcher

from rankstream.wire.topics import MIB

WHOLE: Any = object()
"""Asks a consumer for whole batches, in the place of what would decode keys."""

FETCH_BYTES = 4 * MIB
"""Read of a partition at once; a larger record comes all the same."""

POLL_MS = 50
"""A fetch that has nothing but markers ends no wait for records: so often look."""


class Whole(NamedTuple):
    """The records of a batch, in their order; `offset` is that of the last one."""

    offset: int
    records: list[Any]


def each_of(fetched: Sequence[Any]) -> list[Any]:
    """Records, also of those that came in whole batches."""
    several = (one.records if type(one) is Whole else (one,) for one in fetched)
    return list(chain.from_iterable(several))


class _Batch:
    """A batch that gives its records together; all else of it is as it was read."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def __getattr__(self, name: str) -> Any:
        return getattr(self._read, name)

    def __next__(self) -> Any:
        return next(self._read)

    def __iter__(self) -> Iterator[Whole]:
        records = list(self._read)
        if records:
            yield Whole(records[-1].offset, records)


class _Batches:
    """What a broker answered for a partition, in whole batches."""

    def __init__(self, read: Any) -> None:
        self._read = read

    def has_next(self) -> bool:
        """Whether there is another whole batch."""
        return bool(self._read.has_next())

    def next_batch(self) -> Any:
        """The next whole batch."""
        read = self._read.next_batch()
        return read if read is None or read.is_control_batch else _Batch(read)


class _InWholes(fetcher.PartitionRecords):  # type: ignore[misc]
    """What a consumer that wants whole batches is given of an answer."""

    def _consumer_record(self, _: Any, whole: Whole) -> Whole:
        first, records = self.next_fetch_offset, whole.records
        if records[0].offset < first:  # a batch is answered from its beginning
            records = [each for each in records if each.offset >= first]
        return Whole(whole.offset, records)


_one_by_one = fetcher.PartitionRecords


def _partition_records(
    tp: Any, records: Any, aborted: Any, offset: int, key_deserializer: Any, *rest: Any
) -> Any:
    """Takes the place of aiokafka's class, with the same arguments."""
    if key_deserializer is WHOLE:
        return _InWholes(tp, _Batches(records), aborted, offset, None, *rest)
    return _one_by_one(tp, records, aborted, offset, key_deserializer, *rest)


fetcher.PartitionRecords = _partition_records
