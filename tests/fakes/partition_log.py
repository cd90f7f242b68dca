"""One partition as a broker keeps it: records, markers, and open transactions."""

from dataclasses import dataclass, field
from typing import NamedTuple

from aiokafka.errors import InvalidProducerEpoch, OffsetOutOfRangeError

HIGHWATER = -1
"""Stands for the end of the partition where records are deleted."""


class Content(NamedTuple):
    """What a client sent."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


class Stored(NamedTuple):
    """One offset of a partition; a transaction's marker has no content."""

    offset: int
    producer_id: int
    content: Content | None


class Writer(NamedTuple):
    """Who appends: the broker knows a producer by number, its life by epoch."""

    producer_id: int
    epoch: int


class Fetched(NamedTuple):
    """What a fetch gives.

    Parameters
    ----------
    position
        Where the next fetch begins: behind markers and what was aborted, too.
    highwater, stable
        The end of the partition, and the end of what no open transaction holds back.
    """

    records: list[Stored]
    position: int
    highwater: int
    stable: int


class _Aborted(NamedTuple):
    producer_id: int
    first: int
    marker: int


@dataclass
class PartitionLog:
    """Offsets from `first` to before `end`, without a gap: nothing is compacted."""

    first: int = 0
    end: int = 0
    _stored: list[Stored] = field(default_factory=list)
    _begun: dict[int, int] = field(default_factory=dict)
    _aborted: list[_Aborted] = field(default_factory=list)
    _epochs: dict[int, int] = field(default_factory=dict)

    @property
    def stable(self) -> int:
        """The last stable offset: no transaction is open before it."""
        return max(self.first, min(self._begun.values(), default=self.end))

    def append(self, writer: Writer | None, contents: list[Content]) -> int:
        """Take a batch, in a transaction where it has a writer; gives its offset.

        Raises
        ------
        InvalidProducerEpoch
            Where a marker of a later life of this producer is in the partition.
        """
        base = self.end
        producer_id = -1
        if writer is not None:
            producer_id, epoch = writer
            if epoch < self._epochs.get(producer_id, 0):
                raise InvalidProducerEpoch
            self._epochs[producer_id] = epoch
            self._begun.setdefault(producer_id, base)
        for content in contents:
            self._stored.append(Stored(self.end, producer_id, content))
            self.end += 1
        return base

    def mark(self, writer: Writer, *, is_commit: bool) -> None:
        """End a writer's transaction here; takes an offset even if it wrote nothing."""
        producer_id, epoch = writer
        begun = self._begun.pop(producer_id, None)
        if begun is not None and not is_commit:
            self._aborted.append(_Aborted(producer_id, begun, self.end))
        self._epochs[producer_id] = epoch
        self._stored.append(Stored(self.end, producer_id, None))
        self.end += 1

    def has_open(self, producer_id: int) -> bool:
        """Whether a transaction of this producer is open here."""
        return producer_id in self._begun

    def delete_before(self, offset: int) -> None:
        """Let the partition begin there, as retention does.

        Raises
        ------
        OffsetOutOfRangeError
            Beyond the end.
        """
        offset = self.end if offset == HIGHWATER else offset
        if not 0 <= offset <= self.end:
            raise OffsetOutOfRangeError
        if offset > self.first:
            del self._stored[: offset - self.first]
            self.first = offset

    def fetch(
        self, position: int, *, is_committed: bool, limit: int | None = None
    ) -> Fetched:
        """Records from a position on.

        Parameters
        ----------
        is_committed
            Nothing that is open or aborted.
        limit
            Records to give at most.

        Raises
        ------
        OffsetOutOfRangeError
            Where the partition does not have that position.
        """
        if not self.first <= position <= self.end:
            raise OffsetOutOfRangeError
        bound = self.stable if is_committed else self.end
        records: list[Stored] = []
        reached = max(position, bound)
        for each in self._stored[position - self.first : max(0, bound - self.first)]:
            if each.content is None or (is_committed and self._is_aborted(each)):
                continue
            records.append(each)
            if len(records) == limit:
                reached = each.offset + 1
                break
        return Fetched(records, reached, self.end, self.stable)

    def _is_aborted(self, stored: Stored) -> bool:
        return any(
            each.producer_id == stored.producer_id
            and each.first <= stored.offset < each.marker
            for each in self._aborted
        )
