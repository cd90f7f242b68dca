"""What a consumer group has committed, once no transaction can change it any more."""

import gc
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

import kafka
from aiokafka import TopicPartition
from kafka.errors import KafkaError, KafkaTimeoutError

from streams.kafka.broker_away import BrokerAway
from streams.kafka.token_file import blocking


class Committed(NamedTuple):
    """What a group has committed of a partition."""

    offset: int
    metadata: str


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
) -> dict[TopicPartition, Committed]:
    """The positions of a group, without those that it has none of; blocks.

    A position is committed in a transaction. Until the broker that keeps positions has
    heard how that ended, aiokafka is told the one before, and what follows it would be
    taken twice. kafka-python asks for the stable one, and is told to wait.

    Parameters
    ----------
    client
        The options of an aiokafka client.

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
        reason, is_slow = _said(error), True
    except (KafkaError, OSError) as error:
        reason, is_slow = _said(error), False
    if is_slow:
        try:
            _positions(client, group, places, "read_uncommitted", ask_ms)
        except (KafkaError, OSError) as error:
            reason = _said(error)
        else:
            raise PositionsHang(f"positions of {group} must become stable")
    # kafka-python leaves sockets that did not connect to the collector, which hardly
    # runs in a worker; and this is asked again for as long as the broker is away.
    gc.collect(1)
    raise BrokerAway(reason)


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _positions(
    client: Mapping[str, Any],
    group: str,
    places: Collection[TopicPartition],
    isolation: str,
    ask_ms: int,
) -> dict[TopicPartition, Committed]:
    consumer = _consumer(
        **blocking(client),
        group_id=group,
        isolation_level=isolation,
        enable_auto_commit=False,
        allow_auto_create_topics=False,
        bootstrap_timeout_ms=ask_ms,
    )
    found = {}
    try:
        for place in places:
            each = consumer.committed(
                kafka.TopicPartition(*place), metadata=True, timeout_ms=ask_ms
            )
            if each is not None:
                found[place] = Committed(each.offset, each.metadata or "")
    finally:
        consumer.close()
    return found


def _consumer(**options: Any) -> kafka.KafkaConsumer:
    """One that leaves no thread and no socket behind where no broker answers."""
    made: list[Any] = []

    def client(**each: Any) -> Any:
        made.append(kafka.KafkaConsumer.DEFAULT_CONFIG["kafka_client"](**each))
        return made[-1]

    try:
        return kafka.KafkaConsumer(**options, kafka_client=client)
    except BaseException:  # who made it has nothing yet that could be closed
        for each in made:
            each.close()
        raise
