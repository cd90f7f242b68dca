"""What commands write to `snapshots`: versions served again, and repairs.

An old version is served again, and later the newest one, by a record in an epoch of its
own: publishers, now or after a restart, serve it and let no earlier epoch in. Both are
interventions: their lists are logged as those of `MODEL@EPOCH.VERSION`.

What nobody can serve is passed over by publishers and counted, so that nothing stands
still. But under its key each such record has replaced what was there, such as a
rollback or the last training, and compaction will take that away. So where the topic
still has the record before, it is written again.
"""

from collections.abc import Iterable
from typing import NamedTuple

from producers.deployment import deploy, deployments_among
from producers.event_producer import send_records
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
from rankstream.wire.snapshot_names import decode_record, version_key
from rankstream.wire.topics import SNAPSHOTS

OTHERS_REASONS = frozenset({"schema", "shape"})
"""Of what a later release may have written: it is told of, and left as it is."""


class DeadRecord(NamedTuple):
    """The last record of its key, where nobody can serve it.

    Parameters
    ----------
    reason, why
        Of the refusal; see `SnapshotError`.
    before
        The last record of the key that is a good one, where the topic still has it.
    before_at
        Its version.
    """

    key: bytes
    offset: int
    size: int
    reason: str
    why: str
    before: bytes | None = None
    before_at: Pointer | None = None

    @property
    def is_ours(self) -> bool:
        """Whether no release would serve it, as far as this one knows."""
        return self.reason not in OTHERS_REASONS

    @property
    def remedy(self) -> str:
        """What repairing it does."""
        if not self.is_ours:
            return "left: a later release may have written it"
        return f"back to {self.before_at}" if self.before_at else "removed"


def dead_among(records: Iterable[Record], model: str = "") -> list[DeadRecord]:
    """Those among all records of the topic, in the order of their offsets.

    Parameters
    ----------
    model
        Only those whose key is of this model.
    """
    dead: dict[bytes, DeadRecord] = {}
    good: dict[bytes, tuple[bytes, Pointer]] = {}
    for record in records:
        key, value = record.key, record.value
        if key is None or not _is_of(key, model):
            continue
        dead.pop(key, None)
        if value is None:
            good.pop(key, None)
            continue
        if is_deployment(key, value):
            continue
        try:
            good[key] = value, pointer_of(decode_record(key, value))
        except SnapshotError as error:
            before = good.get(key, (None, None))
            dead[key] = DeadRecord(
                key, record.offset, len(value), error.reason, str(error), *before
            )
    return sorted(dead.values(), key=lambda each: each.offset)


def dead_records(settings: Settings, model: str = "") -> list[DeadRecord]:
    """Those of the topic; see `dead_among`.

    Raises
    ------
    TopicUnreadable
    """
    with TopicReader(settings) as reader:
        return dead_among(reader.records(SNAPSHOTS), model)


def repair(settings: Settings, told: Iterable[DeadRecord]) -> list[DeadRecord]:
    """Take away what was told of, and is still there; returns what was.

    Raises
    ------
    TopicUnreadable, SendFailed
    """
    wanted = {each for each in told if each.is_ours}
    # Somebody may have published under a key since it was told of.
    still = [each for each in dead_records(settings) if each in wanted]
    send_records(settings, SNAPSHOTS, [(each.key, each.before) for each in still])
    return still


def _is_of(key: bytes, model: str) -> bool:
    return not model or model.encode() in (key, key.rpartition(b"/")[0])


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
