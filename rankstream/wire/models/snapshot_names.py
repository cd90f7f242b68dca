"""How records name snapshots: keys of `snapshots`, and what something began from."""

import hashlib

import msgspec

from rankstream.wire.envelope import (
    Snapshot,
    SnapshotError,
    decode_snapshot,
    encode_snapshot,
    pointer_of,
)


def decode_record(key: bytes, envelope: bytes) -> Snapshot:
    """The snapshot in a record of the topic `snapshots`, verified.

    Parameters
    ----------
    key
        `MODEL/EPOCH.VERSION`, `MODEL` of one that was deployed, or `MODEL/follow`; see
        `following_key`.

    Raises
    ------
    SnapshotError
        As `decode_snapshot`; also misplaced, where the key is of another snapshot.
    """
    snapshot = decode_snapshot(envelope)
    model, whole = snapshot.model, version_key(snapshot)
    if key not in (whole, model.encode(), following_key(model)):
        raise SnapshotError(
            "misplaced", f"the key must be {whole!r}; got {key[:300]!r}"
        )
    return snapshot


def version_key(snapshot: Snapshot) -> bytes:
    """The key, in the topic, of what is learned online."""
    return f"{snapshot.model}/{pointer_of(snapshot)}".encode()


def following_key(model: str) -> bytes:
    """The key, in the topic, of the record after which learned versions are served."""
    return f"{model}/follow".encode()


class Parent(msgspec.Struct, frozen=True, array_like=True):
    """The version that a training, or a fit, began from; digest of its envelope."""

    epoch: int
    version: int
    sha256: bytes


def sha256_of(envelope: bytes) -> bytes:
    """The digest by which records name a snapshot."""
    return hashlib.sha256(envelope).digest()


def parent_of(snapshot: Snapshot) -> Parent:
    """A version as the record of the next one names it."""
    digest = sha256_of(encode_snapshot(snapshot))
    return Parent(snapshot.epoch, snapshot.version, digest)
