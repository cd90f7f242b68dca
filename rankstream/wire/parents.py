"""How records name a snapshot that something began from."""

import hashlib

import msgspec

from rankstream.wire.envelope import Snapshot, encode_snapshot


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
