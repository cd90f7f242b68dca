"""The largest that anybody may send, between good events, which stay exact."""

import asyncio
import gc
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest
from aiokafka.errors import KafkaError
from kafka import KafkaConsumer, TopicPartition

from producers.dead_letters import read_letters
from producers.event_producer import EventProducer
from producers.topic_reader import TopicReader
from rankstream.settings import Settings
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import (
    CLICKS,
    INTERACTIONS,
    MAX_ELEMENTS,
    MAX_EVENT_BYTES,
    MIB,
    QUERIES,
    full_name,
)
from streams.local import LocalPipeline, local_settings
from tests.bombs import Bomb, throw
from tests.services import KafkaService, RedisService
from tests.session.cases import n_cases
from tests.streams.largest_records import NOW_MS, WIDE, large_query
from tests.worker_process import configured, running, settings_of, waited_until

N_GOOD = n_cases(4_000, 10_000)
N_LARGE = N_GOOD // 100
N_FLOOD = 17_500
KEY = b"k" * 200 * 1_024
MANY = b"[" + b"1," * (MAX_ELEMENTS - 1) + b"1]"


class Sent(NamedTuple):
    """A record, and when its event was."""

    topic: str
    value: bytes
    key: bytes | None = None


def good(start_ms: int, step_ms: int) -> Iterator[list[Sent]]:
    """Lists of two items, every third clicked."""
    for number in range(N_GOOD):
        at_ms = start_ms + number * step_ms
        event = {"impression_id": f"i{number}", "query_id": "good", "at_ms": at_ms}
        sent = [Sent(QUERIES, json.dumps({**event, "shown": ["a", "b"]}).encode())]
        if number % 3 == 0:
            click = {**event, "at_ms": at_ms + 1, "position": 1 + number % 2}
            sent.append(Sent(CLICKS, json.dumps(click).encode()))
        yield sent


def large(number: int, at_ms: int, template: bytes) -> list[Sent]:
    """Each of five kinds in its turn; of the first the clicks are many."""
    kind = number % 5
    if kind == 0:
        return flood(number, at_ms, N_FLOOD if number == 0 else 1_000)
    if kind == 1:
        return [Sent(QUERIES, MANY, KEY)]
    if kind == 2:
        named = template.replace(b'"large-000"', b'"large-%03d"' % number)
        return [Sent(QUERIES, named.replace(b"%d" % NOW_MS, b"%d" % at_ms))]
    click = json.dumps({"impression_id": f"i{number}", "at_ms": at_ms, "position": 1})
    if kind == 3:
        room = MAX_EVENT_BYTES - 4_096
        return [
            Sent(CLICKS, click.encode()[:-1] + b',"query_id":"good"}' + b" " * room)
        ]
    return [Sent(CLICKS, click.encode(), b"k" * 4 * MIB)]


def flood(number: int, at_ms: int, n_clicks: int) -> list[Sent]:
    """A list, and clicks on it of a kibibyte of action each."""
    event = {"impression_id": f"flood-{number}", "query_id": "flood", "at_ms": at_ms}
    sent = [Sent(QUERIES, json.dumps({**event, "shown": ["x"]}).encode())]
    for first in range(0, n_clicks, 500):
        clicks = [
            {**event, "at_ms": at_ms + 1, "position": 1, "action": WIDE * 256,
             "event_id": f"e{number}-{first + n}"}
            for n in range(min(500, n_clicks - first))
        ]  # fmt: skip
        packed = json.dumps(clicks, ensure_ascii=False).encode()
        sent.append(Sent(CLICKS, packed))
    return sent


N_FLOODS = N_LARGE // 5
N_FLOODED = N_FLOOD + 1_000 * (N_FLOODS - 1)
EXPECTED_LETTERS = {
    "batch-letters": N_LARGE // 5,
    "too-large": N_LARGE // 5,
    "no-route": N_LARGE // 5,
}


