"""The experiments in Redis, as their topic has them: those that run, and removals.

What Redis lost, or what came to be another, is written again. What is beyond the topic
is put back once it is certain that nobody published it. An experiment that the topic
does not know is left as it is: an older release wrote to Redis alone.
"""

import logging
from collections.abc import Mapping

from rankstream.experiment_records import (
    ExperimentRecord,
    Store,
    Stored,
    decode_record,
    put_records,
    stored_records,
)
from streams.redis_copies.unexpected_entries import UnexpectedEntries

log = logging.getLogger("rankstream.publisher")

Work = dict[str, ExperimentRecord]


class ExperimentCopy:
    """Is told the topic's records, and writes to Redis what differs there.

    Only `look` and `write` speak to Redis, and may run in another thread.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted: dict[str, ExperimentRecord] = {}
        self._unreadable: dict[str, bytes] = {}
        self._unknown: set[str] = set()
        self._work: Work = {}
        self._ahead: UnexpectedEntries[str, ExperimentRecord] = UnexpectedEntries()
        self._counts = dict.fromkeys(("experiments_written", "experiments_rejected"), 0)

    def show(self, values: Mapping[bytes, bytes]) -> None:
        """Take the last record of each experiment; never raises for what it holds."""
        wanted, unreadable = {}, {}
        for key, value in values.items():
            name = key.decode(errors="replace")
            try:
                wanted[name] = decode_record(value)
            except ValueError as error:
                unreadable[name] = value
                if self._unreadable.get(name) != value:
                    self._counts["experiments_rejected"] += 1
                    log.warning(
                        "event=experiment-rejected experiment=%r reason=%s",
                        name[:100], error,
                    )  # fmt: skip
        self._wanted, self._unreadable = wanted, unreadable

    def settle(self) -> None:
        """Hear that a settled batch came: see `CommittedBatch`."""
        self._ahead.settle()

    def look(self) -> Stored:
        """What Redis has.

        Raises
        ------
        StoreUnavailable
        """
        return stored_records(self._store)

    def compare(self, found: Stored) -> int:
        """Note what Redis must be given; how much that is."""
        self._work = {}
        for name, wanted in self._wanted.items():
            why = self._why_another(name, wanted, found)
            if why:
                log.warning("event=redis-refill experiment=%s reason=%s", name, why)
                self._work[name] = wanted
        for name, held in found.records.items():
            is_known = name in self._wanted or name in self._unreadable
            if not is_known and self._ahead.is_confirmed(name, held):
                self._say_unknown(name)
        return len(self._work)

    def work(self) -> Work:
        """What there is to write."""
        return self._work

    def write(self, work: Work) -> None:
        """Write it.

        Raises
        ------
        StoreUnavailable
        """
        put_records(self._store, work)

    def wrote(self, work: Work) -> None:
        """Hear that it was written."""
        self._work = {}
        self._counts["experiments_written"] += len(work)

    def counters(self) -> dict[str, int]:
        """What happened so far."""
        return dict(self._counts)

    def _why_another(self, name: str, wanted: ExperimentRecord, found: Stored) -> str:
        """How Redis differs; empty where it does not, or may rightly."""
        if name in found.refused:
            return f"what Redis has cannot be read: {found.refused[name]}"
        held = found.records.get(name)
        if held == wanted:
            self._ahead.clear(name)
            return ""
        if held is None:
            return "missing"
        if wanted.is_before(held) and not self._ahead.is_confirmed(name, held):
            return ""
        return f"epoch {held.epoch} in place of {wanted.epoch}, or another state of it"

    def _say_unknown(self, name: str) -> None:
        if name not in self._unknown:
            self._unknown.add(name)
            log.warning(
                "event=experiment-unknown experiment=%r reason=the topic must have "
                "what Redis has; it does not: run `rankstream experiments publish`",
                name[:100],
            )
