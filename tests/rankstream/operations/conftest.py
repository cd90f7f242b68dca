"""A namespace that commands find by themselves, on a real Kafka and a real Redis."""

import pytest

from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import Settings, load_settings
from streams.topology import topics_of
from tests.services import KafkaService, RedisService


@pytest.fixture
def named_settings(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> Settings:
    """Of the test's own namespace, also for commands."""
    monkeypatch.setenv("RANKSTREAM_NAMESPACE", namespace)
    monkeypatch.setenv("RANKSTREAM_KAFKA__BOOTSTRAP", f"'{kafka.bootstrap}'")
    monkeypatch.setenv("RANKSTREAM_REDIS__URL", f"'{redis_server.url}'")
    return load_settings()


@pytest.fixture
def settings(named_settings: Settings) -> Settings:
    """Of a namespace that has its topics."""
    admin = TopicAdmin(named_settings, topics_of(named_settings.kafka))
    admin.create()
    admin.close()
    return named_settings
