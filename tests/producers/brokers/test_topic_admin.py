"""Topics on a real broker: created once, checked, repaired."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from deploy.process import free_port
from producers.brokers.cluster import KafkaAway, KafkaRefused
from producers.brokers.topic_admin import TopicAdmin
from rankstream.operations.cli import main
from rankstream.settings import KafkaSettings, Settings
from streams.topology import topics_of
from tests.services import KafkaService
from tests.worker_process import PATIENCE_S

Admin = Callable[..., TopicAdmin]


@pytest.fixture
def admin(kafka: KafkaService, namespace: str) -> Iterator[Admin]:
    """Makes an admin of the test's namespace; keywords are settings of Kafka."""
    made: list[TopicAdmin] = []
    few = {"input_partitions": 2, "partitions": 3, "learner_partitions": 1}

    def admin_with(file: str = "", **changes: int) -> TopicAdmin:
        tree = {"bootstrap": kafka.bootstrap} | few | changes
        cluster = msgspec.convert(tree, KafkaSettings)
        settings = Settings(namespace=namespace, kafka=cluster, file=file)
        made.append(TopicAdmin(settings, topics_of(settings.kafka)))
        return made[-1]

    yield admin_with
    for each in made:
        each.close()


@pytest.fixture
def client(kafka: KafkaService) -> Iterator[KafkaAdminClient]:
    """Somebody else's hands on the cluster."""
    made = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    yield made
    made.close()


def problems_once_known(admin: TopicAdmin) -> list[str]:
    """The problems, as soon as the broker has heard of a change."""
    return once_known(admin.problems)


def once_known(told: Callable[[], list[str]]) -> list[str]:
    """What is told, as soon as anything is."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := told()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def test_created_once_and_then_as_they_must_be(admin: Admin, namespace: str) -> None:
    """The second call finds nothing to do."""
    wanted = topics_of(
        KafkaSettings(input_partitions=2, partitions=3, learner_partitions=1)
    )
    ours = admin()
    assert len(ours.problems()) == len(wanted)
    assert set(ours.create().created) == {
        f"{namespace}.{topic.name}" for topic in wanted
    }
    assert ours.create() == ([], {})
    assert ours.problems() == []
    assert set(ours.topic_ids()) == {topic.name for topic in wanted}
    assert len(set(ours.topic_ids().values())) == len(wanted)


def test_what_is_missing_names_the_command_that_creates_it(
    admin: Admin, client: KafkaAdminClient, namespace: str
) -> None:
    """With the file that the settings came from; and the command works."""
    ours = admin(file="my shop.toml")
    ours.create()
    client.delete_topics([f"{namespace}.events"])
    assert problems_once_known(ours) == [
        f"topic {namespace}.events must exist; it does not: run `rankstream topics "
        f"create --config 'my shop.toml' --namespace {namespace}`"
    ]
    assert ours.create() == ([f"{namespace}.events"], {})
    assert ours.problems() == []


def test_a_drifted_configuration_is_told_and_corrected(
    admin: Admin, client: KafkaAdminClient, namespace: str
) -> None:
    """Only with --alter, and only what differs."""
    ours = admin()
    ours.create()
    name = f"{namespace}.fold-state"
    wrong = {"cleanup.policy": "delete", "max.message.bytes": "1000000"}
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, wrong)])
    told = problems_once_known(ours)
    command = f"run `rankstream topics create --alter --namespace {namespace}`"
    assert [sentence.endswith(command) for sentence in told] == [True, True]
    assert "cleanup.policy=compact; it has delete" in told[0]
    assert "max.message.bytes=16777216; it has 1000000" in told[1]
    assert ours.create() == ([], {})
    assert len(ours.problems()) == 2
    corrected = ours.create(alter=True).corrected
    assert list(corrected) == [name]
    assert len(corrected[name]) == 2
    assert all(" (was " in change for change in corrected[name])
    assert ours.problems() == []


def test_a_log_that_is_kept_too_short_is_told_and_corrected(
    admin: Admin, client: KafkaAdminClient, namespace: str
) -> None:
    """As one of an older release, which has Kafka's week; a longer time may stay."""
    ours = admin()
    ours.create()
    name = f"{namespace}.events"

    def set_days(days: int) -> None:
        config = {"retention.ms": str(days * 86_400_000)}
        client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, config)])

    def kept_ms() -> str:
        topic = ConfigResource(ConfigResourceType.TOPIC, name)
        described = client.describe_configs([topic], config_filter="all")
        return str(described["topic"][name]["retention.ms"]["value"])

    assert kept_ms() == "15552000000"
    set_days(7)
    (sentence,) = once_known(ours.dangers)
    assert "events must not have retention.ms=604800000; records leave be" in sentence
    assert sentence.endswith("which makes it 15552000000")
    assert ours.problems() == []
    assert ours.create(alter=True).corrected == {
        name: ["retention.ms=15552000000 (was 604800000)"]
    }
    assert kept_ms() == "15552000000"
    assert admin(events_days=30).dangers() == []
    assert "which makes it -1" in admin(events_days=-1).dangers()[0]


