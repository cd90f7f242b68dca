"""A partition of the log on Kafka, divided among its children in one transaction.

The transaction has the id of the fold's own, so that a worker that starts meanwhile
fences it. It writes the state of all children, a resume position with the fingerprint
of each, and tombstones of what left the partition itself. Before it is committed
nothing has changed; afterwards every child is one of the wider log.
"""

from collections.abc import Sequence
from typing import Any

import msgspec

from producers.topic_reader import TopicReader
from rankstream.operations.conversion.schema1 import ConversionRefused
from rankstream.settings import Settings
from rankstream.wire.topics import CANDIDATES, EVENTS
from streams.fold.canonical_fold import CanonicalFold
from streams.kafka.clients import Cluster
from streams.kafka.referring_state import ReferringState
from streams.kafka.state.resume_position import (
    POSITION_KEY,
    ResumePosition,
    SourcePartition,
    check_missing,
    check_position,
    decode_position,
    encode_position,
    first_position,
    start_of,
)
from streams.kafka.state.state_log import StateRead
from streams.repartitioning.log_split import LogSplit, divided, splits_of
from streams.repartitioning.records import moved_features
from streams.stage import Change, Output
from streams.topology import StageKind

TRANSACTION_MS = 600_000
"""All state of a partition is written in one transaction."""

Values = dict[tuple[str, bytes], bytes]


Report = dict[int, tuple[int, int]]
"""Scopes, and events whose outcome is open, of each child."""


def partitions_before(read: StateRead, n_after: int) -> int:
    """How many partitions the log had when a partition was not divided yet."""
    markers = [value for (_, key), value in read.items.items() if key == POSITION_KEY]
    if not markers:
        return n_after
    found = decode_position(markers[0]).n_partitions
    done = [each for each in splits_of(read.items) if each.n_after == n_after]
    return done[-1].n_before if done and found == n_after else found


