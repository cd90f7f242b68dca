"""What the topics `snapshots` and `training` say of models that are trained."""

import msgspec

from rankstream.deployment_rules import DeploymentRefused
from rankstream.snapshots import (
    Snapshot,
    SnapshotError,
    decode_snapshot,
    pointer_of,
)
from rankstream.wire.deployments import Deployment, decode_deployment, is_deployment
from rankstream.wire.schemas import LogRefused, SchemaRefused
from rankstream.wire.topics import SNAPSHOTS, TRAINING
from rankstream.wire.training import (
    Position,
    Request,
    Status,
    decode_record,
    decode_training_key,
)


class ModelRecords:
    """Takes records of both topics, in their order; the last of each key counts.

    Parameters
    ----------
    models
        Those that are trained; snapshots of others are passed over.
    """

    def __init__(self, models: frozenset[str]) -> None:
        self.newest: dict[str, Snapshot] = {}
        self.positions: dict[str, Position] = {}
        self.requests: dict[str, Request] = {}
        self.statuses: dict[str, Status] = {}
        self.trained: set[str] = set()
        """Interventions that came of a training."""
        self._models = models
        self._deployments: dict[bytes, Deployment] = {}
        self._unreadable = ""

    def take_snapshot(self, key: bytes, value: bytes | None) -> None:
        """Take a record of `snapshots`; one that is damaged is passed over."""
        if value is None:
            self._deployments.pop(key, None)
        elif is_deployment(key, value):
            try:
                self._deployments[key] = decode_deployment(value)
            except (SchemaRefused, msgspec.DecodeError) as error:
                self._unreadable = str(error)
        elif self._model_of(key):
            self._take_envelope(key, value)

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
        if key not in (name.encode(), f"{name}/{at}".encode()):
            return
        known = self.newest.get(name)
        if known is None or pointer_of(known) <= at:
            self.newest[name] = snapshot

    def take_training(self, key: bytes, value: bytes | None) -> str:
        """Take a record of `training`; returns the model that it is of.

        Raises
        ------
        LogRefused
            Where another release wrote it, or something else.
        """
        found = decode_training_key(key)
        if found is None or value is None:
            return ""
        kind, name = found
        if kind == "run":
            self.trained.add(name)
            return name.rpartition("@")[0]
        if name in self._models:
            try:
                record = decode_record(kind, value)
            except msgspec.DecodeError as error:
                raise LogRefused(
                    f"a record of {TRAINING} must be readable; {error}, key "
                    f"{key.decode()!r:.200}: something else wrote it: begin anew in "
                    "another --namespace"
                ) from error
            if kind == "position":
                self.positions[name] = record
            elif kind == "request":
                self.requests[name] = record
            else:
                self.statuses[name] = record
        return name

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
