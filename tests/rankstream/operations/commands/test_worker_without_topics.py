"""A worker on a cluster whose topics are missing, or are not as they must be."""

from pathlib import Path

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from producers.brokers.topic_admin import TopicAdmin
from streams.topology import topics_of
from tests.services import KafkaService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    written_settings,
)

pytestmark = pytest.mark.broker


def ended(config: Path, log: Path) -> tuple[int, str]:
    """Status of a worker, and what it said."""
    with running(config, log, "--role", "fold") as worker:
        return worker.process.wait(PATIENCE_S), worker.said()


def test_a_worker_whose_topics_are_wrong_ends_with_the_command(
    kafka: KafkaService, namespace: str, tmp_path: Path
) -> None:
    """Missing, and then without compaction: neither is created or altered by it."""
    unused = "redis://127.0.0.1:1/0"
    config = configured(tmp_path, kafka.bootstrap, unused, namespace)
    settings, client = (
        settings_of(config),
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap),
    )
    admin = TopicAdmin(settings, topics_of(settings.kafka))
    name = f"{namespace}.fold-state"
    try:
        client.delete_topics([name])
        while not admin.problems():
            pass
        status, said = ended(config, tmp_path / "missing.log")
        assert (status, name in client.list_topics()) == (78, False)
        assert f"topic {name} must exist" in said
        assert "rankstream topics create --config" in said

        admin.create()
        kept = {"cleanup.policy": "delete"}
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, kept)])
        while not admin.problems():
            pass
        status, said = ended(config, tmp_path / "deleting.log")
        assert status == 78
        assert f"topic {name} must have cleanup.policy=compact; it has delete" in said
        assert "rankstream topics create --alter" in said
    finally:
        admin.close()
        client.close()


def test_a_worker_without_topics_says_so_in_one_line(
    kafka: KafkaService, namespace: str, tmp_path: Path
) -> None:
    """Of each process: one command makes them all."""
    other, unused = f"{namespace}-none", "redis://127.0.0.1:1/0"
    config = written_settings(tmp_path, kafka.bootstrap, unused, other)
    n_wanted = len(topics_of(settings_of(config).kafka))
    status, said = ended(config, tmp_path / "none.log")
    assert (status, said.count("event=refused")) == (78, 1)
    assert f"; {n_wanted - 1} more are missing" in said
    assert "rankstream topics create --config" in said
