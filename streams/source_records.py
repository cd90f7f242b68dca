"""Records of one partition by columns: what many share has no object for each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Protocol, Self, overload, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rankstream.wire.bounds import carried_bytes
from streams.stage import SourceRecord, Stage

Headers = tuple[tuple[str, bytes], ...]


@dataclass(frozen=True, slots=True, eq=False)
class SourceRecords(Sequence[SourceRecord]):
    """Records in the order of their offsets, each an object once it is asked for.

    Parameters
    ----------
    offsets, times_ms : [n]
        As `offset` and `timestamp_ms` of a record.
    keys, values, headers : [n]
        As its fields of these names.
    """

    topic: str
    partition: int
    offsets: NDArray[np.int64]
    times_ms: NDArray[np.int64]
    keys: list[bytes | None]
    values: list[bytes | None]
    headers: list[Headers]

    @classmethod
    def fetched(
        cls, topic: str, partition: int, records: Sequence[Any], times_ms: Sequence[int]
    ) -> Self:
        """Records [n] as the client gives them, and which times [n] are theirs."""
        n, headers = len(records), [record.headers for record in records]
        return cls(
            topic,
            partition,
            np.fromiter([record.offset for record in records], np.int64, n),
            np.fromiter(times_ms, np.int64, n),
            [record.key for record in records],
            [record.value for record in records],
            [tuple(each or ()) for each in headers] if any(headers) else [()] * n,
        )

    @classmethod
    def of(cls, records: Sequence[SourceRecord]) -> Self:
        """One or more records of one partition."""
        topic, partition = records[0][:2]
        _, _, offsets, times_ms, keys, values, headers = zip(*records, strict=True)
        return cls(
            topic,
            partition,
            np.array(offsets, np.int64),
            np.array(times_ms, np.int64),
            list(keys),
            list(values),
            list(headers),
        )

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """One or more parts of one partition, one behind the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            parts[0].topic,
            parts[0].partition,
            np.concatenate([part.offsets for part in parts]),
            np.concatenate([part.times_ms for part in parts]),
            list(chain.from_iterable(part.keys for part in parts)),
            list(chain.from_iterable(part.values for part in parts)),
            list(chain.from_iterable(part.headers for part in parts)),
        )

    @property
    def n_bytes(self) -> int:
        """Bytes of all values, and of keys and headers at most."""
        n_bytes = sum(map(len, filter(None, self.values)))
        if any(self.keys) or any(self.headers):
            n_bytes += sum(map(carried_bytes, self.keys, self.headers))
        return n_bytes

    def behind(self, offset: int) -> Self:
        """Those with a larger offset."""
        first = int(np.searchsorted(self.offsets, offset, "right"))
        return self[first:] if first else self

    def fold_into(self, stage: Stage) -> None:
        """Let a stage take all of them, at once where it can."""
        if isinstance(stage, FoldsTogether):
            stage.fold_together(self)
            return
        for record in self:
            stage.fold(record)

    def __len__(self) -> int:
        return len(self.values)

    @overload
    def __getitem__(self, at: int) -> SourceRecord: ...

    @overload
    def __getitem__(self, at: slice) -> Self: ...

    def __getitem__(self, at: int | slice) -> SourceRecord | Self:
        if isinstance(at, slice):
            return type(self)(
                self.topic,
                self.partition,
                self.offsets[at],
                self.times_ms[at],
                self.keys[at],
                self.values[at],
                self.headers[at],
            )
        return SourceRecord(
            self.topic,
            self.partition,
            int(self.offsets[at]),
            int(self.times_ms[at]),
            self.keys[at],
            self.values[at],
            self.headers[at],
        )

    def __iter__(self) -> Iterator[SourceRecord]:
        rows = zip(
            self.offsets.tolist(),
            self.times_ms.tolist(),
            self.keys,
            self.values,
            self.headers,
            strict=True,
        )
        for row in rows:
            yield SourceRecord(self.topic, self.partition, *row)


@runtime_checkable
class FoldsTogether(Protocol):
    """A stage that takes many records at a time."""

    def fold_together(self, records: SourceRecords) -> None:
        """Take records as `Stage.fold` takes one after the other."""
