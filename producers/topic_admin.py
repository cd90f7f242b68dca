"""The topics on the cluster: created where missing, checked against what must be."""

from collections.abc import Mapping
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

from producers.connection import client_options
from rankstream.settings import Settings
from rankstream.topics import Topic, all_topics, full_name

CHECKED = ("cleanup.policy", "message.timestamp.type", "max.message.bytes")
"""Configuration without which counting would be wrong or a checkpoint could fail."""

DEFAULTS = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}


class KafkaAway(RuntimeError):
    """No broker answers.

    Operator action: start the broker, or correct kafka.bootstrap.
    """


class TopicAdmin:
    """Creates and checks the topics of a namespace."""

    def __init__(self, settings: Settings, *, timeout_ms: int = 10_000) -> None:
        self._settings = settings
        try:
            self._client = KafkaAdminClient(
                **client_options(settings.kafka), bootstrap_timeout_ms=timeout_ms
            )
        except (KafkaError, OSError) as error:
            raise KafkaAway(
                f"Kafka must answer at {settings.kafka.bootstrap}; "
                f"{type(error).__name__}"
            ) from error

    def create(self) -> list[str]:
        """Create what is missing; returns the names that were created."""
        there = self._described()
        missing = {
            self._full(topic.name): {
                "num_partitions": topic.partitions,
                "replication_factor": self._settings.kafka.replication_factor,
                "configs": topic.config,
            }
            for topic in self._wanted()
            if self._full(topic.name) not in there
        }
        if missing:
            self._client.create_topics(missing, wait_for_metadata=True)
        return list(missing)

    def problems(self) -> list[str]:
        """What is not as it must be, a sentence each, with the command that helps."""
        there = self._described()
        found = [name for name in map(self._full, self._names()) if name in there]
        configs = self._configs(found)
        problems = []
        for topic in self._wanted():
            name = self._full(topic.name)
            if name in there:
                problems += self._differences(topic, name, there[name], configs)
            else:
                problems.append(
                    f"topic {name} must exist; it does not: run "
                    f"`rankstream topics create{self._option()}`"
                )
        return problems

    def topic_ids(self) -> dict[str, str]:
        """The cluster's id of each topic, by name without namespace."""
        there = self._described()
        return {
            name: str(there[self._full(name)].get("topic_id", ""))
            for name in self._names()
            if self._full(name) in there
        }

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _wanted(self) -> list[Topic]:
        kafka = self._settings.kafka
        return all_topics(
            front_door_partitions=kafka.front_door_partitions,
            partitions=kafka.partitions,
            learner_partitions=kafka.learner_partitions,
        )

    def _names(self) -> list[str]:
        return [topic.name for topic in self._wanted()]

    def _full(self, name: str) -> str:
        return full_name(self._settings.namespace, name)

    def _option(self) -> str:
        namespace = self._settings.namespace
        return f" --namespace {namespace}" if namespace else ""

    def _described(self) -> dict[str, dict[str, Any]]:
        topics = self._client.describe_topics()
        return {topic["name"]: topic for topic in topics if not topic["error_code"]}

    def _configs(self, names: list[str]) -> dict[str, Mapping[str, Any]]:
        if not names:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        described = self._client.describe_configs(resources, config_filter="all")
        by_name: dict[str, Mapping[str, Any]] = next(iter(described.values()))
        return by_name

    def _differences(
        self,
        topic: Topic,
        name: str,
        there: dict[str, Any],
        configs: dict[str, Mapping[str, Any]],
    ) -> list[str]:
        problems = []
        n_partitions = len(there["partitions"])
        if n_partitions != topic.partitions:
            problems.append(
                f"topic {name} must have {topic.partitions} partitions; it has "
                f"{n_partitions}: set the number in [kafka], or use a new --namespace"
            )
        for key in CHECKED:
            wanted = topic.config.get(key, DEFAULTS.get(key))
            value = _value(configs.get(name, {}).get(key))
            if wanted is not None and value is not None and value != wanted:
                problems.append(
                    f"topic {name} must have {key}={wanted}; it has {value}: run "
                    f"`kafka-configs.sh --bootstrap-server "
                    f"{self._settings.kafka.bootstrap} --alter --topic {name} "
                    f"--add-config {key}={wanted}`"
                )
        return problems


def _value(entry: Any) -> str | None:
    if entry is None:
        return None
    return str(entry.get("value")) if isinstance(entry, dict) else str(entry)
