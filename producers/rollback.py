"""Serve an old version of a model again, and later the newest one.

Both are records of the topic `snapshots`, in an epoch of their own: publishers, now
or after a restart, serve them and let no earlier epoch in. Both are interventions:
their lists are logged as those of `MODEL@EPOCH.VERSION`.
"""

from typing import NamedTuple

from producers.deployment import deploy, deployments_among
from producers.topic_reader import Record, TopicReader
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotError,
    SnapshotStore,
    decode_at,
    decode_snapshot,
    following_key,
    pointer_of,
)
from rankstream.wire.deployments import Deployment, is_deployment
from rankstream.wire.snapshot_keys import decode_record, version_key
from rankstream.wire.topics import SNAPSHOTS


class RollbackRefused(RuntimeError):
    """What was asked for cannot be served.

    Operator action: name a version that `rankstream snapshots list MODEL` shows.
    """


class Learned(NamedTuple):
    """What the topic says of a model, and of all deployments.

    `envelope` is that of the newest version that was learned; `epoch` the latest.
    """

    envelope: bytes | None
    epoch: int
    deployments: list[Deployment]


def roll_back(
    settings: Settings, store: SnapshotStore, model: str, version: Pointer
) -> Pointer:
    """Serve an old version and stay there; returns its new place.

    Raises
    ------
    SnapshotError, StoreUnavailable, RollbackRefused, DeploymentRefused, SendFailed
    """
    envelope = store.load(model, version)
    if envelope is None:
        raise RollbackRefused(
            f"a version must be kept in Redis; {version} of {model!r} is not: "
            f"`rankstream snapshots list {model}` has those that are"
        )
    snapshot = decode_at(envelope, model, version)
    learned = _learned(settings, store, model)
    return deploy(
        settings,
        store,
        snapshot,
        epoch=max(learned.epoch, version.epoch) + 1,
        key=model.encode(),
        deployments=learned.deployments,
    )


def follow_again(settings: Settings, store: SnapshotStore, model: str) -> Pointer:
    """Serve what is learned again, now and from now on; returns its place.

    Raises
    ------
    SnapshotError, StoreUnavailable, RollbackRefused, DeploymentRefused, SendFailed
    """
    if model in settings.schedules:
        raise RollbackRefused(
            f"a model must learn online to be followed; {model!r} does not: roll back "
            "to the version that is to be served, or train it on with `rankstream "
            f"intervene {model}`"
        )
    learned = _learned(settings, store, model)
    if learned.envelope is None:
        raise RollbackRefused(
            f"a model must have been learned; {model!r} was not: "
            "`rankstream snapshots list` has those that were"
        )
    if learned.epoch == 0:
        raise RollbackRefused(
            f"a model must be rolled back; {model!r} is not: it follows what "
            "is learned already"
        )
    return deploy(
        settings,
        store,
        decode_snapshot(learned.envelope),
        epoch=learned.epoch + 1,
        key=following_key(model),
        deployments=learned.deployments,
    )


def _learned(settings: Settings, store: SnapshotStore, model: str) -> Learned:
    standing = store.standing([model]).get(model)
    epoch = standing.epoch if standing else 0
    newest, place = None, Pointer(0, -1)
    noted: list[Record] = []
    with TopicReader(settings) as reader:
        for record in reader.records(SNAPSHOTS):
            key, value = record.key or b"", record.value
            if value is None:
                continue
            if is_deployment(key, value):
                noted.append(record)
                continue
            snapshot = _readable(model, key, value)
            if snapshot is None:
                continue
            at = pointer_of(snapshot)
            if key != version_key(snapshot):
                epoch = max(epoch, at.epoch)
            elif at > place:
                newest, place = value, at
    return Learned(newest, epoch, deployments_among(noted))


def _readable(model: str, key: bytes, value: bytes) -> Snapshot | None:
    """The snapshot of a record of this model; None of others, and where it is dead.

    What publishers pass over, and serve nobody, holds no rollback up either.
    """
    own = model.encode()
    if key != own and key.rpartition(b"/")[0] != own:
        return None
    try:
        snapshot = decode_record(key, value)
    except SnapshotError:
        return None
    return snapshot if snapshot.model == model else None
