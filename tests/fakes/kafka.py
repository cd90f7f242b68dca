"""A Kafka in memory: topics, transactions, and offsets of groups.

What it does is held to a broker by `tests/fakes/test_fakes_on_kafka.py`. What it does
not do:

* Time. Nothing times out: where a broker lets a client wait for its request timeout
  (a topic that is missing), the client here fails at once. Retention, expiry of a
  transaction and what a transaction leaves hanging come when a test says so.
* Compaction, segments, batches and compression: every record has an offset of its own,
  and none vanishes but by `delete_before`. A fetch is bounded in records only. Where
  records are deleted up to the middle of a batch, while an older transaction is open, a
  broker's last stable offset is that batch's first, so before the log's beginning;
  here it is the beginning.
* Membership of groups: no joins or sessions. A test says who is a member of which
  generation, and who has what.
* Replicas, leaders, and authorisation. No request is lost on its way; a test that
  wants that stops the client's coroutine before or behind it.
* Sequence numbers: a producer here sends each batch once.
* Bounds on the size of records on the broker's side.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from aiokafka import TopicPartition
from aiokafka.errors import (
    OffsetOutOfRangeError,
    TopicAlreadyExistsError,
    UnknownTopicOrPartitionError,
)

from tests.fakes.partition_log import Content, PartitionLog, Writer
from tests.fakes.transactions import Offsets, Transactions

Written = Callable[[TopicPartition, list[Content]], None]
"""Hears of a batch."""


@dataclass
class Topic:
    """A topic; one that is created again has another id."""

    topic_id: str
    partitions: list[PartitionLog]


class FakeKafka:
    """A cluster.

    Parameters
    ----------
    is_eager
        Whether a transaction's markers are written as soon as it ends; otherwise a
        test writes them, one by one.

    Attributes
    ----------
    written
        Is told of every batch of a transaction that a partition takes.
    """

    def __init__(self, *, is_eager: bool = True) -> None:
        self.topics: dict[str, Topic] = {}
        self.groups: dict[str, Offsets] = {}
        self.transactions = Transactions(self.find, self.groups, is_eager=is_eager)
        self.written: Written = lambda *_: None
        self._n_topics = itertools.count(1)

    def create(self, topic: str, n_partitions: int) -> str:
        """Create a topic; gives its id.

        Raises
        ------
        TopicAlreadyExistsError
            Where there is one of that name.
        """
        if topic in self.topics:
            raise TopicAlreadyExistsError
        partitions = [PartitionLog() for _ in range(n_partitions)]
        self.topics[topic] = Topic(f"id-{next(self._n_topics)}", partitions)
        return self.topics[topic].topic_id

    def delete(self, topic: str) -> None:
        """Delete a topic, with what groups have committed for it."""
        if self.topics.pop(topic, None) is None:
            raise UnknownTopicOrPartitionError
        for offsets in self.groups.values():
            for place in [each for each in offsets if each.topic == topic]:
                del offsets[place]

    def delete_before(self, place: TopicPartition, offset: int) -> None:
        """Let a partition begin at an offset."""
        self.log(place).delete_before(offset)

    def n_partitions(self, topic: str) -> int | None:
        """How many partitions a topic has, None where there is none."""
        found = self.topics.get(topic)
        return None if found is None else len(found.partitions)

    def find(self, place: TopicPartition) -> PartitionLog | None:
        """The log of a partition, None where there is none."""
        found = self.topics.get(place.topic)
        if found is None or place.partition >= len(found.partitions):
            return None
        log: PartitionLog = found.partitions[place.partition]
        return log

    def log(self, place: TopicPartition) -> PartitionLog:
        """The log of a partition.

        Raises
        ------
        UnknownTopicOrPartitionError
            Where there is none.
        """
        found = self.find(place)
        if found is None:
            raise UnknownTopicOrPartitionError(place)
        return found

    def produce(
        self,
        place: TopicPartition,
        contents: list[Content],
        by: tuple[str, Writer] | None = None,
    ) -> int:
        """Take a batch; gives its first offset.

        Parameters
        ----------
        by
            Transactional id and writer, for a transaction.
        """
        log = self.log(place)
        if by is None:
            return log.append(None, contents)
        name, writer = by
        if not log.has_open(writer.producer_id):
            self.transactions.check_ongoing(name, writer, place)
        offset = log.append(writer, contents)
        self.written(place, contents)
        return offset

    def hang(self, place: TopicPartition, contents: list[Content], name: str) -> None:
        """Leave records open in a transaction that the coordinator has forgotten."""
        writer = self.transactions.writer_of(name)
        self.log(place).append(writer, contents)

    def committed(self, place: TopicPartition, *, since: int = 0) -> list[Content]:
        """Everything committed in a partition, for verdicts.

        Raises
        ------
        OffsetOutOfRangeError
            Where what is asked for was deleted.
        """
        log = self.log(place)
        if since < log.first:
            raise OffsetOutOfRangeError({place: since})
        fetched = log.fetch(since, is_committed=True)
        return [each.content for each in fetched.records if each.content is not None]