def test_an_input_topic_that_takes_what_is_packed_is_told_and_corrected(
    admin: Admin, client: KafkaAdminClient, namespace: str
) -> None:
    """As one that was created by an older release: it has the broker's default."""
    ours = admin()
    ours.create()
    name = f"{namespace}.clicks"
    older = {"compression.type": "producer"}
    client.alter_configs([ConfigResource(ConfigResourceType.TOPIC, name, older)])
    (told,) = problems_once_known(ours)
    assert "compression.type=uncompressed; it has producer" in told
    assert "topics create --alter" in told
    corrected = ours.create(alter=True).corrected
    assert corrected == {name: ["compression.type=uncompressed (was producer)"]}
    assert ours.problems() == []


def test_other_partitions_and_too_few_replicas_are_told(admin: Admin) -> None:
    """They cannot be corrected in place: partitions route."""
    names = admin().create().created
    told = admin(partitions=5, replication_factor=2).problems()
    other = [each for each in told if "must have 5 partitions; it has 3" in each]
    assert [each.split()[1].rpartition(".")[2] for each in other] == [
        "events", "late", "candidates", "fold-state", "statistics", "preferences",
        "candidates-state",
    ]  # fmt: skip
    assert sum("must have 2 replicas; it has 1" in each for each in told) == len(names)
    assert all("--namespace" in sentence for sentence in told)


def test_the_broker_may_refuse(admin: Admin) -> None:
    """Two replicas on one broker: one sentence, with what the broker says."""
    with pytest.raises(KafkaRefused, match="queries must be created; the broker says"):
        admin(replication_factor=2).create()


def test_nobody_answers() -> None:
    """Said with the address, after the time that was given."""
    address = f"127.0.0.1:{free_port()}"
    settings = Settings(kafka=KafkaSettings(bootstrap=address))
    with pytest.raises(KafkaAway, match=f"Kafka must answer at {address}"):
        TopicAdmin(settings, topics_of(settings.kafka), timeout_ms=300)


def test_the_command_checks_and_creates(
    kafka: KafkaService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Exit status 1 while something is wrong."""
    file = tmp_path / "shop.toml"
    file.write_text(f'[kafka]\nbootstrap = "{kafka.bootstrap}"\npartitions = 1\n')
    words = ["--config", str(file), "--namespace", namespace]
    assert main(["topics", "check", *words]) == 1
    assert f"`rankstream topics create --config {file}" in capsys.readouterr().out
    assert main(["topics", "create", *words]) == 0
    said = capsys.readouterr().out
    assert f"created {namespace}.events\n" in said
    assert "corrected" not in said
    assert "all topics are as they must be" in said
    assert main(["topics", "check", *words]) == 0
    assert main(["topics", "check", "--alter", *words]) == 2
    assert "--alter goes with create" in capsys.readouterr().err
