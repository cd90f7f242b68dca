"""The last value of each key of a compacted partition, as a reader has it."""

from collections.abc import Mapping

from streams.kafka.committed_reader import CommittedBatch


class CompactedView:
    """Takes batches; shows whole readings only.

    Where reading begins anew, as after an outage, all that is there comes again. Until
    its end is reached the view stays as it was: old values never show once more, and a
    key that was removed meanwhile leaves.
    """

    def __init__(self) -> None:
        self._shown: dict[bytes, bytes] = {}
        self._anew: dict[bytes, bytes] | None = None

    def take(self, batch: CommittedBatch) -> bool:
        """Take what was read; whether the view may have changed."""
        if batch.is_first:
            self._anew = {}
        is_shown = self._anew is None
        into = self._shown if self._anew is None else self._anew
        for key, value in batch.records:
            if key is not None and value is None:
                into.pop(key, None)
            elif key is not None and value is not None:
                into[key] = value
        if self._anew is not None and batch.at_end:
            self._shown, self._anew = self._anew, None
            return True
        return is_shown and bool(batch.records)

    @property
    def values(self) -> Mapping[bytes, bytes]:
        """The last value of each key; not a copy."""
        return self._shown
