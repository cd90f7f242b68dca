"""Serve an old version of a model again, and later the newest one.

Both are records of the topic `snapshots`, in an epoch of their own: publishers, now
or after a restart, serve them and let no earlier epoch in.
"""

from producers.event_producer import send_records
from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    SnapshotStore,
    decode_at,
    decode_snapshot,
    encode_snapshot,
    following_key,
    pointer_from,
    pointer_of,
    rolled_back,
)
from rankstream.wire.topics import SNAPSHOTS


class RollbackRefused(RuntimeError):
    """What was asked for cannot be served.

    Operator action: name a version that `rankstream snapshots list MODEL` shows.
    """


def roll_back(
    settings: Settings, store: SnapshotStore, model: str, version: Pointer
) -> Pointer:
    """Serve an old version and stay there; returns its new place.

    Raises
    ------
    SnapshotError, StoreUnavailable, RollbackRefused, SendFailed
    """
    envelope = store.load(model, version)
    if envelope is None:
        raise RollbackRefused(
            f"a version must be kept in Redis; {version} of {model!r} is not: "
            f"`rankstream snapshots list {model}` has those that are"
        )
    decode_at(envelope, model, version)
    latest = max(_learned(settings, store, model)[1], version.epoch)
    return _serve(settings, store, envelope, latest + 1, model.encode())


def follow_again(settings: Settings, store: SnapshotStore, model: str) -> Pointer:
    """Serve what is learned again, now and from now on; returns its place.

    Raises
    ------
    SnapshotError, StoreUnavailable, RollbackRefused, SendFailed
    """
    envelope, epoch = _learned(settings, store, model)
    if envelope is None:
        raise RollbackRefused(f"a model must have been learned; {model!r} was not")
    if epoch == 0:
        raise RollbackRefused(f"a model must be rolled back; {model!r} is not")
    return _serve(settings, store, envelope, epoch + 1, following_key(model))


def _learned(
    settings: Settings, store: SnapshotStore, model: str
) -> tuple[bytes | None, int]:
    """The newest version that was learned, and the latest epoch."""
    standing = store.standing([model]).get(model)
    epoch = standing.epoch if standing else 0
    newest, place = None, Pointer(0, -1)
    with TopicReader(settings) as reader:
        for record in reader.records(SNAPSHOTS):
            name, _, version = (record.key or b"").rpartition(b"/")
            if record.value is None:
                continue
            if record.key in (model.encode(), following_key(model)):
                epoch = max(epoch, pointer_of(decode_snapshot(record.value)).epoch)
            elif name == model.encode() and (at := pointer_from(version)) > place:
                newest, place = record.value, at
    return newest, epoch


def _serve(
    settings: Settings, store: SnapshotStore, envelope: bytes, epoch: int, key: bytes
) -> Pointer:
    new = rolled_back(decode_snapshot(envelope), epoch)
    value = encode_snapshot(new)
    send_records(settings, SNAPSHOTS, [(key, value)])
    store.publish(value)
    return pointer_of(new)
