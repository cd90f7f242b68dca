"""Records that operators agreed to lose, as the resume positions of stages say."""

from collections.abc import Iterator

from producers.topic_reader import TopicReader
from rankstream.wire.schemas import LogRefused
from streams.kafka.state.lost_records import AcceptedLoss, is_dispensable
from streams.kafka.state.resume_position import POSITION_KEY, decode_position
from streams.topology import STAGES

TAIL_OFFSETS = 500
"""Every commit writes the position, with no more than a few records after it."""


def accepted_losses(reader: TopicReader) -> list[AcceptedLoss]:
    """All of them, by topic and partition; of topics that exist.

    A position of another release says nothing.
    """
    found: list[AcceptedLoss] = []
    for kind in filter(is_dispensable, STAGES):
        state_topic = kind.state_topics[0]
        if not reader.partitions(state_topic):
            continue
        for partition, packed in sorted(dict(_positions(reader, state_topic)).items()):
            try:
                losses = decode_position(packed).losses
            except LogRefused:
                continue
            found += [AcceptedLoss(kind.source, partition, each) for each in losses]
    return found


def told(accepted: AcceptedLoss) -> str:
    """A loss in words.

    Examples
    --------
    >>> print(told(AcceptedLoss.parsed("queries:0:5-8")))
    queries[0]: offsets 5-8 (4) were lost unread, as an operator accepted
    """
    return (
        f"{accepted.topic}[{accepted.partition}]: offsets {accepted.loss} "
        f"({len(accepted.loss)}) were lost unread, as an operator accepted"
    )


def _positions(reader: TopicReader, state_topic: str) -> Iterator[tuple[int, bytes]]:
    """Partition and resume position, the last of each partition last."""
    for record in reader.last_records(state_topic, TAIL_OFFSETS):
        if record.key == POSITION_KEY and record.value:
            yield record.partition, record.value
