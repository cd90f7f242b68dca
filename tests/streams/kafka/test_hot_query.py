"""Half of all events are of one query, and so of one partition."""

from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition

from producers.topic_reader import read_topic
from rankstream.settings import Settings
from rankstream.wire.topics import EVENTS, STATISTICS, full_name
from streams.statistics.reader import Statistics
from streams.topology import group_of
from tests.live_lists import LiveLists, applied, assert_all_applied, soon
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running, settings_of, waited_until

HOT = "hot"
PER_S = 400.0
N_LISTS = 4_000


def query_of(number: int) -> str:
    """The hot one every other time, else one of two hundred."""
    return HOT if number % 2 else f"q{number // 2 % 200}"


class Lag:
    """What Kafka says of the fold's group: records of each partition of the log."""

    def __init__(self, settings: Settings) -> None:
        topic = full_name(settings.namespace, EVENTS)
        self._group = group_of(settings.namespace, "fold")
        self._admin = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
        self._consumer = KafkaConsumer(bootstrap_servers=settings.kafka.bootstrap)
        self._places = [
            TopicPartition(topic, number) for number in range(settings.kafka.partitions)
        ]

    def now(self) -> list[tuple[int, int]]:
        """End and lag of each partition."""
        committed = self._admin.list_group_offsets({self._group: None})[self._group]
        ends = self._consumer.end_offsets(self._places)
        found = []
        for place in self._places:
            at = committed.get(place)
            found.append((ends[place], ends[place] - (at.offset if at else 0)))
        return found

    def close(self) -> None:
        """Let the clients go."""
        self._consumer.close()
        self._admin.close()


def n_commits_of_hottest(seen: list[list[tuple[int, int]]]) -> int:
    """How many positions were seen of the partition that has most."""
    hottest = max(range(len(seen[-1])), key=lambda number: seen[-1][number])
    return len({end - left for end, left in (each[hottest] for each in seen)})


@pytest.mark.broker
def test_a_hot_query_is_counted_exactly_and_its_partition_keeps_up(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """It moves on while events come, and ends without lag; so do the others."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings, log = settings_of(config), tmp_path / "worker.log"
    roles = ("--role", "ingest", "--role", "fold")
    seen: list[list[tuple[int, int]]] = []
    with running(config, log, *roles) as worker:
        waited_until(lambda: worker.said().count("event=restored") >= 12, log)
        lag = Lag(settings)
        with LiveLists(settings, per_s=PER_S, query_of=query_of) as lists:

            def has_moved() -> bool:
                seen.append(lag.now())
                return lists.n_lists >= N_LISTS and n_commits_of_hottest(seen) >= 4

            waited_until(has_moved, log)
            lists.finish()
            everything = 2 * lists.n_lists
            waited_until(lambda: applied(settings) >= everything, log)
        waited_until(lambda: not any(n for _, n in lag.now()), log)
        lag.close()
        assert worker.stop()[0] == 0
    statistics = Statistics(
        (key or b"", value) for _, _, key, value in read_topic(settings, STATISTICS)
    )
    assert_all_applied(settings, lists)
    assert lists.by_query[HOT] == lists.n_lists // 2
    assert statistics.queries() == {
        query: (count, count) for query, count in lists.by_query.items()
    }