def between(start_ms: int, step_ms: int) -> Iterator[list[Sent]]:
    """Good ones with their clicks, and a large one after each hundred."""
    template = large_query("large-000")
    for number, sent in enumerate(good(start_ms, step_ms)):
        yield sent
        if number % (N_GOOD // N_LARGE) == 50:
            at_ms = start_ms + number * step_ms
            yield large(number // (N_GOOD // N_LARGE), at_ms, template)


class Tally:
    """What came out: clicks of each good list, of floods, and large lists."""

    def __init__(self) -> None:
        self.good: Counter[str] = Counter()
        self.clicks: Counter[int] = Counter()
        self.flooded: Counter[str] = Counter()
        self.n_large = 0

    def add(self, value: bytes) -> None:
        """Take a record of interactions."""
        for impression, marks in (
            (each.impression, each.clicks)
            for each in decode_interaction_record(value).interactions
        ):
            name = impression.impression_id
            if name.startswith("large"):
                self.n_large += 1
            elif name.startswith("flood"):
                self.flooded[name] += len(marks)
            else:
                self.good[name] += 1
                self.clicks.update(mark.position for mark in marks)

    def check(self) -> None:
        """The good are exact; each flood has as many clicks as it may."""
        assert len(self.good) == sum(self.good.values()) == N_GOOD
        assert self.clicks == {
            1: sum(n % 6 == 0 for n in range(N_GOOD)),
            2: sum(n % 6 == 3 for n in range(N_GOOD)),
        }
        assert self.n_large == N_LARGE // 5
        assert len(self.flooded) == N_FLOODS
        assert set(self.flooded.values()) <= set(range(400, 500))


@pytest.mark.long  # the largest records that there are, as many as fill memory
def test_in_process_the_good_are_exact_and_memory_is_flat() -> None:
    """However many large ones came before."""
    tally, letters = Tally(), Counter[str]()

    def see(output: object) -> None:
        topic, value = output.topic, output.value  # type: ignore[attr-defined]
        if topic == INTERACTIONS:
            tally.add(value)
        elif topic.endswith("dlq"):
            headers = dict(output.headers)  # type: ignore[attr-defined]
            letters[headers["__rankstream.errors.code"].decode()] += 1

    pipeline = LocalPipeline(
        local_settings(Settings()), now=lambda: NOW_MS, on_output=see
    )
    resident = []
    for number, sent in enumerate(between(NOW_MS - 20_000_000, 2_000)):
        for topic, value, key in sent:
            pipeline.send(topic, value, key)
        if number % (N_GOOD // 10) == 99:
            gc.collect()
            resident.append(psutil.Process().memory_info().rss)
    pipeline.end()
    counters = pipeline.counters()
    tally.check()
    beyond = N_FLOODED - sum(tally.flooded.values())

    assert letters == {**EXPECTED_LETTERS, "too-many-clicks": beyond}
    assert counters["dead_letter"] == beyond
    assert (counters["late"], counters["orphan"], counters["pending"]) == (0, 0, 0)
    assert max(resident[5:]) < max(resident[:5]) + 100 * MIB


N_STAGES = 16
"""Ingestion of both topics, the fold and the learner, of four partitions each."""

CONFIG = """
[time]
click_window_ms = 20_000
disorder_ms = 2_000
idle_ms = 60_000
"""
"""Clicks wait behind megabytes in the client: a short silence must make none late."""


@pytest.mark.broker
def test_on_kafka_the_good_are_exact_and_nobody_stops(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Bombs among them; every role stays up, in no more memory than ever."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, CONFIG)
    settings, log = settings_of(config), tmp_path / "worker.log"
    bomb, peaks = Bomb(40, 7 * MIB), Counter[str]()
    queries = full_name(namespace, QUERIES)
    tally, reader = Tally(), interactions_of(kafka, namespace)
    with running(config, log) as worker:

        def watched() -> bool:
            for role in ("ingest", "fold", "learn"):
                child = worker.child(role)
                assert child is not None, worker.said()[-2_000:]
                peaks[role] = max(peaks[role], child.memory_info().rss)
            for records in reader.poll(timeout_ms=100).values():
                for record in records:
                    tally.add(record.value)
            return sum(tally.good.values()) >= N_GOOD and (
                tally.n_large + len(tally.flooded) >= N_LARGE // 5 + N_FLOODS
            )

        waited_until(lambda: worker.said().count("event=restored") >= N_STAGES, log)
        start_ms = int(time.time() * 1_000) - 20 * N_GOOD - 100_000
        with EventProducer(settings) as producer:
            for number, sent in enumerate(between(start_ms, 20)):
                for topic, value, key in sent:
                    producer.send(topic, value, key)
                if number % 2_500 == 1_000:
                    with pytest.raises(KafkaError):
                        asyncio.run(throw(kafka.bootstrap, queries, bomb))
                    watched()
            producer.end()
        waited_until(watched, log)
        status, _ = worker.stop()
    assert not reader.poll(timeout_ms=1_000)
    reader.close()
    tally.check()
    with TopicReader(settings) as topics:
        letters = Counter(letter.code for letter in read_letters(topics))
    beyond = N_FLOODED - sum(tally.flooded.values())

    assert letters == {**EXPECTED_LETTERS, "too-many-clicks": beyond}
    assert (status, "event=failed" in worker.said()) == (0, False)
    assert worker.said().count("event=restored") == N_STAGES
    # Ten lists of 8 MiB are open at a time, in several copies on their way.
    assert max(peaks.values()) < 1_200 * MIB, peaks


def interactions_of(kafka: KafkaService, namespace: str) -> KafkaConsumer:
    """A reader of all interactions as they are committed."""
    reader = KafkaConsumer(
        bootstrap_servers=kafka.bootstrap,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    name = full_name(namespace, INTERACTIONS)
    reader.assign([TopicPartition(name, partition) for partition in range(4)])
    return reader
