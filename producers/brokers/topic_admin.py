"""The topics on the cluster: created where missing, checked against what must be."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import GroupIdNotFoundError, KafkaError, KafkaTimeoutError

from producers.brokers import topic_safety, topic_shape
from producers.brokers.broker_rights import lacking, refusals, undescribed, why_denied
from producers.brokers.cluster import KafkaAway, KafkaRefused, connected_admin
from producers.brokers.connection import topics_command
from producers.brokers.topic_shape import differences, wrong_shape
from rankstream.settings import Settings
from rankstream.wire.rights import Right
from rankstream.wire.topics import Topic, full_name

ASKED = (*topic_shape.CHECKED, *topic_safety.CHECKED)

TOPIC_ALREADY_EXISTS = 36

SPREAD_S = 5.0
"""How long a changed configuration may take to reach the brokers."""


PAUSES_S = (0.1, 0.2, 0.4, 0.8)
"""Between questions to a cluster of which no broker, or not the one asked, answers."""

Answer = TypeVar("Answer")


class Done(NamedTuple):
    """Names of what was created, and what was corrected of what was there."""

    created: list[str]
    corrected: dict[str, list[str]]


class Checked(NamedTuple):
    """What is not as it must be, what endangers records, and ids by topic."""

    problems: list[str]
    dangers: list[str]
    topic_ids: dict[str, str]


class TopicAdmin:
    """Creates and checks the topics of a namespace.

    Parameters
    ----------
    topics
        Those that must exist; `streams.topology` knows them.
    """

    def __init__(
        self,
        settings: Settings,
        topics: Sequence[Topic],
        *,
        timeout_ms: int = 10_000,
    ) -> None:
        self._settings = settings
        self._wanted = list(topics)
        self._client = connected_admin(settings, timeout_ms)

    def create(self, *, alter: bool = False) -> Done:
        """Create what is missing; returns what was created and corrected.

        With `alter`, topics that are there are given the configuration that they
        must have. New ones are given it where the cluster's defaults fall short.
        Numbers of partitions are never changed: they route.
        """
        there = self._described()
        n_replicas = self._settings.kafka.replication_factor
        missing = {
            self._full(topic.name): {
                "num_partitions": topic.partitions,
                "replication_factor": n_replicas,
                "configs": topic_safety.new_config(topic, self._settings),
            }
            for topic in self._wanted
            if self._full(topic.name) not in there
        }
        created = self._create(missing) if missing else []
        if not (created or alter):
            return Done([], {})
        now = self._described()
        corrected = now if alter else {n: now[n] for n in created if n in now}
        return Done(created, self._alter(corrected))

    def checked(self, rights: Sequence[Right] = ()) -> Checked:
        """All that `problems`, `dangers` and `topic_ids` say, for two questions.

        Parameters
        ----------
        rights
            What we must be allowed. Where something is not, nothing else is looked at.
        """
        denied = self._asked("ask for rights", lambda: lacking(self._client, rights))
        if denied:
            return Checked(refusals(denied, self._settings), [], {})
        there = self._described()
        configs = self._configs(there)
        return Checked(
            self._problems(there, configs),
            self._found_dangers(there, configs),
            self._ids(there),
        )

    def problems(self) -> list[str]:
        """What is not as it must be, a sentence each, with the command that helps."""
        there = self._described()
        return self._problems(there, self._configs(there))

    def _problems(
        self, there: Mapping[str, Any], configs: Mapping[str, dict[str, str]]
    ) -> list[str]:
        missing = [name for name in map(self._full, self._names()) if name not in there]
        unseen = self._asked(
            "describe topics", lambda: undescribed(self._client, missing)
        )
        problems = refusals(unseen, self._settings)
        hidden = {each.name for each in unseen}
        for topic in self._wanted:
            name = self._full(topic.name)
            if name in hidden:
                continue
            if name in there:
                problems += wrong_shape(topic, there[name], self._settings)
                problems += self._wrong_configuration(topic, there[name], configs[name])
            else:
                problems.append(
                    f"topic {name} must exist; it does not: run {self._command()}"
                )
        return problems

    def dangers(self) -> list[str]:
        """What endangers records or holds commits up, a sentence each.

        No count is wrong because of it, and some of it passes, as when a broker comes
        back. So a worker starts all the same.
        """
        there = self._described()
        return self._found_dangers(there, self._configs(there))

    def _found_dangers(
        self, there: Mapping[str, Any], configs: Mapping[str, dict[str, str]]
    ) -> list[str]:
        told = list(
            topic_safety.replicas_of_internal(
                there, self._settings.kafka.replication_factor
            )
        )
        for topic in self._wanted:
            name = self._full(topic.name)
            if name not in there:
                continue
            described, config = there[name], configs[name]
            least = int(config.get(topic_safety.IN_SYNC, "1"))
            told += topic_safety.replica_dangers(name, described["partitions"], least)
            told += [
                f"topic {name} must not have {each.key}={each.got}; {each.why}: run "
                f"{self._command('--alter')}, which makes it {each.wanted}"
                for each in self._dangers(topic, described, config)
            ]
        for name in topic_safety.INTERNAL:
            if name in there:
                told += topic_safety.replica_dangers(name, there[name]["partitions"], 1)
        return told

    def widen(self, wanted: Mapping[str, int]) -> list[str]:
        """Give topics more partitions, by name without namespace; says which it gave.

        Those that have as many already are left alone. Returns once the cluster tells
        of the new ones.
        """
        there = self.n_partitions()
        more = {
            self._full(name): count
            for name, count in wanted.items()
            if there.get(name, count) < count
        }
        if more:
            self._asked("add partitions", lambda: self._client.create_partitions(more))
            self._await_partitions(wanted)
        return sorted(more)

    def _await_partitions(self, wanted: Mapping[str, int]) -> None:
        deadline = time.monotonic() + SPREAD_S
        while time.monotonic() < deadline:
            there = self.n_partitions()
            if all(there.get(name, 0) >= count for name, count in wanted.items()):
                return
            time.sleep(0.05)

    def n_partitions(self) -> dict[str, int]:
        """Partitions of each topic that is there, by name without namespace."""
        there = self._described()
        return {
            name: len(there[self._full(name)]["partitions"])
            for name in self._names()
            if self._full(name) in there
        }

    def topic_ids(self) -> dict[str, str]:
        """The cluster's id of each topic, by name without namespace."""
        return self._ids(self._described())

    def _ids(self, there: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: str(there[self._full(name)].get("topic_id", ""))
            for name in self._names()
            if self._full(name) in there
        }

    def n_members(self, group: str) -> int:
        """Members of a consumer group; 0 where there is no such group."""
        try:
            described = self._asked(
                "describe a consumer group",
                lambda: self._client.describe_groups([group]),
            )
        except KafkaRefused as refused:
            if isinstance(refused.__cause__, GroupIdNotFoundError):
                return 0
            raise
        return len(described[group]["members"])

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _names(self) -> list[str]:
        return [topic.name for topic in self._wanted]

    def _full(self, name: str) -> str:
        return full_name(self._settings.namespace, name)

    def _command(self, *options: str) -> str:
        return f"`{topics_command(self._settings, 'create', *options)}`"

    def _described(self) -> dict[str, dict[str, Any]]:
        topics = self._asked("list topics", self._client.describe_topics)
        return {topic["name"]: topic for topic in topics if not topic["error_code"]}

    def _create(self, missing: dict[str, Any]) -> list[str]:
        with self._translated("create topics"):
            answer = self._client.create_topics(missing, raise_errors=False)
            for topic in answer["topics"]:
                # Somebody else may have created it since we looked.
                if topic["error_code"] not in (0, TOPIC_ALREADY_EXISTS):
                    raise KafkaRefused(
                        f"topic {topic['name']} must be created; the broker says: "
                        f"{topic.get('error_message') or topic['error_code']}"
                    )
            self._client.wait_for_topics(list(missing))
        return [each["name"] for each in answer["topics"] if not each["error_code"]]

    def _alter(self, there: Mapping[str, Any]) -> dict[str, list[str]]:
        configs = self._configs(there)
        resources, corrected = [], {}
        for topic in self._wanted:
            name = self._full(topic.name)
            if name not in there:
                continue
            wrong = self._corrections(topic, there[name], configs[name])
            if wrong:
                wanted = {key: wanted for key, (wanted, _) in wrong.items()}
                resources.append(ConfigResource(ConfigResourceType.TOPIC, name, wanted))
                corrected[name] = [
                    f"{key}={wanted} (was {was})"
                    for key, (wanted, was) in wrong.items()
                ]
        if resources:
            self._asked("alter topics", lambda: self._client.alter_configs(resources))
            self._await_configuration(there)
        return corrected

    def _await_configuration(self, there: Mapping[str, Any]) -> None:
        """Brokers learn of a change a moment after the answer to it."""
        deadline = time.monotonic() + SPREAD_S
        while time.monotonic() < deadline:
            configs = self._configs(there)
            if not any(
                self._corrections(
                    topic,
                    there[self._full(topic.name)],
                    configs[self._full(topic.name)],
                )
                for topic in self._wanted
                if self._full(topic.name) in configs
            ):
                return
            time.sleep(0.05)

    def _configs(self, there: Mapping[str, Any]) -> dict[str, dict[str, str]]:
        """The checked configuration of each topic of ours."""
        names = [name for name in map(self._full, self._names()) if name in there]
        if not names:
            return {}
        resources = [ConfigResource(ConfigResourceType.TOPIC, name) for name in names]
        described = self._asked(
            "describe topics",
            lambda: self._client.describe_configs(resources, config_filter="all"),
        )
        return {
            name: {key: str(entries[key]["value"]) for key in ASKED if key in entries}
            for name, entries in described["topic"].items()
        }

    def _wrong_configuration(
        self, topic: Topic, there: Mapping[str, Any], config: Mapping[str, str]
    ) -> list[str]:
        name = there["name"]
        problems = [
            f"topic {name} must have {key}={wanted}; it has {value}: run "
            f"{self._command('--alter')}"
            for key, (wanted, value) in differences(topic, config).items()
        ]
        n_replicas = topic_safety.fewest_replicas(there)
        closed = topic_safety.cannot_be_written(n_replicas, config)
        if closed is not None:
            problems.append(
                f"topic {name} must have {closed.key} of at most its {n_replicas} "
                f"replicas; it has {closed.got}, so {closed.why}: run "
                f"{self._command('--alter')}"
            )
        return problems

    def _dangers(
        self, topic: Topic, there: Mapping[str, Any], config: Mapping[str, str]
    ) -> list[topic_safety.Danger]:
        wanted = self._settings.kafka.replication_factor
        n_replicas = min(wanted, topic_safety.fewest_replicas(there))
        settings = self._settings
        kept_ms = topic_safety.kept_ms(topic, settings)
        open_ms = topic_safety.open_ms(topic, settings)
        return topic_safety.dangers(topic, n_replicas, config, kept_ms, open_ms)

    def _corrections(
        self, topic: Topic, there: Mapping[str, Any], config: Mapping[str, str]
    ) -> dict[str, tuple[str, str]]:
        """Wanted and present value of each setting that `--alter` changes."""
        found = differences(topic, config)
        closed = topic_safety.cannot_be_written(
            topic_safety.fewest_replicas(there), config
        )
        for each in (*self._dangers(topic, there, config), *filter(None, (closed,))):
            found[each.key] = (each.wanted, each.got)
        return found

    def _asked(self, what: str, ask: Callable[[], Answer]) -> Answer:
        """The cluster's answer.

        The client asks any broker that it knows of, so also one that has just gone:
        it gets a moment to ask another.
        """
        with self._translated(what):
            for pause_s in PAUSES_S:
                try:
                    return ask()
                except KafkaError as error:
                    if not error.retriable:
                        raise
                time.sleep(pause_s)
            return ask()

    @contextlib.contextmanager
    def _translated(self, what: str) -> Iterator[None]:
        """The client's errors as ours."""
        try:
            yield
        except KafkaError as error:
            if error.retriable or isinstance(error, KafkaTimeoutError):
                raise KafkaAway(
                    f"Kafka must answer at {self._settings.kafka.bootstrap}; {error}"
                ) from error
            why = why_denied(error, self._settings)
            raise KafkaRefused(
                f"Kafka must let us {what}; it says: {error}{why}"
            ) from error