class Divider:
    """Divides partitions of the log.

    Parameters
    ----------
    kind
        The stage that folds the log.
    settings
        Those of the wider log.
    """

    def __init__(
        self, kind: StageKind, cluster: Cluster, settings: Settings, n_before: int
    ) -> None:
        self._kind = kind
        self._cluster = cluster
        self._settings = settings
        self._n_before = n_before
        self._n_after = settings.kafka.partitions
        self._place = (kind.state_topics[0], POSITION_KEY)

    async def divide(self, partition: int) -> Report | None:
        """Divide a partition; None where that is done, or nothing was ever in it.

        Raises
        ------
        ConversionRefused, LogRefused
            Where state or log do not allow it; nothing has changed.
        """
        children = range(partition, self._n_after, self._n_before)
        logs = {
            child: ReferringState(self._kind, child, self._cluster)
            for child in children
        }
        try:
            for log in logs.values():
                await log.fence(TRANSACTION_MS)
            reads = {child: await log.read() for child, log in logs.items()}
            position = self._position(partition, reads)
            if position is None:
                return None
            split = LogSplit(position.offset, self._n_before, self._n_after)
            return await self._divided(logs[partition], split, position, reads)
        finally:
            for log in logs.values():
                await log.close()

    def _position(
        self, partition: int, reads: dict[int, StateRead]
    ) -> ResumePosition | None:
        """Where the partition is, once it is sure that it may be divided."""
        values, _, source = reads[partition]
        packed = values.get(self._place)
        if packed is None:
            check_missing(source, self._place[0], committed=None, n_keys=len(values))
            return None
        position = decode_position(packed)
        if position.n_partitions == self._n_after:
            return None
        wide = msgspec.structs.replace(position, n_partitions=source.n_partitions)
        check_position(wide, source, self._kind)
        if position.n_partitions != self._n_before:
            raise ConversionRefused(
                f"the state of {source.name} must be of {self._n_before} partitions, "
                f"as that of others; it is of {position.n_partitions}: fold the log in "
                "a new --namespace"
            )
        if position.checkpoint_offset != position.offset or self._has_more(
            partition, position
        ):
            raise ConversionRefused(
                f"{source.name} must have been folded to its end before it got more "
                f"partitions; its state is as of offset {position.checkpoint_offset}, "
                f"written up to {position.offset}, of {source.end}: fold the log in a "
                "new --namespace"
            )
        for child, read in reads.items():
            if child != partition:
                self._check_empty(read)
        return position

    def _has_more(self, partition: int, position: ResumePosition) -> bool:
        """Whether records are left that belong to children."""
        with TopicReader(self._settings) as reader:
            left = reader.records(EVENTS, {partition: start_of(position)})
            return next(left, None) is not None

    def _check_empty(self, read: StateRead) -> None:
        """Refuse a child that has folded something already."""
        packed = read.items.get(self._place)
        offset = -1 if packed is None else decode_position(packed).offset
        if offset >= read.source.first:
            raise ConversionRefused(
                f"{read.source.name} must not have been folded before the split; it "
                f"was, up to {offset}: fold the log in a new --namespace"
            )

    async def _divided(
        self,
        log: ReferringState,
        split: LogSplit,
        position: ResumePosition,
        reads: dict[int, StateRead],
    ) -> Report:
        own, *_ = reads
        values = {
            place: value
            for place, value in reads[own].items.items()
            if place != self._place
        }
        try:
            shares = divided(values, own, split, self._settings)
        except ValueError as error:
            raise ConversionRefused(
                f"the state of {reads[own].source.name} must be whole; it is not "
                f"({error}): fold the log in a new --namespace"
            ) from error
        folds = {child: self._restored(child, share) for child, share in shares.items()}
        outputs = self._moved_features([*shares])
        changes: list[Change] = []
        for child, share in shares.items():
            fingerprint = folds[child].fingerprint()
            moved = _moved(
                position, fingerprint, reads[child].source, is_own=child == own
            )
            marker = Change(*self._place, encode_position(moved))
            before = self._own_state(reads[child])
            written = [*_changed(before, share), marker]
            if child == own:
                changes += written
            else:
                outputs += [
                    Output(each.topic, child, each.key, each.value) for each in written
                ]
        await log.write(outputs, changes)
        counters = {child: fold.counters() for child, fold in folds.items()}
        return {
            child: (one["statistics_scopes"], one["pending"])
            for child, one in counters.items()
        }

    def _own_state(self, read: StateRead) -> Values:
        """Without the records of the log that it refers to."""
        topics = self._kind.state_topics
        return {at: value for at, value in read.items.items() if at[0] in topics}

    def _moved_features(self, children: Sequence[int]) -> list[Output]:
        """Features of candidates go where the fold will let go of them one day."""
        with TopicReader(self._settings) as reader:
            records = reader.records(CANDIDATES, {children[0]: 0})
            pairs = ((record.key, record.value) for record in records)
            return list(moved_features(pairs, children, self._n_after))

    def _restored(self, child: int, share: list[Change]) -> CanonicalFold:
        """The fold of a child, which shows that its share can be taken back."""
        fold: Any = self._kind.build(self._settings, child)
        fold.restore(share)
        taken_back: CanonicalFold = fold
        return taken_back


def _moved(
    position: ResumePosition,
    fingerprint: bytes,
    source: SourcePartition,
    *,
    is_own: bool,
) -> ResumePosition:
    """The resume position of a child: where it was, or before all else."""
    if not is_own:
        first = first_position(source, position.stage_version, fingerprint)
        return msgspec.structs.replace(first, settings=position.settings)
    return msgspec.structs.replace(
        position,
        fingerprint=fingerprint,
        checkpoint_fingerprint=fingerprint,
        number=position.number + 1,
        n_partitions=source.n_partitions,
    )


def _changed(before: Values, share: list[Change]) -> list[Change]:
    """What differs from what is there, and tombstones of all else."""
    now = {(topic, key) for topic, key, _ in share}
    gone = [Change(*place, None) for place in before if place not in now]
    gone = [each for each in gone if each.key != POSITION_KEY]
    return gone + [each for each in share if before.get(each[:2]) != each.value]
