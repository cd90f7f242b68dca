"""How old the version is that Redis has of a model, and how long versions take."""

import time
from collections.abc import Iterator

from rankstream.wire.envelope import Pointer
from streams.series import SNAPSHOT_S, SecondsHistogram, Series

MOST_WAITING = 1_000
"""Of so many versions times are kept while Redis is away: the last ones."""


class ModelTimes:
    """Of the versions of one model.

    A version is as old as the last list that it has learned from, by event time. So of
    a log that is replayed versions are as old as the log.
    """

    def __init__(self) -> None:
        self._created_ms = 0
        self._waiting: dict[Pointer, tuple[int, bool]] = {}
        self._latency = SecondsHistogram(SNAPSHOT_S)

    def take(self, pointer: Pointer, created_ms: int, *, is_new: bool) -> None:
        """Hear of a version, and whether it is being learned now."""
        self._waiting[pointer] = created_ms, is_new
        if len(self._waiting) > MOST_WAITING:
            del self._waiting[min(self._waiting)]

    def wrote(self, last: Pointer | None) -> None:
        """Hear that Redis has all versions up to one."""
        if last is None:
            return
        for pointer in [each for each in self._waiting if each <= last]:
            created_ms, is_new = self._waiting.pop(pointer)
            if pointer == last:
                self._created_ms = created_ms
                if is_new and created_ms > 0:
                    self._latency.observe(time.time() - created_ms / 1_000.0)

    def series(self, model: str) -> Iterator[Series]:
        """Nothing of age before a version came from a list."""
        labels = {"model": model}
        if self._created_ms > 0:
            seconds = self._created_ms / 1_000.0
            yield Series("model_created_timestamp_seconds", labels, seconds)
        yield Series("list_to_snapshot_seconds", labels, self._latency)
