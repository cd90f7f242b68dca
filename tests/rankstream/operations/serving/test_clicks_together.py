"""Clicks of a request that lie in a record together."""

import json
import time
import zlib

from aiokafka import TopicPartition

from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline
from tests.rankstream.operations.serving.test_events import NOW_MS, clicked, listed
from tests.served import N_PARTITIONS, served, settings_of


def test_plain_clicks_of_a_request_are_a_record_at_the_place_of_its_bytes() -> None:
    """So a request that is sent again reaches the partition that has it already."""
    body = json.dumps([clicked(f"together-{n}") for n in range(50)], indent=1).encode()
    place = TopicPartition(CLICKS, zlib.crc32(body) % N_PARTITIONS)
    with served() as server:
        for _ in range(2):
            answer = server.ask("/v1/events", body)
            assert (answer.status, answer.json["clicks"]) == (202, 50)
        assert server.parts.sender.sent == 100
        assert server.values(CLICKS) == [body] * 2
        log = server.kafka.log(place)
        assert len(log.fetch(0, is_committed=False, limit=None).records) == 2


def test_a_click_counts_once_whatever_it_came_with() -> None:
    """In a record with others, alone, and beside a list, in whichever partition."""
    lists = [listed(f"once-{n}") for n in range(30)]
    clicks = [clicked(f"once-{n}") for n in range(30)]
    with served() as server:
        for body in (lists, clicks, clicks[::-1], [*clicks, lists[0]], *clicks):
            assert server.ask("/v1/events", body).status == 202
        logs = {topic: server.values(topic) for topic in (QUERIES, CLICKS)}
    settings = settings_of().with_kafka(partitions=2, learner_partitions=1)
    pipeline = LocalPipeline(settings, now=lambda: NOW_MS)
    for topic, values in logs.items():
        for value in values:
            pipeline.send(topic, value)
    pipeline.end()
    counts = pipeline.counters()
    assert (counts["interactions"], counts["applied_clicks"]) == (30, 30)
    assert (counts["duplicate"], counts["orphan"], counts["late"]) == (91, 0, 0)


def test_clicks_of_a_clock_that_is_ahead_are_sent_apart() -> None:
    """In one record they would move time in the partition that has them all."""
    time_settings = settings_of().time
    assert time_settings.disorder_ms < time_settings.ahead_ms
    now_ms = time.time_ns() // 1_000_000
    ahead_ms = now_ms + time_settings.ahead_ms - 5_000
    clicks = [clicked(f"ahead-{n}", at_ms=ahead_ms) for n in range(50)]
    with served() as server:
        assert server.ask("/v1/events", clicks).status == 202
        values = server.values(CLICKS)
        assert len(values) == N_PARTITIONS
        assert sum(len(json.loads(value)) for value in values) == 50
