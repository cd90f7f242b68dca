"""What a topic must be so that counting is right: partitions, replicas, configuration.

Pure: from what the broker says of a topic to sentences.
"""

from collections.abc import Mapping
from typing import Any

from producers.brokers import topic_safety
from producers.brokers.connection import topics_command
from rankstream.settings import Settings
from rankstream.wire.topics import Topic

CHECKED = (
    "cleanup.policy",
    "message.timestamp.type",
    "max.message.bytes",
    "compression.type",
)
"""Configuration without which counting would be wrong or a commit could fail."""

DEFAULTS = {"cleanup.policy": "delete"}


def wrong_shape(
    topic: Topic, there: Mapping[str, Any], settings: Settings
) -> list[str]:
    """What is wrong with a topic's partitions and replicas, a sentence each."""
    name = there["name"]
    problems = []
    beside = f"{settings.namespace or 'rankstream'}-2"
    another = f"`{topics_command(settings, 'create', namespace=beside)}`"
    n_partitions = len(there["partitions"])
    if n_partitions != topic.partitions:
        problems.append(
            f"topic {name} must have {topic.partitions} partitions; it has "
            f"{n_partitions}: correct the number in the settings' section kafka, give "
            "the log more of them with `rankstream topics split` (docs/partitions.md), "
            f"or start anew in another namespace with {another}"
        )
    wanted = settings.kafka.replication_factor
    fewest = topic_safety.fewest_replicas(there)
    if fewest < wanted:
        problems.append(
            f"topic {name} must have {wanted} replicas; it has {fewest}: add them "
            "with kafka-reassign-partitions.sh, correct kafka.replication_factor, "
            f"or start anew in another namespace with {another}"
        )
    return problems


def differences(topic: Topic, there: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Wanted and present value of each setting that is not as it must be."""
    wanted = DEFAULTS | topic.config
    return {
        key: (wanted[key], there[key])
        for key in CHECKED
        if key in wanted and key in there and there[key] != wanted[key]
    }
