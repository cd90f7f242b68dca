"""Publish a snapshot under a name of its own: the one way to deploy anything.

Rolling back and following again come here, and so will whatever trains or promotes.
"""

import time
from collections.abc import Iterable

import msgspec

from producers.event_producer import send_records
from producers.topic_reader import Record
from rankstream.deployment_rules import DeploymentRefused, check_room
from rankstream.settings import Settings
from rankstream.snapshots import (
    Pointer,
    Snapshot,
    SnapshotStore,
    deployed,
    encode_snapshot,
    pointer_of,
)
from rankstream.wire.deployments import (
    Deployment,
    decode_deployment,
    deployment_record,
    is_deployment,
)
from rankstream.wire.envelope import CURVE
from rankstream.wire.schemas import SchemaRefused
from rankstream.wire.topics import SNAPSHOTS


def deployments_among(records: Iterable[Record]) -> list[Deployment]:
    """Those among records of `snapshots`.

    Raises
    ------
    DeploymentRefused
        Where one cannot be read, as their number would be wrong.
    """
    found = []
    for record in records:
        if record.value is None or not is_deployment(record.key or b"", record.value):
            continue
        try:
            found.append(decode_deployment(record.value))
        except (SchemaRefused, msgspec.DecodeError) as error:
            raise DeploymentRefused(
                f"deployments in {SNAPSHOTS} must be readable; {error}, at offset "
                f"{record.offset}: run the release that wrote it"
            ) from error
    return found


def deploy(
    settings: Settings,
    store: SnapshotStore,
    snapshot: Snapshot,
    *,
    epoch: int,
    key: bytes,
    deployments: Iterable[Deployment],
) -> Pointer:
    """Serve a snapshot as `MODEL@EPOCH.VERSION`; returns its place.

    A curve of bias makes no list, so it takes no room of those that do.

    Parameters
    ----------
    epoch
        Later than any of its model.
    key
        Of its record in the topic: what publishers do with later versions.
    deployments
        All that there were.

    Raises
    ------
    DeploymentRefused, SnapshotError, StoreUnavailable, SendFailed
    """
    at_ms = time.time_ns() // 1_000_000
    new = deployed(snapshot, epoch)
    value = encode_snapshot(new)
    records = [(key, value)]
    if new.kind != CURVE:
        check_room(settings, deployments, at_ms=at_ms)
        # The name first: a crash between leaves one too many, never one unknown.
        noted = deployment_record(new.intervention, at_ms, new.groups)
        records.insert(0, noted)
    send_records(settings, SNAPSHOTS, records)
    store.publish(value)
    return pointer_of(new)
