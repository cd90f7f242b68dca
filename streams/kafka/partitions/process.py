"""What rules of an assignment ask of the process that reads and writes."""

from typing import TYPE_CHECKING, NamedTuple, Protocol

from streams.kafka.partitions.committer import Committer

if TYPE_CHECKING:
    from streams.kafka.transport import ReadProgress


class TopicPartition(NamedTuple):
    """A partition of a topic, by its full name; equal to what clients call it."""

    topic: str
    partition: int


class Process(Protocol):
    """Who reads the sources and writes the commits, as far as rules depend on it."""

    @property
    def rebalancing(self) -> bool:
        """Whether partitions are being assigned anew."""

    def progress(self, place: TopicPartition) -> "ReadProgress":
        """How far a partition was read."""

    def committer_of(self, place: TopicPartition) -> Committer | None:
        """What commits a partition; None where its topic is no source of ours."""

    async def written(self) -> None:
        """Wait until nothing is being written."""
