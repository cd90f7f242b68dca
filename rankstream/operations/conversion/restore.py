"""A namespace made again from a backup, on the same cluster or on another one.

The log is written as it was, and ingestion goes on behind it. All stages after it begin
at its first record, so they make again what they had made, to the byte.
"""

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

import msgspec

from producers.brokers.topic_admin import TopicAdmin
from producers.formats.canonical_dump import read_dump
from producers.formats.source_file import FileUnreadable
from producers.topic_reader import TopicReader
from rankstream.operations.answers.copies import Restored
from rankstream.operations.conversion.backup import (
    EVENTS_FILE,
    KEPT,
    Heard,
    Kept,
    last_values,
    partitions_in,
    read_kept,
    settings_in,
)
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.operations.conversion.split_partition import TRANSACTION_MS
from rankstream.operations.conversion.topics import wait_for_workers
from rankstream.settings import Settings
from rankstream.wire.events import SCHEMA
from rankstream.wire.schemas import check_schema
from rankstream.wire.topics import CLICKS, EVENTS, MIB, QUERIES
from streams.ingest.ingest import Ingest
from streams.kafka.clients import Cluster
from streams.kafka.committed_reader import client_options
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    encode_position,
    first_position,
)
from streams.kafka.state.state_log import StateLog
from streams.kafka.state.transactions import Transactions
from streams.stage import Change, Output
from streams.topology import (
    RESTORE_WRITER,
    StageKind,
    pinned_settings,
    topics_of,
)
from streams.worker_roles import kinds_of

AT_ONCE_BYTES = 8 * MIB
"""Of the log in a transaction, and its last record."""

Sequences = dict[tuple[int, int], int]
"""Records of the log by source and partition."""


class _Head(msgspec.Struct, array_like=True):
    """A record of `events`, with its elements as they are."""

    schema: int
    source: int
    sequence: int
    elements: msgspec.Raw


_decode = msgspec.msgpack.Decoder(_Head).decode
_encode = msgspec.msgpack.Encoder().encode


def restore_topics(settings: Settings, folder: Path, topics: list[str]) -> Restored:
    """Write what single topics lack of the backup; workers may run meanwhile.

    Parameters
    ----------
    topics
        Of `KEPT`. A key that is there stays as it is.
    """
    _, kept = read_kept(folder)
    with TopicReader(settings) as reader:
        there = {
            (name, each.key) for name in topics for each in last_values(reader, name)
        }
    lacking = [
        each
        for each in kept
        if each.topic in topics and (each.topic, each.key) not in there
    ]
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        cluster = _cluster(settings, admin)
    finally:
        admin.close()
    asyncio.run(_write(cluster, map(_output, lacking)))
    return Restored(str(folder), 0, _counts(lacking))


def restore(settings: Settings, folder: Path, heard: Heard) -> Restored:
    """Make the namespace again; no worker may run.

    Ingestion comes last: until it is restored, no worker goes on from half of a log.

    Raises
    ------
    ConversionRefused
        Where the namespace is not empty, or its settings are others.
    FileUnreadable, SchemaRefused
        Where the backup is damaged, or of another release. Nothing was written.
    """
    n_inputs, kept = read_kept(folder)
    dump = folder / EVENTS_FILE
    _check_settings(settings, kept, n_inputs, partitions_in(dump, EVENTS))
    sequences = sequences_of(dump)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    try:
        problems = admin.problems()
        if problems:
            raise ConversionRefused("; ".join(problems))
        for role in ("ingest", "fold", "learn"):
            wait_for_workers(admin, settings, role)
        _check_empty(settings)
        cluster = _cluster(settings, admin)
    finally:
        admin.close()
    own = [each for each in kept if each.topic in KEPT]
    asyncio.run(_restored(settings, cluster, kept, sequences, dump, heard))
    return Restored(str(folder), sum(sequences.values()), _counts(own))


def _cluster(settings: Settings, admin: TopicAdmin) -> Cluster:
    options = client_options(settings.kafka)
    return Cluster(settings.namespace, options, admin.topic_ids())


def _counts(kept: Iterable[Kept]) -> dict[str, int]:
    counts = dict.fromkeys(KEPT, 0)
    for each in kept:
        counts[each.topic] += 1
    return counts


def _check_settings(
    settings: Settings, kept: list[Kept], n_inputs: int, n_partitions: int
) -> None:
    for name, was, got in (
        ("input_partitions", n_inputs, settings.kafka.input_partitions),
        ("partitions", n_partitions, settings.kafka.partitions),
    ):
        if got != was:
            raise ConversionRefused(
                f"kafka.{name} must be that of the backup, {was}; got {got}: set it, "
                "and give the log more partitions afterwards (docs/partitions.md)"
            )
    (fold,) = kinds_of("fold")
    now = pinned_settings(fold, settings)
    changed = [
        f"{name} was {was!r}, is {now[name]!r}"
        for name, was in sorted(settings_in(kept).items())
        if name in now and now[name] != was
    ]
    if changed:
        raise ConversionRefused(
            "settings must be those that the backup was counted under; "
            f"{', '.join(changed)}: set it back; `rankstream replay {EVENTS_FILE}` "
            "counts by others"
        )


