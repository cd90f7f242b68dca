"""The snapshots of a model as a ranker follows them, from a store or another source."""

from collections.abc import Callable

from rankstream.ranking.taken_versions import TakenVersions
from rankstream.snapshots import (
    Snapshot,
    SnapshotError,
    SnapshotStore,
    decode_at,
    decode_snapshot,
)


class NoSnapshot(RuntimeError):
    """There is no model to rank with yet.

    Operator action: start the worker with a `[models.NAME]` of this name.
    """


class FollowedSnapshots:
    """Looks for a newer snapshot, and for the canary beside it.

    Parameters
    ----------
    store, source
        As `rankstream.ranker.Ranker` has them: one of both.
    """

    def __init__(
        self,
        model: str,
        store: SnapshotStore | None,
        source: Callable[[], bytes | None] | None,
    ) -> None:
        if (store is None) == (source is None):
            raise ValueError("a ranker must have a store or a source, and not both")
        self._model = model
        self._store = store
        self._source = source
        self._given: bytes | None = None
        self._known: bytes | None = None

    def newest(self, taken: TakenVersions) -> tuple[Snapshot | None, bytes | None]:
        """A verified snapshot and a canary's record, where there may be news.

        Raises
        ------
        SnapshotError, StoreUnavailable
        """
        if self._store is not None:
            return self._newest_of(self._store, taken)
        self._given = given = self._source() if self._source else None
        if given is None or given is self._known:
            return None, None
        snapshot = decode_snapshot(given)
        if snapshot.model != self._model:
            raise SnapshotError("model", f"got a snapshot of {snapshot.model!r}")
        return snapshot, None

    def took(self) -> None:
        """Hear that what was given was taken: the source need not give it again."""
        self._known = self._given

    def lack(self, awaited: str) -> NoSnapshot:
        """That there is none yet; `awaited` is what does not answer, if anything."""
        why = f"{awaited} does not answer" if awaited else "it has none"
        return NoSnapshot(
            f"model {self._model!r} must have a snapshot; {why}: start a worker with "
            f"[models.{self._model}]"
        )

    def _newest_of(
        self, store: SnapshotStore, taken: TakenVersions
    ) -> tuple[Snapshot | None, bytes | None]:
        served = taken.serving.served if taken.serving else None
        known = served.pointer if served else None
        answer = store.newest(self._model, known, taken.known_canary)
        if answer is None:
            if served is None:
                return None, None
            raise SnapshotError(
                "emptied", f"Redis must hold {self._model!r}; it holds none any more"
            )
        pointer, envelope, canary = answer
        if envelope is None:
            return None, canary
        return decode_at(envelope, self._model, pointer), canary
