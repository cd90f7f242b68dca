"""Topics of their own for tests on a real broker."""

import pytest

from producers.brokers.topic_admin import TopicAdmin
from rankstream.settings import KafkaSettings, Settings
from streams.topology import topics_of


@pytest.fixture
def settings(kafka, namespace):
    """Settings of a namespace whose topics exist, with two partitions each."""
    cluster = KafkaSettings(
        bootstrap=kafka.bootstrap,
        input_partitions=2,
        partitions=2,
        learner_partitions=1,
    )
    chosen = Settings(namespace=namespace, kafka=cluster)
    admin = TopicAdmin(chosen, topics_of(chosen.kafka))
    admin.create()
    admin.close()
    return chosen
