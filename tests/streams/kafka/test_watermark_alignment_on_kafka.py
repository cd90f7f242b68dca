"""A source that races through event time waits, and nothing of it is lost."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from producers.topic_reader import read_records
from rankstream.lab.benchmarks.pipeline.logs import preload
from rankstream.wire.events import decode_interaction_record
from rankstream.wire.topics import CLICKS, INTERACTIONS, QUERIES, full_name
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running, settings_of, waited_until

N_EVENTS = 8_000
START_MS = 1_700_000_000_000
MORE = """
[time]
click_window_ms = 20_000
disorder_ms = 2_000
lead_ms = 60_000
"""


def queries(topic: str) -> Iterator[tuple[str, int, bytes]]:
    """One partition second by second, the other in a thousandth of that."""
    for number in range(N_EVENTS):
        for partition, step_ms in ((0, 1_000), (1, 1)):
            event = {
                "impression_id": f"i{partition}-{number}",
                "query_id": f"q{number % 50}",
                "at_ms": START_MS + step_ms * number,
                "shown": ["a", "b"],
                "attributes": {"note": "x" * 2_000},
            }
            yield topic, partition, json.dumps(event).encode()


@pytest.mark.broker
def test_a_source_far_ahead_is_not_read_until_the_others_come(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """It is held back while the other is behind; every event comes out."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, MORE)
    settings = settings_of(config)
    topic = full_name(namespace, QUERIES)
    ends = [
        (full_name(namespace, name), partition)
        for name in (QUERIES, CLICKS)
        for partition in range(settings.kafka.input_partitions)
    ]
    preload(kafka.bootstrap, queries(topic), ended=ends)
    log = tmp_path / "worker.log"

    def n_out() -> int:
        return sum(
            len(decode_interaction_record(record.value or b"").interactions)
            for record in read_records(settings, INTERACTIONS)
        )

    with running(config, log) as worker:
        waited_until(lambda: n_out() == 2 * N_EVENTS, log)
        said = worker.said()
        worker.stop()

    assert f"event=held-back partitions={topic}[0]" in said
