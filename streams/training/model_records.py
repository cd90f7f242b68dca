"""What the topics `snapshots` and `training` say of models that are trained."""

from collections.abc import Callable

import msgspec

from rankstream.deployment_rules import DeploymentRefused
from rankstream.wire.envelope import (
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.models.canaries import Canary, model_of_canary
from rankstream.wire.models.canary_snapshots import opened_canary
from rankstream.wire.models.changes import History
from rankstream.wire.models.deployments import (
    Deployment,
    decode_deployment,
    is_deployment,
    learned_models,
)
from rankstream.wire.models.snapshot_names import following_key, version_key
from rankstream.wire.models.training import (
    Position,
    Request,
    Status,
    decode_record,
    decode_training_key,
)
from rankstream.wire.schemas import LogRefused, SchemaRefused
from rankstream.wire.topics import SNAPSHOTS, TRAINING


class ModelRecords:
    """Takes records of both topics, in their order; the last of each key counts.

    Parameters
    ----------
    models
        Those that are trained; snapshots of others are passed over.
    on_passed
        Is told of each request and each status that cannot be read, and why.
    """

    def __init__(
        self,
        models: frozenset[str],
        on_passed: Callable[[str], object] = lambda _: None,
    ) -> None:
        self.newest: dict[str, Snapshot] = {}
        self.positions: dict[str, Position] = {}
        self.requests: dict[str, Request] = {}
        self.statuses: dict[str, Status] = {}
        self.learned_last: dict[str, Snapshot] = {}
        """The newest version of each that was learned, and was not deployed."""
        self.history = History()
        self.canaries: dict[str, Canary] = {}
        """Of each model the version that is going out, if there is one."""
        self.unreadable_canaries: set[str] = set()
        """Models whose canary is damaged, or another release's: nobody serves it."""
        self.trained: set[str] = set()
        """Interventions that came of a training."""
        self.learned: set[str] = set()
        """Models that learned online, also such as no settings name any more."""
        self._models = models
        self._on_passed = on_passed
        self._deployments: dict[bytes, Deployment] = {}
        self._unreadable = ""

    def take_snapshot(self, key: bytes, value: bytes | None) -> None:
        """Take a record of `snapshots`; one that is damaged is passed over."""
        self.learned |= learned_models([(key, value)])
        if self.history.take(key, value) or self._take_canary(key, value):
            return
        if value is None:
            self._deployments.pop(key, None)
        elif is_deployment(key, value):
            try:
                self._deployments[key] = decode_deployment(value)
            except (SchemaRefused, msgspec.DecodeError) as error:
                self._unreadable = str(error)
        elif self._model_of(key):
            self._take_envelope(key, value)

    def _take_canary(self, key: bytes, value: bytes | None) -> bool:
        model = model_of_canary(key, value)
        if model is None:
            return False
        self.canaries.pop(model, None)
        self.unreadable_canaries.discard(model)
        if value is not None:
            try:
                self.canaries[model] = opened_canary(value, model).canary
            except SnapshotError:
                self.unreadable_canaries.add(model)
        return True

    def _model_of(self, key: bytes) -> str:
        """Of a model's own key, or of one of its versions; "" of all other models."""
        name = key.decode(errors="replace")
        above = name.rpartition("/")[0]
        return next((each for each in (name, above) if each in self._models), "")

    def _take_envelope(self, key: bytes, value: bytes) -> None:
        try:
            snapshot = decode_snapshot(value)
        except SnapshotError:
            # Nor does anybody serve it.
            return
        name, at = snapshot.model, pointer_of(snapshot)
        own, whole = name.encode(), version_key(snapshot)
        if key not in (own, whole, following_key(name)):
            return
        for last in (self.newest, *([self.learned_last] if key == whole else [])):
            if name not in last or pointer_of(last[name]) <= at:
                last[name] = snapshot

    def take_training(self, key: bytes, value: bytes | None) -> str:
        """Take a record of `training`; returns the model that it is of.

        Requests and status stand alone: one that cannot be read is passed over, and
        nothing else depends on it.

        Raises
        ------
        LogRefused
            Where a position is another release's, or something else wrote it.
        """
        found = decode_training_key(key)
        if found is None or value is None:
            return ""
        kind, name = found
        if kind in ("run", "curve"):
            self.trained.add(name)
            return name.rpartition("@")[0]
        if kind == "refusal" or name not in self._models:
            return name
        try:
            self._take_record(kind, name, value)
        except (SchemaRefused, msgspec.DecodeError) as error:
            if kind != "position":
                self._on_passed(f"{name}/{kind}: {error}")
                return ""
            raise _refused(name, error) from None
        return name

    def _take_record(self, kind: str, name: str, value: bytes) -> None:
        record = decode_record(kind, value)
        if kind == "position":
            self.positions[name] = record
        elif kind == "request":
            self.requests[name] = record
        else:
            self.statuses[name] = record

    def deployments(self) -> list[Deployment]:
        """All that there were.

        Raises
        ------
        DeploymentRefused
            Where one cannot be read, as their number would be wrong.
        """
        if self._unreadable:
            raise DeploymentRefused(
                f"deployments in {SNAPSHOTS} must be readable; {self._unreadable}: run "
                "the release that wrote it"
            )
        return list(self._deployments.values())

    def asked(self, name: str) -> Request | None:
        """The request for a model that was not answered yet."""
        request, position = self.requests.get(name), self.positions.get(name)
        if request is None or (position and position.request == request.id):
            return None
        return request

    def is_put_back(self, name: str) -> bool:
        """Whether what is served of a model is deployed, and came of no training."""
        newest = self.newest.get(name)
        return bool(
            newest and newest.intervention and newest.intervention not in self.trained
        )


def _refused(name: str, error: Exception) -> LogRefused:
    if isinstance(error, LogRefused):
        return error
    return LogRefused(
        f"a record of {TRAINING} must be readable; {error}, the position of "
        f"{name!r:.200}: something else wrote it: begin anew in another --namespace"
    )
