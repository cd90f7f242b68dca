"""Topics of another system adapted on a real broker, with kills: each document once."""

import json
import random
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition

from producers.brokers.connection import client_options
from producers.brokers.topic_admin import TopicAdmin
from producers.topic_reader import read_records
from rankstream.settings import Settings
from rankstream.wire.input_events import REFUSED_HEADER
from rankstream.wire.routing import partition_of_input
from rankstream.wire.topics import CLICKS, QUERIES
from streams.adaptation.adapted import ORIGIN_HEADER
from streams.topology import topics_of
from tests.services import KafkaService
from tests.worker_process import (
    WorkerProcess,
    running,
    settings_of,
    waited_until,
)

START_MS = 1_600_000_000_000

N_LISTS = 90_000

N_PARTITIONS = 3

N_KILLS = 6

SOURCES = """
[delivery]
session_timeout_s = 6.0
[kafka]
bootstrap = "{bootstrap}"
input_partitions = 2
[sources.shown]
topic = "{shown}"
format = "ubi"
[sources.acted]
topic = "{acted}"
format = "ubi"
"""


def iso(at_ms: int) -> str:
    """As documents have times."""
    seconds, ms = divmod(at_ms, 1_000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{ms:03d}Z"


class Shop:
    """What another system has sent, and what must become of it."""

    def __init__(self, settings: Settings, shown: str, acted: str) -> None:
        self.settings = settings
        self.topics = shown, acted
        self.lists: Counter[str] = Counter()
        self.clicks: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        forever = {"retention.ms": "-1", "message.timestamp.type": "CreateTime"}
        admin = KafkaAdminClient(**client_options(settings.kafka))
        options = {"num_partitions": N_PARTITIONS, "configs": forever}
        admin.create_topics(dict.fromkeys(self.topics, options))
        admin.wait_for_topics(list(self.topics))
        admin.close()

    def fill(self, numbers: range) -> None:
        """Send lists, clicks without their query, refused documents and tombstones.

        Most are in one partition, so that the others are read far faster.
        """
        draw = random.Random(7)  # noqa: S311
        options = client_options(self.settings.kafka) | {"linger_ms": 20}
        producer = KafkaProducer(**options)
        shown, acted = self.topics
        for n in numbers:
            at_ms, name = START_MS + 1_000 * n, f"list-{n}"
            self._send(producer, draw, shown, at_ms, {
                "query_id": name, "user_query": f"q {n % 50}",
                "query_response_hit_ids": ["a", "b", "c"], "timestamp": iso(at_ms),
            })  # fmt: skip
            self.lists[name] += 1
            ordinal = 0 if n % 100 == 0 else 2
            self._send(producer, draw, acted, at_ms + 400, {
                "action_name": "click", "query_id": name, "timestamp": iso(at_ms + 400),
                "event_attributes": {
                    "object": {"object_id": "b"}, "position": {"ordinal": ordinal},
                },
            })  # fmt: skip
            (self.clicks if ordinal else self.refused)[name] += 1
            if n % 500 == 0:
                at = {"partition": 1, "timestamp_ms": at_ms}
                producer.send(acted, key=b"k", value=None, **at)
        producer.flush()
        producer.close()

    def _send(
        self,
        producer: KafkaProducer,
        draw: random.Random,
        topic: str,
        at_ms: int,
        document: dict[str, Any],
    ) -> None:
        partition = draw.choice([0] * 18 + [1, 2])
        producer.send(
            topic,
            value=json.dumps(document).encode(),
            partition=partition,
            timestamp_ms=at_ms,
        )

    @property
    def n_expected(self) -> int:
        """Events and refused documents."""
        return sum(c.total() for c in (self.lists, self.clicks, self.refused))

    def written(self) -> dict[str, list[tuple[int, dict[str, Any], dict[str, bytes]]]]:
        """Partition, document and headers of all in the input topics, in order."""
        found: dict[str, list[Any]] = defaultdict(list)
        for topic in (QUERIES, CLICKS):
            for record in read_records(self.settings, topic):
                documents: list[Any]
                if record.headers:
                    documents = [record.value]
                else:
                    value = json.loads(record.value or b"")
                    documents = value if isinstance(value, list) else [value]
                for each in documents:
                    is_raw = isinstance(each, bytes)
                    document: dict[str, Any] = json.loads(each) if is_raw else each
                    entry = (record.partition, document, dict(record.headers))
                    found[topic].append(entry)
        return found

    def n_lag(self) -> int:
        """Documents that the group has not passed."""
        group = f"{self.settings.namespace}.rankstream-adapt"
        consumer = KafkaConsumer(
            **client_options(self.settings.kafka), group_id=group,
            isolation_level="read_committed", enable_auto_commit=False,
        )  # fmt: skip
        places = [
            TopicPartition(t, p) for t in self.topics for p in range(N_PARTITIONS)
        ]
        ends = consumer.end_offsets(places)
        lags = [ends[place] - (consumer.committed(place) or 0) for place in places]
        consumer.close()
        return int(sum(lags))


@pytest.fixture
def shop(kafka: KafkaService, namespace: str, tmp_path: Path) -> Shop:
    """Another system's topics, and ours beside them."""
    own = SOURCES.format(
        bootstrap=kafka.bootstrap,
        shown=f"{namespace}-shown",
        acted=f"{namespace}-acted",
    )
    whole = f'namespace = "{namespace}"\n{own}'
    config = tmp_path / "rankstream.toml"
    config.write_text(whole)
    settings = settings_of(config)
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    admin.create()
    admin.close()
    return Shop(settings, f"{namespace}-shown", f"{namespace}-acted")


def kill_at_work(worker: WorkerProcess, shop: Shop, most_left: int) -> int:
    """Kill -9 the role as soon as so little is left; says how much was left then."""
    waited_until(lambda: shop.n_lag() <= most_left, worker.log)
    left, n_ready = shop.n_lag(), worker.said().count("event=ready role=adapt")
    waited_until(lambda: worker.kill("adapt"), worker.log)
    waited_until(
        lambda: worker.said().count("event=ready role=adapt") > n_ready, worker.log
    )
    return left


def test_each_document_is_adapted_once_whoever_is_killed(
    shop: Shop, tmp_path: Path
) -> None:
    """The role alone, then its whole worker while another one stands by.

    Behind all kills the input topics hold each event once, in the order of time.
    """
    config = tmp_path / "rankstream.toml"
    shop.fill(range(N_LISTS))
    steps = np.linspace(2 * N_LISTS, 0, N_KILLS + 2)[1:-1].astype(int).tolist()
    words = ("--role", "adapt")
    with running(config, tmp_path / "one.log", *words) as one:
        left = [kill_at_work(one, shop, most_left) for most_left in steps]
        with running(config, tmp_path / "two.log", *words) as two:
            waited_until(lambda: "event=standing-by" in two.said(), two.log)
            left.append(shop.n_lag())
            one.process.kill()
            one.kill("adapt")
            waited_until(lambda: shop.n_lag() == 0, two.log)
            status, _ = two.stop()
    assert status == 0, two.said()[-2_000:]
    assert sum(n > 0 for n in left) >= 4, left

    found = shop.written()
    lists = Counter(each["impression_id"] for _, each, _ in found[QUERIES])
    assert lists == shop.lists
    clicks = [entry for entry in found[CLICKS] if REFUSED_HEADER not in entry[2]]
    assert Counter(each["impression_id"] for _, each, _ in clicks) == shop.clicks
    assert all(each["position"] == 2 for _, each, _ in clicks)
    letters = [entry for entry in found[CLICKS] if REFUSED_HEADER in entry[2]]
    assert Counter(each["query_id"] for _, each, _ in letters) == shop.refused
    for _, _, headers in letters:
        assert headers[REFUSED_HEADER].startswith(b"ordinal: ")
        assert headers[ORIGIN_HEADER].startswith(shop.topics[1].encode())
    # A click goes where lists of its query are: the list itself says which that is.
    queries = {e["impression_id"]: e["query_id"] for _, e, _ in found[QUERIES]}
    assert all(e["query_id"] == queries[e["impression_id"]] for _, e, _ in clicks)
    for topic, entries in (((QUERIES, found[QUERIES])), (CLICKS, clicks)):
        latest: dict[int, int] = {}
        for partition, event, _ in entries:
            value = json.dumps(event, separators=(",", ":")).encode()
            assert partition == partition_of_input(None, value, 2)
            assert event["at_ms"] >= latest.get(partition, 0), topic
            latest[partition] = event["at_ms"]
