"""Rankers that poll Redis through all of a run."""

import threading
import time
from collections.abc import Callable

from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    SnapshotError,
    SnapshotStore,
    StoreUnavailable,
    decode_at,
    store_of,
)

EVERY_S = 0.05


class Readers:
    """One that asks for pointer and bytes itself, one that is a ranker's.

    Attributes
    ----------
    torn, missing, backward
        Snapshots that were not whole, not there although pointed at or there before,
        or older than one seen before.
    """

    def __init__(self, settings: Settings, model: str) -> None:
        self.torn = self.missing = self.backward = 0
        self.reads = self.unavailable = 0
        self.versions: set[Pointer] = set()
        self.is_emptied = False
        """Whether Redis was begun anew and may still be empty."""
        self._model = model
        self._stores = [store_of(settings, retries=0) for _ in range(2)]
        self._ranker = Ranker(model, store=self._stores[1])
        self._seen: Pointer | None = None
        self._ranked: Pointer | None = None
        self._stop = threading.Event()
        turns: tuple[Callable[[], None], ...] = (self._read, self._rank)
        self._threads = [
            threading.Thread(target=self._poll, args=(turn,), daemon=True)
            for turn in turns
        ]

    def start(self) -> None:
        """Begin to poll."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Poll no more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        self.torn += sum(
            count
            for reason, count in self._ranker.failures.items()
            if reason not in ("unavailable", "missing", "emptied")
        )
        self.missing += self._ranker.failures.get("missing", 0)
        for store in self._stores:
            store.close()

    def _poll(self, turn: Callable[[], None]) -> None:
        next_s = time.monotonic()
        while not self._stop.is_set():
            turn()
            next_s = max(next_s + EVERY_S, time.monotonic() - EVERY_S)
            self._stop.wait(max(0.0, next_s - time.monotonic()))

    def _read(self) -> None:
        store: SnapshotStore = self._stores[0]
        try:
            answer = store.current(self._model)
        except StoreUnavailable:
            self.unavailable += 1
            return
        except SnapshotError:
            self.torn += 1
            return
        self.reads += 1
        if answer is None:
            # A Redis that begins anew is empty until it is filled again.
            self.missing += self._seen is not None and not self.is_emptied
            return
        pointer, envelope = answer
        try:
            decode_at(envelope or b"", self._model, pointer)
        except SnapshotError as error:
            if error.reason == "missing":
                self.missing += 1
            else:
                self.torn += 1
            return
        if self._seen is not None and pointer < self._seen:
            self.backward += 1
        else:
            self.is_emptied = False
        self._seen = pointer
        self.versions.add(pointer)

    def _rank(self) -> None:
        self._ranker.refresh()
        self.reads += 1
        pointer = self._ranker.pointer
        if pointer is not None and self._ranked is not None:
            self.backward += pointer < self._ranked
        self._ranked = pointer or self._ranked
