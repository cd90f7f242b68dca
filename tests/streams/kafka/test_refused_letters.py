"""A dead letter cannot be written: what came with it waits, and is not lost."""

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.operations.recount.log import recount_topics
from rankstream.settings import Settings
from rankstream.wire.topics import QUERIES, dead_letters, full_name
from streams.kafka.processes.child_end import CONFIGURATION_EXIT
from tests.live_lists import LiveLists, applied, joined, outcomes, soon
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

pytestmark = pytest.mark.broker

ROLES = ("--role", "ingest", "--role", "fold")
LARGEST = "100"
"""Bytes: no dead letter fits, as each has its reasons in headers."""


def take_no_letters(settings: Settings) -> None:
    """Have the broker refuse them."""
    name = full_name(settings.namespace, dead_letters(QUERIES))
    small = {"max.message.bytes": LARGEST}
    client = KafkaAdminClient(bootstrap_servers=settings.kafka.bootstrap)
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, small)])
    client.close()


def test_nothing_is_committed_without_its_dead_letters(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """The worker ends with what helps; then letter and lists are there, once."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, soon())
    settings, log = settings_of(config), tmp_path / "worker.log"
    with LiveLists(settings) as lists:
        with running(config, log, *ROLES) as worker:
            waited_until(lambda: joined(settings) > 200, log)
            take_no_letters(settings)
            with EventProducer(settings) as producer:
                producer.send(QUERIES, b"no event")
            # Started again, it finds a topic that is not as it must be.
            assert worker.process.wait(PATIENCE_S) == CONFIGURATION_EXIT
            said = worker.said()
        assert "error=MessageSizeTooLargeError" in said
        assert f"must have max.message.bytes=16777216; it has {LARGEST}" in said
        assert not list(read_records(settings, dead_letters(QUERIES)))
        assert main(["topics", "create", "--alter", "--config", str(config)]) == 0
        with running(config, log, *ROLES) as worker:
            lists.finish()
            everything = 2 * lists.n_lists
            waited_until(lambda: applied(settings) >= everything, log)
            assert worker.stop()[0] == 0
    (letter,) = read_records(settings, dead_letters(QUERIES))
    assert letter.value == b"no event"
    counts = outcomes(settings)
    assert counts["applied_impressions"] == counts["applied_clicks"] == lists.n_lists
    assert sum(counts[each] for each in ("late", "orphan", "duplicate", "pending")) == 0
    verdict = recount_topics(settings)
    assert verdict.is_clean, verdict.as_dict()
