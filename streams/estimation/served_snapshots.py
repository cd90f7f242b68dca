"""Versions that are served, and whose clicks they came from, as `snapshots` tells."""

from collections.abc import Collection

from rankstream.wire.envelope import (
    Pointer,
    Snapshot,
    SnapshotError,
    decode_snapshot,
    parent_pointer,
    pointer_of,
    rolled_back,
)
from rankstream.wire.models.canaries import model_of_canary
from rankstream.wire.models.changes import change_key
from rankstream.wire.models.deployments import (
    fitted_groups,
    is_deployment,
    learned_models,
)
from rankstream.wire.models.snapshot_names import following_key


class ServedSnapshots:
    """Takes records of `snapshots` in their order; the last of each model is served.

    Parameters
    ----------
    models
        Whose versions are kept; the groups of all deployments are.

    Attributes
    ----------
    newest
        The version of each model that is served.
    fitted_on
        Groups whose clicks interventions came from, where that is known.
    learned
        Models that learned online, also such as no settings name.
    """

    def __init__(self, models: Collection[str]) -> None:
        self.newest: dict[str, Snapshot] = {}
        self.fitted_on: dict[str, frozenset[int]] = {}
        self.learned: set[str] = set()
        self._models = frozenset(models)
        self._parents: dict[str, Snapshot] = {}
        self._follows_in: dict[str, int] = {}

    def take(self, key: bytes, value: bytes | None) -> None:
        """Take a record; one that is damaged is passed over, as nobody serves it."""
        if value is None:
            return
        if is_deployment(key, value):
            self.fitted_on |= fitted_groups([(key, value)])
            return
        if change_key(key, value) or model_of_canary(key, value):
            return
        self.learned |= learned_models([(key, value)])
        if self._model_of(key):
            self._take_snapshot(key, value)

    def _model_of(self, key: bytes) -> str:
        """Of a model's own key, or of one below it; "" of all other models."""
        name = key.decode(errors="replace")
        above = name.rpartition("/")[0]
        return next((each for each in (name, above) if each in self._models), "")

    def _take_snapshot(self, key: bytes, value: bytes) -> None:
        try:
            snapshot = decode_snapshot(value)
        except SnapshotError:
            return
        name = snapshot.model
        whole, following = (
            f"{name}/{pointer_of(snapshot)}".encode(),
            following_key(name),
        )
        if key not in (name.encode(), whole, following):
            return
        # As the publisher serves them: see `streams.redis_copies.snapshot_copy`.
        if key == whole and self._follows_in.get(name, 0) > snapshot.epoch:
            snapshot = rolled_back(snapshot, self._follows_in[name])
        before = self.newest.get(name)
        if before is not None and pointer_of(snapshot) < pointer_of(before):
            return
        if key != whole:
            self._follows_in[name] = snapshot.epoch if key == following else 0
        self.newest[name] = snapshot
        self._keep_parent(name, before)

    def _keep_parent(self, name: str, before: Snapshot | None) -> None:
        wanted = parent_pointer(self.newest[name])
        known = self._parents.pop(name, None)
        for each in (before, known):
            if each is not None and pointer_of(each) == wanted:
                self._parents[name] = each

    def lacking_parent(self, name: str) -> Pointer | None:
        """The version that a trained one came from, where it is not here; else None.

        What is learned online comes from a state that nobody served.
        """
        newest = self.newest[name]
        if name in self._parents or not _is_trained(newest):
            return None
        return parent_pointer(newest)

    def parent(self, name: str) -> Snapshot | None:
        """The version that a trained one came from; None where there is none here."""
        return self._parents.get(name) if _is_trained(self.newest[name]) else None

    def add_parent(self, snapshot: Snapshot) -> None:
        """Take one from elsewhere."""
        self._parents[snapshot.model] = snapshot


def _is_trained(snapshot: Snapshot) -> bool:
    """Not learned online, which may be of some groups too but bears no name."""
    return bool(snapshot.groups and snapshot.intervention)
