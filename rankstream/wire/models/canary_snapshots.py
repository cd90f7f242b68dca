"""The snapshot in a canary's record, or why it cannot be served."""

from typing import NamedTuple

import msgspec

from rankstream.wire.envelope import Snapshot, SnapshotError, decode_snapshot
from rankstream.wire.models.canaries import Canary, decode_canary
from rankstream.wire.schemas import SchemaRefused


class KnownCanary(NamedTuple):
    """A canary's record as a reader knows it again, without its last bytes.

    `head` begins it, up to the envelope; that of one name never changes.
    """

    head: bytes = b""
    length: int = 0


class OpenedCanary(NamedTuple):
    """A canary, the snapshot that it is, and what its record is known again by."""

    canary: Canary
    snapshot: Snapshot
    known: KnownCanary


def opened_canary(value: bytes, model: str) -> OpenedCanary:
    """What a record of `model` holds, verified.

    Raises
    ------
    SnapshotError
        With the reason `canary`.
    """
    try:
        canary = decode_canary(value)
        snapshot = decode_snapshot(canary.envelope)
    except (msgspec.DecodeError, SchemaRefused, SnapshotError) as error:
        raise SnapshotError(
            "canary", f"a canary of {model!r} must be whole; {error}"
        ) from error
    if snapshot.model != model or canary.model != model:
        raise SnapshotError(
            "canary",
            f"a canary must be of model {model!r}; got {canary.intervention!r} with a "
            f"snapshot of {snapshot.model!r}",
        )
    if snapshot.intervention != canary.intervention:
        raise SnapshotError(
            "canary",
            f"a canary must bear the name of its snapshot, {snapshot.intervention!r}; "
            f"got {canary.intervention!r}",
        )
    if not 0.0 < canary.share < 1.0:
        raise SnapshotError(
            "canary",
            f"a canary must have a share between 0 and 1; {canary.intervention!r} has "
            f"{canary.share}",
        )
    if not 1 <= canary.stage <= len(canary.rules.shares):
        raise SnapshotError(
            "canary",
            f"a canary must have a stage of its {len(canary.rules.shares)} shares; "
            f"{canary.intervention!r} has {canary.stage}",
        )
    head = value[: len(value) - len(canary.envelope)]
    return OpenedCanary(canary, snapshot, KnownCanary(head, len(value)))
