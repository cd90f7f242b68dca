"""Documents of several partitions in the order in which Kafka took them.

Live, all partitions are at their end, and what comes is passed on as it comes. Behind
an outage, or in a history, one partition is read faster than another. Whoever passes
its documents on as they are read makes those of the other late. So the one that was
taken first goes first, and who has none yet is waited for, unless it has reached its
end.
"""

import heapq
from collections import deque
from collections.abc import Collection, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

Place = TypeVar("Place", bound=Hashable)

MOST_DOCUMENTS, MOST_BYTES = 4_000, 4 << 20
"""That wait of one partition; one fetch more may come."""


class Document(NamedTuple):
    """A record of another system's topic.

    `taken_ms` is when Kafka took it, or what its sender said of that.
    """

    offset: int
    taken_ms: int
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Merge(Generic[Place]):
    """What was read and not passed on yet, by partition."""

    def __init__(self) -> None:
        self._waiting: dict[Place, deque[Document]] = {}
        self._n_bytes: dict[Place, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def start(self, places: Iterable[Place]) -> None:
        """Forget everything; these are read from here on."""
        self._waiting = {place: deque() for place in places}
        self._n_bytes = dict.fromkeys(self._waiting, 0)

    def next_offset(self, place: Place) -> int | None:
        """Offset of the next document of a partition that waits, if one does."""
        waiting = self._waiting.get(place)
        return waiting[0].offset if waiting else None

    def wanted(self) -> list[Place]:
        """Partitions of which more may be read."""
        return [
            place
            for place, waiting in self._waiting.items()
            if len(waiting) < MOST_DOCUMENTS and self._n_bytes[place] < MOST_BYTES
        ]

    def add(self, place: Place, documents: Iterable[Document]) -> None:
        """Take what was read of a partition, behind what was read before."""
        waiting = self._waiting[place]
        for document in documents:
            waiting.append(document)
            self._n_bytes[place] += len(document.value or b"")

    def take(
        self,
        behind: Collection[Place],
        *,
        most: int = MOST_DOCUMENTS,
        most_bytes: int = MOST_BYTES,
    ) -> list[tuple[Place, Document]]:
        """What may be passed on, in its order.

        Parameters
        ----------
        behind
            Partitions of which there is more to read: nothing passes one that has no
            document here.
        most, most_bytes
            About how much, at most.
        """
        if any(not self._waiting[place] for place in behind):
            return []
        heads = [
            (waiting[0].taken_ms, number, place)
            for number, (place, waiting) in enumerate(self._waiting.items())
            if waiting
        ]
        heapq.heapify(heads)
        taken: list[tuple[Place, Document]] = []
        n_bytes = 0
        while heads and len(taken) < most and n_bytes < most_bytes:
            _, number, place = heads[0]
            waiting = self._waiting[place]
            document = waiting.popleft()
            size = len(document.value or b"")
            self._n_bytes[place] -= size
            n_bytes += size
            taken.append((place, document))
            if waiting:
                heapq.heapreplace(heads, (waiting[0].taken_ms, number, place))
            elif place in behind:
                break
            else:
                heapq.heappop(heads)
        return taken
