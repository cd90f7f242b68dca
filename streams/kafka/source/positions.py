"""Where reading of other systems' topics begins, and what forbids to go on."""

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import kafka
from aiokafka import TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from rankstream.settings import SourceSettings
from streams.kafka.source.source_log import Position
from streams.kafka.source_watch import BrokerAway
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


ASK_MS = 10_000
"""No transaction is under way when it is asked: a broker tells within a moment."""


class PositionsHang(RuntimeError):
    """A broker keeps positions open although no transaction of ours is under way.

    Operator action: none; the worker ends what hangs.
    """


def stable_positions(
    client: Mapping[str, Any],
    group: str,
    places: Collection[TopicPartition],
    ask_ms: int = ASK_MS,
) -> dict[TopicPartition, Position]:
    """The positions of a group, without those that it has none of; blocks.

    A position is committed in a transaction. Until the broker that keeps positions has
    heard how that ended, aiokafka is told the one before, and what follows it would be
    adapted twice. kafka-python asks for the stable one, and is told to wait.

    Parameters
    ----------
    client
        The options of an aiokafka client, which are kafka-python's too.

    Raises
    ------
    PositionsHang
        Where the broker tells them, but not that they are stable.
    BrokerAway
        Where nobody tells them.
    """
    try:
        return _positions(client, group, places, "read_committed", ask_ms)
    except KafkaTimeoutError as error:
        slow: Exception = error
    except (KafkaError, OSError) as error:
        raise BrokerAway(f"{type(error).__name__}: {error}") from error
    try:
        _positions(client, group, places, "read_uncommitted", ask_ms)
    except (KafkaError, OSError) as error:
        raise BrokerAway(f"{type(error).__name__}: {error}") from error
    raise PositionsHang(f"positions of {group} must become stable") from slow


def _positions(
    client: Mapping[str, Any],
    group: str,
    places: Collection[TopicPartition],
    isolation: str,
    ask_ms: int,
) -> dict[TopicPartition, Position]:
    consumer = kafka.KafkaConsumer(
        **client,
        group_id=group,
        isolation_level=isolation,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
    )
    found = {}
    try:
        for place in places:
            each = consumer.committed(
                kafka.TopicPartition(*place), metadata=True, timeout_ms=ask_ms
            )
            if each is not None:
                found[place] = Position(each.offset, each.metadata or "")
    finally:
        consumer.close()
    return found
