"""The last snapshots of each model in Redis, as their topic has them.

Learning never waits for Redis: versions that cannot be written yet wait here, at most
the last ones of each model. What Redis lost is written again, and what nobody can have
published is taken away. Two copies at once do no harm; Redis takes each version once,
forwards only.
"""

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import NamedTuple

from rankstream.snapshots import (
    Pointer,
    SnapshotError,
    SnapshotStore,
    Standing,
    encode_snapshot,
    following_key,
    is_pointer,
    pointer_from,
    pointer_of,
    rolled_back,
)
from rankstream.wire.changes import change_key
from rankstream.wire.deployments import is_deployment
from rankstream.wire.snapshot_names import decode_record, version_key
from rankstream.wire.topics import MIB
from streams.redis_copies.unexpected_entries import UnexpectedEntries

KEPT_BYTES = 64 * MIB
"""Of one model's versions kept for a refill; `keep` bounds their number."""

log = logging.getLogger("rankstream.publisher")


class Work(NamedTuple):
    """Of one model: a pointer to take away first, and what to write."""

    model: str
    forged: Pointer | None
    last: Pointer
    values: list[bytes]


@dataclass
class _Model:
    """Last versions of one model, oldest first, and how far they are written."""

    kept: OrderedDict[Pointer, bytes] = field(default_factory=OrderedDict)
    size: int = 0
    written: Pointer | None = None
    forged: Pointer | None = None
    follows_in: int = 0
    """The epoch in which learned versions are served, after a rollback was undone."""

    @property
    def newest(self) -> Pointer | None:
        return next(reversed(self.kept), None)

    def pending(self) -> list[Pointer]:
        written = self.written
        return [at for at in self.kept if written is None or at > written]

    def drop(self, pointer: Pointer) -> None:
        self.size -= len(self.kept.pop(pointer))


class SnapshotCopy:
    """Takes records of the snapshots topic, and writes what is new to Redis.

    Only `look` and `write` speak to Redis, and may run in another thread.

    Parameters
    ----------
    store
        Where to write; it should not retry by itself.
    keep
        Versions of each model to hold for a refill.
    """

    def __init__(self, store: SnapshotStore, *, keep: int = 50) -> None:
        self._store = store
        self._keep = keep
        self._models: dict[str, _Model] = {}
        self._ahead: UnexpectedEntries[str, Pointer] = UnexpectedEntries()
        self._counts = dict.fromkeys(
            (
                "snapshots_published",
                "snapshots_coalesced",
                "snapshots_rejected",
                "redis_refills",
            ),
            0,
        )

    def take(self, key: bytes | None, value: bytes | None) -> None:
        """Take one record; never raises for what it holds.

        Parameters
        ----------
        key
            `MODEL/EPOCH.VERSION` of a snapshot, `MODEL` of the snapshot that a
            rollback made the newest, `MODEL/follow` of the one with which learned
            versions are served again, in its epoch; what notes a deployment is
            passed over.
        value
            Its envelope; None removes an old version.
        """
        name = key or b""
        if value is None:
            self._forget(name)
            return
        if is_deployment(name, value) or change_key(name, value):
            return
        try:
            snapshot = decode_record(name, value)
        except SnapshotError as error:
            self._counts["snapshots_rejected"] += 1
            log.warning(
                "event=snapshot-rejected key=%r reason=%s %s",
                name[:100], error.reason, error,
            )  # fmt: skip
            return
        pointer, whole = pointer_of(snapshot), version_key(snapshot)
        following = following_key(snapshot.model)
        model = self._models.setdefault(snapshot.model, _Model())
        if name == whole and model.follows_in > pointer.epoch:
            moved = rolled_back(snapshot, model.follows_in)
            pointer, value = pointer_of(moved), encode_snapshot(moved)
        if model.newest is not None and pointer <= model.newest:
            return
        if name != whole:
            model.follows_in = pointer.epoch if name == following else 0
        model.kept[pointer] = value
        model.size += len(value)
        self._trim(model)

    def settle(self) -> None:
        """Hear that a settled batch came: see `CommittedBatch`."""
        self._ahead.settle()

    def models(self) -> list[str]:
        """Those to look for."""
        return list(self._models)

    def look(self, models: list[str]) -> dict[str, Standing]:
        """What Redis has of them; clears what is damaged.

        Raises
        ------
        StoreUnavailable
        """
        return self._store.mend(models)

    def compare(self, found: dict[str, Standing]) -> int:
        """Make pending what Redis lost or should not have; of how many models."""
        lost = 0
        for name, standing in found.items():
            model = self._models[name]
            why = self._why_lost(name, model, standing)
            if why:
                log.warning("event=redis-refill model=%s reason=%s", name, why)
                model.written = None
                lost += 1
        self._counts["redis_refills"] += lost
        return lost

    def work(self) -> list[Work]:
        """What there is to write, by model."""
        work = []
        for name, model in self._models.items():
            pending = model.pending()
            if pending:
                values = [model.kept[pointer] for pointer in pending]
                work.append(Work(name, model.forged, pending[-1], values))
        return work

    def write(self, each: Work) -> int:
        """Write some of it; how many versions went in.

        Raises
        ------
        StoreUnavailable
        """
        if each.forged is not None:
            self._store.discard(each.model, each.forged)
        return self._store.publish_all(each.values)

    def wrote(self, each: Work, count: int) -> None:
        """Hear that it was written, and how many versions went in."""
        model = self._models[each.model]
        model.written = each.last
        if model.forged == each.forged:
            model.forged = None
        self._counts["snapshots_published"] += count

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many versions wait."""
        pending = sum(len(model.pending()) for model in self._models.values())
        return self._counts | {"snapshots_pending": pending}

    def _why_lost(self, name: str, model: _Model, standing: Standing) -> str:
        """What is wrong with what Redis has; empty where nothing is."""
        pointer, fault = standing
        if pointer is not None and fault and pointer not in model.kept:
            model.forged = pointer
            return f"pointer {pointer} to a version that is not there"
        if pointer is None or model.newest is None or pointer <= model.newest:
            self._ahead.clear(name)
        elif self._ahead.is_confirmed(name, pointer):
            model.forged = pointer
            return f"pointer {pointer}, beyond {model.newest}, the last published"
        if fault:
            return fault
        if model.written is not None and (pointer is None or pointer < model.written):
            return f"pointer {pointer or 'missing'}, behind {model.written}"
        return ""

    def _trim(self, model: _Model) -> None:
        while len(model.kept) > 1 and (
            len(model.kept) > self._keep or model.size > KEPT_BYTES
        ):
            oldest = next(iter(model.kept))
            if model.written is None or oldest > model.written:
                self._counts["snapshots_coalesced"] += 1
            model.drop(oldest)

    def _forget(self, key: bytes) -> None:
        name, _, place = key.rpartition(b"/")
        model = self._models.get(name.decode(errors="replace"))
        if model is None or not is_pointer(place):
            return
        pointer = pointer_from(place)
        if pointer in model.kept and pointer != model.newest:
            model.drop(pointer)
