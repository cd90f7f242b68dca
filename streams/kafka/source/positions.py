"""Where reading of other systems' topics begins, and what forbids to go on."""

from collections.abc import Mapping
from typing import NamedTuple

from aiokafka import TopicPartition

from rankstream.settings import SourceSettings
from streams.kafka.source.source_log import Position
from streams.kafka.state.resume_position import StateRefused

LATEST = "latest"


class Bounds(NamedTuple):
    """Offset of the oldest record of a partition, and the one behind its newest."""

    first: int
    end: int


def starts_of(
    sources: Mapping[str, SourceSettings],
    committed: Mapping[TopicPartition, Position],
    bounds: Mapping[TopicPartition, Bounds],
    topic_ids: Mapping[str, str],
    group: str,
) -> dict[TopicPartition, int]:
    """The offset at which each partition is to be read on.

    A partition that a topic was given later is read from its beginning, whatever the
    settings say: all of it is newer than what was read.

    Parameters
    ----------
    sources
        By the topic that each reads.
    committed
        Where the group is, without partitions that it never read.

    Raises
    ------
    StateRefused
        Where a topic is another one by now, or lacks what comes next.
    """
    begun = {place.topic for place in committed}
    starts = {}
    for place, (first, end) in bounds.items():
        position = committed.get(place)
        if position is not None:
            check_position(place, position, Bounds(first, end), topic_ids, group)
            starts[place] = position.offset
        elif sources[place.topic].start == LATEST and place.topic not in begun:
            starts[place] = end
        else:
            starts[place] = first
    return starts


def is_another(known: str, seen: str) -> bool:
    """Whether a topic was created anew, as far as ids of both are known."""
    return bool(known and seen) and known != seen


def check_position(
    place: TopicPartition,
    position: Position,
    bounds: Bounds,
    topic_ids: Mapping[str, str],
    group: str,
) -> None:
    """Refuse to go on from a position that is not in the topic.

    Raises
    ------
    StateRefused
        With the command that accepts what is missing.
    """
    name = f"{place.topic}[{place.partition}]"
    command = (
        f"stop the workers and run `kafka-consumer-groups.sh --group {group} --topic "
        f"{place.topic}:{place.partition} --reset-offsets --to-earliest --execute`"
    )
    topic_id = topic_ids.get(place.topic, "")
    if is_another(position.topic_id, topic_id):
        raise StateRefused(
            f"the source {name} must be the topic that was read before; its id is "
            f"{topic_id}, not {position.topic_id}: it was created anew. To read the "
            f"new one from its beginning, {command}"
        )
    first, end = bounds
    if not first <= position.offset <= end:
        raise StateRefused(
            f"the source {name} must still hold offset {position.offset}; it holds "
            f"{first} to {end - 1}: its retention is shorter than the worker was "
            f"behind, or somebody deleted records. To go on without them, {command}"
        )
