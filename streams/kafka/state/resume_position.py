"""The resume position of a partition, and whether it belongs to its source."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from rankstream.wire.schemas import decoded, schema_of
from streams.stage import LogRefused
from streams.topology import StageKind

POSITION_KEY = b"marker"  # as earlier versions wrote it
"""Key of the resume position in the state topic."""

SCHEMA = 2


class StateRefused(LogRefused):
    """The state of a partition does not belong to its log, or is missing.

    Operator action: the message names what repairs it.
    """


class Loss(msgspec.Struct, frozen=True, array_like=True, order=True):
    """Offsets, both ends included, that were never folded and are not in the topic."""

    first: int
    last: int

    def __len__(self) -> int:
        return self.last - self.first + 1

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"


class ResumePosition(msgspec.Struct, frozen=True, array_like=True):
    """How far a partition is: outputs up to `offset`, state as of `checkpoint_offset`.

    Parameters
    ----------
    next_offset
        Where reading goes on: behind Kafka's own transaction markers after `offset`.
    topic_id, n_partitions
        Of the source. The id is unique over all clusters.
    number
        Commits so far.
    settings
        Those that the state was made under, by name; empty where an earlier release
        wrote the position, which recorded none.
    losses
        What an operator agreed to go on without.
    """

    schema: int
    offset: int
    checkpoint_offset: int
    fingerprint: bytes
    checkpoint_fingerprint: bytes
    topic_id: str
    number: int
    next_offset: int = 0
    n_partitions: int = 0
    stage_version: int = 0
    settings: dict[str, Any] = {}
    losses: tuple[Loss, ...] = ()

    def after(self, offset: int, fingerprint: bytes, reached: int) -> "ResumePosition":
        """The position of the next commit.

        Parameters
        ----------
        offset, fingerprint
            Of the last record that was folded, and of the stage behind it.
        reached
            Offset behind all that was read; 0 where that is not known.
        """
        return msgspec.structs.replace(
            self,
            offset=offset,
            fingerprint=fingerprint,
            number=self.number + 1,
            next_offset=max(offset + 1, reached, self.next_offset),
        )

    def as_checkpoint(self) -> "ResumePosition":
        """The same where the commit writes the state too."""
        return msgspec.structs.replace(
            self,
            checkpoint_offset=self.offset,
            checkpoint_fingerprint=self.fingerprint,
        )


NOWHERE = ResumePosition(SCHEMA, -1, -1, b"", b"", "", 0)
"""Of a partition that has not been opened."""


class SourcePartition(NamedTuple):
    """What the broker says about a partition of a source.

    Parameters
    ----------
    first, end
        Offset of its oldest record, and the one behind its newest.
    """

    name: str
    topic_id: str
    n_partitions: int
    first: int
    end: int


_decode = msgspec.msgpack.Decoder(ResumePosition).decode
encode_position = msgspec.msgpack.Encoder().encode


def decode_position(packed: bytes) -> ResumePosition:
    """Take a resume position back.

    Raises
    ------
    StateRefused
        Where another version wrote it.
    """
    remedy = "run the version that wrote it, or fold the log in a new --namespace"
    # Another schema may well have another layout.
    schema = schema_of(packed)
    if schema not in (SCHEMA, None):
        raise StateRefused(
            f"a resume position must have schema {SCHEMA}; got {schema}: {remedy}"
        )
    try:
        return decoded(_decode, packed)
    except msgspec.DecodeError as error:
        raise StateRefused(
            f"a resume position must be readable; {error}: {remedy}"
        ) from error


def first_position(
    source: SourcePartition, stage_version: int, fingerprint: bytes
) -> ResumePosition:
    """Where a partition is of which nothing was ever folded."""
    before = source.first - 1
    return ResumePosition(
        SCHEMA, before, before, fingerprint, fingerprint, source.topic_id, 0,
        source.first, source.n_partitions, stage_version,
    )  # fmt: skip


def check_missing(
    source: SourcePartition, state_topic: str, *, committed: int | None, n_keys: int
) -> None:
    """Refuse to start from the beginning where something was counted already.

    Raises
    ------
    StateRefused
        Where the group has commits, or the state topic holds keys.
    """
    if committed or n_keys:
        fact = (
            f"{state_topic} holds {n_keys} keys without one"
            if n_keys
            else f"the group has committed offset {committed}"
        )
        raise StateRefused(
            f"{source.name} must have a resume position in {state_topic}; it has none, "
            f"but {fact}: something else wrote to that topic or emptied it; use a new "
            "--namespace to count from the beginning"
        )


def check_position(
    position: ResumePosition, source: SourcePartition, kind: StageKind
) -> None:
    """Refuse a state that was not counted from this log, by this stage.

    Raises
    ------
    StateRefused
        Where the source was created anew, cut off at its end or given more partitions,
        or the stage folds differently by now.
    """
    if position.topic_id != source.topic_id:
        raise StateRefused(
            f"{source.name} must be the topic that its state was counted from; its id "
            f"is {source.topic_id}, not {position.topic_id}: it was created anew; use "
            "a new --namespace"
        )
    if position.n_partitions != source.n_partitions:
        raise StateRefused(
            f"the topic of {source.name} must keep its {position.n_partitions} "
            f"partitions; it has {source.n_partitions}: records are routed by that "
            "number; stop all workers and run `rankstream topics split` "
            "(docs/partitions.md), or use a new --namespace"
        )
    first, last = kind.since, kind.version
    if not first <= position.stage_version <= last:
        is_convertible = kind.conversion and position.stage_version == first - 1
        remedy = kind.conversion if is_convertible else "run the version that wrote it"
        span = f"{last}" if first == last else f"{first} to {last}"
        raise StateRefused(
            f"the state of {source.name} must be of version {span}; it is "
            f"of {position.stage_version}: {remedy}, or fold the log in a new "
            "--namespace"
        )
    known = max(position.offset, *(loss.last for loss in position.losses), -1)
    if source.end <= known:
        raise StateRefused(
            f"{source.name} must still hold what comes after offset {known}; it holds "
            f"{source.first} to {source.end - 1}: it was truncated; use a new "
            "--namespace"
        )


def check_settings(
    position: ResumePosition, name: str, settings: Mapping[str, Any]
) -> None:
    """Refuse settings under which the same records would be folded differently.

    A setting that the position does not name is taken as it is.

    Parameters
    ----------
    name
        Of the partition.
    settings
        Those that the stage folds under from now on.

    Raises
    ------
    StateRefused
        With each that differs.
    """
    changed = [
        f"{setting} was {was!r}, is {settings[setting]!r}"
        for setting, was in sorted(position.settings.items())
        if setting in settings and settings[setting] != was
    ]
    if changed:
        raise StateRefused(
            f"settings must be those that the state of {name} was made under; "
            f"{', '.join(changed)}: set it back, or fold the log in a new --namespace"
        )


def start_of(position: ResumePosition) -> int:
    """The first offset that is to be folded on top of the state."""
    if position.checkpoint_offset < position.offset:
        return position.checkpoint_offset + 1
    return max(position.checkpoint_offset + 1, position.next_offset)


def taken_position(
    items: dict[tuple[str, bytes], bytes],
    source: SourcePartition,
    kind: StageKind,
    pinned: Mapping[str, Any],
    committed: int | None,
) -> ResumePosition | None:
    """Take the resume position from what was read; None where there never was one.

    Parameters
    ----------
    pinned
        Settings that a state depends on, as they are.
    committed
        What the consumer group committed for the partition, if anything.

    Raises
    ------
    StateRefused
        Where it may not be gone on from.
    """
    state_topic = kind.state_topics[0]
    packed = items.pop((state_topic, POSITION_KEY), None)
    if packed is None:
        check_missing(source, state_topic, committed=committed, n_keys=len(items))
        return None
    position = decode_position(packed)
    check_position(position, source, kind)
    check_settings(position, source.name, pinned)
    return msgspec.structs.replace(position, stage_version=kind.version)
