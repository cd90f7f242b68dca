"""Statistics of a partition on Kafka, converted in one transaction.

The transaction has the id of the fold's own, so that a worker that starts meanwhile
fences it. It holds tombstones of all old keys, the new values, and a resume position
with the fingerprint of the new fold. Before it is committed nothing has changed;
afterwards the partition is one of this release.
"""

from dataclasses import replace
from typing import NamedTuple

import msgspec

from rankstream.operations.conversion.schema1 import (
    ConversionRefused,
    old_values,
    read_statistics,
)
from rankstream.operations.conversion.scopes import (
    Report,
    Situation,
    check_settings,
    converted,
    split,
)
from rankstream.settings import Settings
from rankstream.wire.topics import STATISTICS
from streams.kafka.clients import Cluster
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    check_missing,
    check_position,
    decode_position,
    encode_position,
)
from streams.kafka.state.state_log import StateLog, StateRead
from streams.stage import Change
from streams.topology import StageKind

TRANSACTION_MS = 600_000
"""All statistics of a partition are written in one transaction."""

Items = dict[tuple[str, bytes], bytes]


class StoppedPartition(NamedTuple):
    """A partition that may be converted: its position, old statistics, all else."""

    position: ResumePosition
    old: dict[bytes, bytes]
    others: Items


async def convert_partition(
    kind: StageKind,
    partition: int,
    cluster: Cluster,
    settings: Settings,
    *,
    is_trial: bool,
) -> Report | None:
    """Convert one partition; None if nothing of before is there.

    Parameters
    ----------
    kind
        The stage that writes statistics.

    Raises
    ------
    ConversionRefused, LogRefused
        Where state or settings do not allow it; nothing has changed.
    """
    state = StateLog(kind, partition, cluster)
    longest_ms = max(TRANSACTION_MS, settings.delivery.transaction_timeout_ms)
    try:
        await state.fence(longest_ms)
        stopped = stopped_partition(kind, partition, await state.read())
        if stopped is None:
            return None
        check_settings(settings)
        changes, report = _changes(kind, partition, settings, stopped)
        if not is_trial:
            await state.write([], changes)
        return report
    finally:
        await state.close()


def stopped_partition(
    kind: StageKind, partition: int, read: StateRead
) -> StoppedPartition | None:
    """What is to be converted, once it is sure that it may be."""
    items, _, source = read
    place = (kind.state_topics[0], POSITION_KEY)
    packed = items.get(place)
    if packed is None:
        check_missing(source, place[0], committed=None, n_keys=len(items))
        return None
    position = decode_position(packed)
    statistics = {
        key: value for (topic, key), value in items.items() if topic == STATISTICS
    }
    old = old_values(statistics)
    is_converted = kind.since <= position.stage_version <= kind.version
    if is_converted and not old:
        return None
    if is_converted or len(old) < len(statistics):
        raise ConversionRefused(
            f"{STATISTICS}[{partition}] must hold statistics of one release; of "
            f"{len(statistics)} keys {len(old)} are of before, at a resume position of "
            f"version {position.stage_version}: fold the log in a new --namespace"
        )
    before = kind.since - 1
    check_position(position, source, replace(kind, since=before, version=before))
    if position.checkpoint_offset != position.offset:
        raise ConversionRefused(
            f"{source.name} must have been stopped gracefully; its state is as of "
            f"offset {position.checkpoint_offset}, and it went on to "
            f"{position.offset}: run the release that wrote it, stop that with "
            "SIGTERM, and convert again"
        )
    others = {
        (topic, key): value
        for (topic, key), value in items.items()
        if topic != STATISTICS and (topic, key) != place
    }
    return StoppedPartition(position, old, others)


def _changes(
    kind: StageKind, partition: int, settings: Settings, stopped: StoppedPartition
) -> tuple[list[Change], Report]:
    """All that the transaction writes."""
    position, old, others = stopped
    kept = [Change(topic, key, value) for (topic, key), value in others.items()]
    known = kind.build(settings, partition)
    known.restore(kept)
    watermark_ms = known.counters()["watermark_ms"]
    situation = Situation(partition, watermark_ms, settings)
    records, report = converted(read_statistics(old), situation)
    new = list(split(records))
    stage = kind.build(settings, partition)
    stage.restore([*kept, *new])
    fingerprint = stage.fingerprint()
    moved = msgspec.structs.replace(
        position,
        fingerprint=fingerprint,
        checkpoint_fingerprint=fingerprint,
        number=position.number + 1,
        stage_version=kind.version,
    )
    tombstones = [Change(STATISTICS, key, None) for key in old]
    written = Change(kind.state_topics[0], POSITION_KEY, encode_position(moved))
    return [*tombstones, *new, written], report
