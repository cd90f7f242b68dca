"""Events and positions of the role `adapt`: all of a transaction or nothing."""

import asyncio
import json

import pytest
from aiokafka import TopicPartition
from aiokafka.errors import KafkaError

from rankstream.adapters.known_queries import KnownQueries
from rankstream.wire.topics import CLICKS, QUERIES
from streams.kafka.clients import Cluster
from streams.kafka.source.recent_lists import learn_lists
from streams.kafka.source.source_log import Position, SourceLog
from streams.stage import Output
from tests.fakes.clients import FakeClients
from tests.fakes.kafka import FakeKafka
from tests.fakes.partition_log import Content

GROUP = "rankstream-adapt"
FOREIGN = TopicPartition("ubi", 0)


@pytest.fixture
def kafka() -> FakeKafka:
    """Our input topics, and a source."""
    made = FakeKafka()
    for topic, n_partitions in ((QUERIES, 2), (CLICKS, 2), (FOREIGN.topic, 1)):
        made.create(topic, n_partitions)
    return made


def cluster_of(kafka: FakeKafka) -> Cluster:
    """To be reached through fake clients."""
    return Cluster("", {}, {}, FakeClients(kafka))


def values(kafka: FakeKafka, topic: str) -> list[bytes | None]:
    """What readers of committed records see."""
    logs = (kafka.committed(TopicPartition(topic, n)) for n in range(2))
    return [content.value for log in logs for content in log]


def test_whoever_fences_ends_what_its_predecessor_had_begun(kafka: FakeKafka) -> None:
    """And the predecessor writes no more, neither events nor positions."""

    async def run() -> None:
        first, second = (SourceLog(cluster_of(kafka), GROUP, 1_000) for _ in range(2))
        await first.fence()
        await first.write([Output(QUERIES, 1, None, b"a")], {FOREIGN: Position(5, "x")})
        assert values(kafka, QUERIES) == [b"a"]
        assert kafka.groups[GROUP] == {FOREIGN: 5}
        await second.fence()
        with pytest.raises(KafkaError):
            await first.write(
                [Output(QUERIES, 0, None, b"b")], {FOREIGN: Position(6, "x")}
            )
        assert values(kafka, QUERIES) == [b"a"]
        assert kafka.groups[GROUP] == {FOREIGN: 5}
        await second.write([Output(CLICKS, 0, None, b"c")], {FOREIGN: Position(7, "x")})
        assert values(kafka, CLICKS) == [b"c"]
        await first.close()
        await second.close()

    asyncio.run(run())


def test_events_whose_position_hangs_never_come(kafka: FakeKafka) -> None:
    """They are adapted again from where the position was: readers see them once."""

    async def run() -> None:
        own = SourceLog(cluster_of(kafka), GROUP, 1_000)
        await own.fence()
        await own.write([Output(QUERIES, 0, None, b"a")], {FOREIGN: Position(5, "x")})
        hanging = [Content(None, b"b", (), 0)]
        kafka.hang(TopicPartition(QUERIES, 0), hanging, "rankstream-adapt")
        assert kafka.log(TopicPartition(QUERIES, 0)).has_open(1)
        await own.end_what_hangs([FOREIGN])
        assert not kafka.log(TopicPartition(QUERIES, 0)).has_open(1)
        assert kafka.groups[GROUP] == {FOREIGN: 5}
        await own.write([Output(QUERIES, 0, None, b"b")], {FOREIGN: Position(6, "x")})
        assert values(kafka, QUERIES) == [b"a", b"b"]
        await own.close()

    asyncio.run(run())


def test_lists_that_were_shown_lately_are_known_to_who_takes_over(
    kafka: FakeKafka,
) -> None:
    """Alone in a record or in an array; what is no list is passed over."""
    lists = [{"impression_id": f"i{n}", "query_id": f"q{n}"} for n in range(5)]
    records = [json.dumps(lists[0]), "no json", json.dumps(lists[1:]), "{}", ""]
    kafka.produce(
        TopicPartition(QUERIES, 1), [Content(None, r.encode(), (), 0) for r in records]
    )
    queries = KnownQueries()
    asyncio.run(learn_lists(cluster_of(kafka), 2, queries))
    assert dict(queries) == {f"i{n}": f"q{n}" for n in range(5)}
