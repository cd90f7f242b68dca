"""What a stage of the pipeline is: a fold over one partition of one topic.

The shell (`streams.kafka.partitions.committer` on Kafka, `streams.local` in process)
brings records and takes outputs and state; a stage never waits, fetches or publishes.
"""

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from rankstream.wire.schemas import LogRefused

__all__ = [
    "Change",
    "LogRefused",
    "Output",
    "SourceRecord",
    "Stage",
    "offset_referred",
    "referred",
]


class SourceRecord(NamedTuple):
    """A record as it stands in a topic. `topic` is the name without namespace.

    `timestamp_ms` of an input topic is when the broker appended the record, or, where
    the topic does not say so, when it was read. What a client says is not believed.
    """

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...]


class Output(NamedTuple):
    """A record to be written, to an explicit partition of a topic."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes], ...] = ()


class Change(NamedTuple):
    """A changed piece of state: `value` None is a tombstone."""

    topic: str
    key: bytes
    value: bytes | None


def referred(topic: str, offset: int, value: bytes) -> Change:
    """A record of a source, as a piece of the state that refers to it."""
    return Change(topic, offset.to_bytes(8, "big"), value)


def offset_referred(piece: Change) -> int:
    """The offset of a record that was made a piece of state."""
    return int.from_bytes(piece.key, "big")


class Stage(Protocol):
    """One partition of one stage.

    A stage is built from its configuration; everything else that it knows comes
    from `restore` and from the records that it folds.
    """

    def fold(self, record: SourceRecord) -> None:
        """Take one record; never raises for what the record holds."""

    def tick(self, *, at_end_ms: int) -> None:
        """Hear of the source's end; only ingest listens, all others are pure folds.

        `at_end_ms` is for how long the broker has been saying, without a break, that
        it has nothing more for this partition; 0 where it has, or does not answer.
        """

    def settle(self) -> None:
        """Do pending numeric work that holds no lock (may run in a thread)."""

    def outputs(self) -> list[Output]:
        """Outputs since the last call."""

    def changes(self) -> Iterable[Change]:
        """State that changed since the last call, as of the last folded record."""

    def restore(self, items: Iterable[Change]) -> None:
        """Take back what `changes` gave, the last value of each key.

        With it come the records of the source that these refer to, each as `referred`
        makes it. Called once, before the first `fold`.
        """

    def fingerprint(self) -> bytes:
        """A few bytes that two equal states share and unequal ones hardly do.

        Cheap: counters and sequence numbers, not the whole state.
        """

    def counters(self) -> dict[str, int]:
        """Counts since the beginning of the log, and gauges, by metric name."""