def _check_empty(settings: Settings) -> None:
    """Refuse a namespace where anything but input was written."""
    with TopicReader(settings) as reader:
        for topic in topics_of(settings.kafka):
            if topic.name not in (QUERIES, CLICKS) and any(
                reader.written(topic.name).values()
            ):
                raise ConversionRefused(
                    "a namespace must be empty to be restored to; its topic "
                    f"{topic.name} was written to: name another --namespace, or "
                    "delete its topics and create them again"
                )


def sequences_of(dump: Path) -> Sequences:
    """Read a log to its end, before anything is written of it.

    Raises
    ------
    FileUnreadable, SchemaRefused
    """
    last: Sequences = {}
    n_records: Sequences = {}
    for number, (partition, value) in enumerate(read_dump(dump)):
        check_schema(value, SCHEMA, "a record of events", f"{dump}, record {number}")
        head = _decode(value)
        place = head.source, partition
        # Where retention has cut the log it begins with a later number than 1.
        if head.sequence != last.get(place, head.sequence - 1) + 1:
            raise FileUnreadable(
                dump,
                0,
                f"record {number} must follow the one before of source {head.source}; "
                f"it is number {head.sequence} after {last[place]}",
            )
        last[place] = head.sequence
        n_records[place] = n_records.get(place, 0) + 1
    return n_records


def numbered(dump: Path, heard: Heard = lambda _: None) -> Iterator[Output]:
    """Records of the log, each source numbered from 1."""
    counts: Sequences = {}
    for number, (partition, value) in enumerate(read_dump(dump), 1):
        head = _decode(value)
        place = head.source, partition
        counts[place] = counts.get(place, 0) + 1
        if head.sequence != counts[place]:
            head.sequence = counts[place]
            yield Output(EVENTS, partition, None, _encode(head))
        else:
            yield Output(EVENTS, partition, None, value)
        if number % 64 == 0:
            heard(number)


def _output(kept: Kept) -> Output:
    return Output(kept.topic, kept.partition, kept.key, kept.value)


async def _restored(
    settings: Settings,
    cluster: Cluster,
    kept: list[Kept],
    sequences: Sequences,
    dump: Path,
    heard: Heard,
) -> None:
    own = (_output(each) for each in kept if each.topic in KEPT)
    await _write(cluster, own)
    await _write(cluster, numbered(dump, heard))
    n_inputs = settings.kafka.input_partitions
    for nth, kind in enumerate(kinds_of("ingest")):
        for partition in range(n_inputs):
            source = nth * n_inputs + partition
            n_records = [
                sequences.get((source, each), 0)
                for each in range(settings.kafka.partitions)
            ]
            await _go_on(settings, cluster, kind, partition, kept, n_records)


async def _write(cluster: Cluster, outputs: Iterable[Output]) -> None:
    """Write records in transactions of a bounded size."""
    writer = Transactions(cluster, RESTORE_WRITER)
    try:
        await writer.fence(TRANSACTION_MS)
        together: list[Output] = []
        n_bytes = 0
        for output in outputs:
            together.append(output)
            n_bytes += len(output.value or b"")
            if n_bytes >= AT_ONCE_BYTES:
                await writer.commit(together)
                together, n_bytes = [], 0
        if together:
            await writer.commit(together)
    finally:
        await writer.close()


async def _go_on(
    settings: Settings,
    cluster: Cluster,
    kind: StageKind,
    partition: int,
    kept: list[Kept],
    n_records: list[int],
) -> None:
    """Let a partition of ingestion go on behind the log, from its first input."""
    (topic,) = kind.state_topics
    stage = cast("Ingest", kind.build(settings, partition))
    stage.restore(
        Change(topic, each.key, each.value)
        for each in kept
        if (each.topic, each.partition) == (topic, partition)
    )
    stage.go_on_behind(n_records)
    log = StateLog(kind, partition, cluster)
    try:
        await log.fence(TRANSACTION_MS)
        source = (await log.read()).source
        position = msgspec.structs.replace(
            first_position(source, kind.version, stage.fingerprint()),
            settings=pinned_settings(kind, settings),
        )
        marker = Change(topic, POSITION_KEY, encode_position(position))
        await log.write([], [*stage.changes(), marker])
    finally:
        await log.close()
