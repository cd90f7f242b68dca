"""Documents of several partitions in the order in which Kafka took them.

Live, all partitions are at their end, and what comes is passed on as it comes. Behind
an outage, or in a history, one partition is read faster than another. Whoever passes
its documents on as they are read makes those of the other late. So the one that was
taken first goes first, and who has none yet is waited for, unless it has reached its
end.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator
from typing import Generic, NamedTuple, TypeVar

Place = TypeVar("Place", bound=Hashable)

MOST_DOCUMENTS, MOST_BYTES = 4_000, 4 << 20
"""That wait of one partition; one fetch more may come."""


AHEAD = 8
"""Documents behind the first that say whether its time can be right."""


class Document(NamedTuple):
    """A record of another system's topic.

    `taken_ms` is when Kafka took it, or what its sender said of that.
    """

    offset: int
    taken_ms: int
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Next(NamedTuple, Generic[Place]):
    """What may be passed on next; `was_held` where it has waited for its time."""

    place: Place
    document: Document
    was_held: bool


class Merge(Generic[Place]):
    """What was read and not passed on yet, by partition.

    Documents are passed on in turns: `begin`, then `head` and `pass_on` or `hold`,
    until there is no head.
    """

    def __init__(self) -> None:
        self._waiting: dict[Place, deque[Document]] = {}
        self._n_bytes: dict[Place, int] = {}
        self._heads: list[tuple[int, int, Place]] = []
        self._held: set[Place] = set()
        self._behind: frozenset[Place] = frozenset()
        self._looked_at: dict[Place, int] = {}
        self._now_ms = 0

    def __len__(self) -> int:
        return sum(map(len, self._waiting.values()))

    def start(self, places: Iterable[Place]) -> None:
        """Forget everything; these are read from here on."""
        self._waiting = {place: deque() for place in places}
        self._n_bytes = dict.fromkeys(self._waiting, 0)
        self._looked_at = dict.fromkeys(self._waiting, -1)
        self._heads.clear()

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

    def look_ahead(self) -> Iterator[tuple[Place, Document]]:
        """What waits and was not looked at before, each document once."""
        for place, waiting in self._waiting.items():
            looked_at = self._looked_at[place]
            new = itertools.takewhile(lambda x: x.offset > looked_at, reversed(waiting))  # noqa: B023  used up here
            for document in reversed([*new]):
                yield place, document
            if waiting:
                self._looked_at[place] = waiting[-1].offset

    def begin(self, behind: Collection[Place], *, now_ms: int) -> None:
        """Begin a turn.

        Parameters
        ----------
        behind
            Partitions of which there is more to read: nothing passes one that has no
            document here.
        now_ms
            The time by which a document that is held waits.
        """
        self._behind, self._now_ms = frozenset(behind), now_ms
        self._held.clear()
        self._heads = [
            (_due_ms(waiting), number, place)
            for number, (place, waiting) in enumerate(self._waiting.items())
            if waiting
        ]
        if any(not self._waiting[place] for place in self._behind):
            self._heads.clear()
        heapq.heapify(self._heads)

    def head(self) -> Next[Place] | None:
        """What may be passed on next; None where this turn is over."""
        if not self._heads:
            return None
        due_ms, _, place = self._heads[0]
        was_held = place in self._held
        if was_held and due_ms > self._now_ms:
            # All others are later still, or are held as well.
            return None
        return Next(place, self._waiting[place][0], was_held)

    def is_read_ahead(self) -> bool:
        """Whether all that was taken before the time of the head has been read.

        Or as much of a partition as may wait.
        """
        until_ms = self._heads[0][0]
        wanted = self._behind.intersection(self.wanted())
        waiting = (self._waiting[place] for place in wanted)
        return all(each and each[-1].taken_ms >= until_ms for each in waiting)

    def pass_on(self) -> None:
        """Let the head go."""
        _, number, place = self._heads[0]
        waiting = self._waiting[place]
        self._n_bytes[place] -= len(waiting.popleft().value or b"")
        self._held.discard(place)
        if waiting:
            heapq.heapreplace(self._heads, (_due_ms(waiting), number, place))
        elif place in self._behind:
            self._heads.clear()
        else:
            heapq.heappop(self._heads)

    def hold(self, for_ms: int) -> None:
        """Let what the others have pass the head, and all behind it, by so much."""
        _, number, place = self._heads[0]
        due_ms = _due_ms(self._waiting[place]) + for_ms
        self._held.add(place)
        heapq.heapreplace(self._heads, (due_ms, number, place))


def _due_ms(waiting: deque[Document]) -> int:
    """The time of the first document; an earlier one that two behind it agree on.

    A sender's clock that is ahead would hold back all that is behind its document.
    """
    own_ms = waiting[0].taken_ms
    behind = sorted(each.taken_ms for each in itertools.islice(waiting, 1, AHEAD))
    return min([own_ms, *(behind[1:2] or behind)])
