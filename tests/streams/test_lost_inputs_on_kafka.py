"""What an operator sees and does where inputs are gone, or settings were changed."""

import json
import re
import shlex
import time
from pathlib import Path

import pytest
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from producers.topic_reader import TopicReader, read_records
from rankstream.operations.answers.installation.health import accepted_losses
from rankstream.settings import Settings
from rankstream.wire.topics import QUERIES, full_name
from streams.kafka.state.lost_records import AcceptedLoss
from streams.kafka.state.resume_position import POSITION_KEY, Loss, decode_position
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

INGEST = ("--role", "ingest")


def send(settings: Settings, n_lists: int) -> None:
    """Send lists to partition 0 of `queries`, a record each."""
    producer = KafkaProducer(bootstrap_servers=settings.kafka.bootstrap)
    for number in range(n_lists):
        event = {
            "impression_id": f"i{number}",
            "query_id": "q",
            "at_ms": int(time.time() * 1_000),
            "shown": ["a", "b"],
        }
        name = full_name(settings.namespace, QUERIES)
        producer.send(name, json.dumps(event).encode(), partition=0)
    producer.close()


def folded(settings: Settings) -> int:
    """Offset of the last record of the partition that is covered by a commit."""
    offset = -1
    for record in read_records(settings, "ingest-queries-state"):
        if (record.partition, record.key) == (0, POSITION_KEY):
            offset = decode_position(record.value or b"").offset
    return offset


@pytest.mark.broker
def test_a_loss_is_refused_then_accepted_and_a_changed_setting_is_refused(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """The refusal's own command goes on; `monitor` and `recount` read what was lost."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace)
    settings, log = settings_of(config), tmp_path / "worker.log"
    send(settings, 5)
    with running(config, log, *INGEST) as worker:
        waited_until(lambda: folded(settings) == 4, log)
        assert worker.stop()[0] == 0
    send(settings, 5)
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.delete_records({TopicPartition(full_name(namespace, QUERIES), 0): 8})
    admin.close()
    with running(config, log, *INGEST) as worker:
        assert worker.process.wait(PATIENCE_S) == 78
        told = re.search(r"To go on without them, run `(.*)`", worker.said())
        assert told is not None, worker.said()
    words = shlex.split(told[1])
    assert words[:4] == ["rankstream", "worker", "--config", str(config)]
    assert words[-2:] == ["--accept-loss", "queries:0:5-7"]

    with running(config, log, *words[4:], *INGEST) as worker:
        waited_until(lambda: folded(settings) == 9, log)
        assert worker.stop()[0] == 0
        assert "event=loss-accepted" in worker.said()
    with TopicReader(settings) as reader:
        assert accepted_losses(reader) == [AcceptedLoss("queries", 0, Loss(5, 7))]

    with config.open("a", encoding="utf-8") as file:
        file.write("[time]\nclick_window_ms = 600_000\n")
    with running(config, log, *INGEST) as worker:
        assert worker.process.wait(PATIENCE_S) == 78
        changed = "time.click_window_ms was 300000, is 600000: set it back"
        assert changed in worker.said()
