"""What falls due at an event time, in the order of that time."""

import heapq
from operator import itemgetter
from typing import Generic, TypeVar

T = TypeVar("T")

SLOT_BITS = 10
"""Due times are kept in slots of 1,024 ms; only a slot that is due is sorted."""

_due_ms = itemgetter(0)


class Schedule(Generic[T]):
    """Items by the time at which they fall due; equal times keep their order."""

    def __init__(self) -> None:
        self._slots: dict[int, list[tuple[int, T]]] = {}
        self._order: list[int] = []

    def add(self, entry: tuple[int, T]) -> None:
        """Add an item with the time at which it is due."""
        slot = entry[0] >> SLOT_BITS
        if slot in self._slots:
            self._slots[slot].append(entry)
        else:
            self._slots[slot] = [entry]
            heapq.heappush(self._order, slot)

    def due(self, now_ms: int) -> list[T]:
        """Remove and return the items that are due at or before a time."""
        last = now_ms >> SLOT_BITS
        items: list[T] = []
        while self._order and self._order[0] <= last:
            slot = self._order[0]
            entries = self._slots[slot]
            entries.sort(key=_due_ms)
            if slot < last or entries[-1][0] <= now_ms:
                heapq.heappop(self._order)
                del self._slots[slot]
            else:
                n_due = sum(due <= now_ms for due, _ in entries)
                self._slots[slot] = entries[n_due:]
                items += [item for _, item in entries[:n_due]]
                break
            items += [item for _, item in entries]
        return items
