"""The last snapshots of each model in Redis, as their topic has them.

Learning never waits for Redis: versions that cannot be written yet wait here, at most
the last ones of each model. What Redis lost is written again, rollbacks included, and
what nobody can have published is taken away. Two copies at once do no harm; Redis takes
each version once, forwards only. A canary comes from its model's own key, and goes with
it: whoever reads sees the pointer and the canary of one moment of the topic.
"""

import logging
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rankstream.redis_store.redis_scripts import mark_of
from rankstream.snapshots import (
    CanarySwap,
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
from rankstream.wire.models.canaries import model_of_canary
from rankstream.wire.models.canary_snapshots import opened_canary
from rankstream.wire.models.changes import change_key
from rankstream.wire.models.deployments import is_deployment
from rankstream.wire.models.snapshot_names import decode_record, version_key
from rankstream.wire.topics import MIB
from streams.redis_copies.model_times import ModelTimes
from streams.redis_copies.unexpected_entries import UnexpectedEntries
from streams.series import Series

KEPT_BYTES = 64 * MIB
"""Of one model's versions kept for a refill; `keep` bounds their number."""

log = logging.getLogger("rankstream.publisher")


class Work(NamedTuple):
    """Of one model: a pointer to take away first, and what to write, all at once."""

    model: str
    forged: Pointer | None
    last: Pointer | None
    values: list[bytes]
    canary: CanarySwap


@dataclass
class _Model:
    """Last versions of one model, oldest first, and how far they are written."""

    kept: OrderedDict[Pointer, bytes] = field(default_factory=OrderedDict)
    size: int = 0
    written: Pointer | None = None
    forged: Pointer | None = None
    follows_in: int = 0
    """The epoch in which learned versions are served, after a rollback was undone."""
    canary: bytes = b""
    held: str | None = None
    """The mark of the canary that Redis has; None before anything was written."""
    times: ModelTimes = field(default_factory=ModelTimes)

    @property
    def newest(self) -> Pointer | None:
        return next(reversed(self.kept), None)

    @property
    def has_canary(self) -> bool:
        return bool(self.canary or self.held)

    @property
    def is_canary_due(self) -> bool:
        return self.held != mark_of(self.canary)

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

    Attributes
    ----------
    is_behind
        Whether more was committed than was taken. What a transaction or a second
        reading left half way is not shown of models that have a canary.
    """

    def __init__(self, store: SnapshotStore, *, keep: int = 50) -> None:
        self._store = store
        self._keep = keep
        self.is_behind = self._is_level = False
        self._models: dict[str, _Model] = {}
        self._ahead: UnexpectedEntries[str, Pointer] = UnexpectedEntries()
        self._canaries_ahead: UnexpectedEntries[str, str] = UnexpectedEntries()
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
            versions are served again, in its epoch; `MODEL/canary` of a canary; what
            notes a deployment is passed over.
        value
            Its envelope, or the canary; None removes an old version, or the canary.
        """
        name = key or b""
        of_canary = model_of_canary(name, value)
        if of_canary is not None:
            self._take_canary(name, of_canary, value or b"")
            return
        if value is None:
            self._forget(name)
            return
        if is_deployment(name, value) or change_key(name, value):
            return
        try:
            snapshot = decode_record(name, value)
        except SnapshotError as error:
            self._reject(name, error)
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
        is_new = self._is_level and name == whole
        model.times.take(pointer, snapshot.created_ms, is_new=is_new)
        model.size += len(value)
        self._trim(model)

    def begin_anew(self) -> None:
        """Hear that all that the topic has comes again.

        A canary that was removed meanwhile does not, nor does its removal.
        """
        self._is_level = False
        for model in self._models.values():
            model.canary = b""

    def settle(self) -> None:
        """Hear that a settled batch came: see `CommittedBatch`."""
        self._is_level = True
        self._ahead.settle()
        self._canaries_ahead.settle()

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
            why = self._why_another_canary(name, model, standing, why) or why
            if why:
                log.warning("event=redis-refill model=%s reason=%s", name, why)
                lost += 1
        self._counts["redis_refills"] += lost
        return lost

    def work(self) -> list[Work]:
        """What there is to write, by model."""
        work = []
        for name, model in self._models.items():
            if self.is_behind and model.has_canary:
                continue
            pending = model.pending()
            if pending or model.is_canary_due:
                values = [model.kept[pointer] for pointer in pending]
                swap = CanarySwap(model.held, model.canary)
                work.append(Work(name, model.forged, model.newest, values, swap))
        return work

    def write(self, each: Work) -> int:
        """Write some of it; how many versions went in.

        Raises
        ------
        StoreUnavailable
        """
        if each.forged is not None:
            self._store.discard(each.model, each.forged)
        return self._store.publish_with(each.model, each.values, each.canary)

    def wrote(self, each: Work, count: int) -> None:
        """Hear that it was written, and how many versions went in."""
        model = self._models[each.model]
        model.written = each.last
        model.times.wrote(each.last)
        # Also where it was another's that Redis had: the next look says so.
        model.held = mark_of(each.canary.wanted)
        if model.forged == each.forged:
            model.forged = None
        self._counts["snapshots_published"] += count

    def counters(self) -> dict[str, int]:
        """What happened so far, and how many versions wait."""
        pending = sum(len(model.pending()) for model in self._models.values())
        return self._counts | {"snapshots_pending": pending}

    def series(self) -> Iterator[Series]:
        """How old what Redis has is, and how long it took to get there, by model."""
        for name, model in self._models.items():
            yield from model.times.series(name)

    def _why_lost(self, name: str, model: _Model, standing: Standing) -> str:
        """What is wrong with what Redis has; empty where nothing is."""
        pointer, fault, _ = standing
        if pointer is not None and fault and pointer not in model.kept:
            model.forged, model.written = pointer, None
            return f"pointer {pointer} to a version that is not there"
        if pointer is None or model.newest is None or pointer <= model.newest:
            self._ahead.clear(name)
        elif self._ahead.is_confirmed(name, pointer):
            model.forged, model.written = pointer, None
            return f"pointer {pointer}, beyond {model.newest}, the last published"
        if fault:
            model.written = None
            return fault
        written = model.written
        if written is not None and (pointer is None or pointer < written):
            model.written = None
            return f"pointer {pointer or 'missing'}, behind {written}"
        return ""

    def _why_another_canary(
        self, name: str, model: _Model, standing: Standing, why_lost: str
    ) -> str:
        """How the canary in Redis differs; empty where it does not, or may rightly."""
        seen, wanted = standing.canary, mark_of(model.canary)
        if seen == wanted:
            self._canaries_ahead.clear(name)
            model.held = wanted
            return ""
        # Before the first writing nothing of ours was lost; what is due is written.
        if model.held is None:
            return ""
        # Another publisher may have read further, unless the pointer was lost as well.
        if not why_lost and (
            self.is_behind
            or model.held != wanted
            or not self._canaries_ahead.is_confirmed(name, seen)
        ):
            return ""
        model.held = seen
        has, lacks = "another canary" if seen else "no canary", f"; {why_lost}"
        return f"{has} than the topic{lacks if why_lost else ''}"

    def _take_canary(self, key: bytes, name: str, value: bytes) -> None:
        model = self._models.setdefault(name, _Model())
        model.canary = b""
        try:
            if value:
                opened_canary(value, name)
            model.canary = value
        except SnapshotError as error:
            self._reject(key, error)

    def _reject(self, key: bytes, error: SnapshotError) -> None:
        self._counts["snapshots_rejected"] += 1
        log.warning(
            "event=snapshot-rejected key=%r reason=%s %s",
            key[:100], error.reason, error,
        )  # fmt: skip

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
