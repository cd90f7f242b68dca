"""What endangers records: by what a broker says, and on a cluster that loses one."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from deploy.broker import Broker
from producers.brokers.topic_admin import TopicAdmin
from producers.brokers.topic_safety import (
    BY_BROKER,
    DAY_MS,
    IN_SYNC,
    LEAST_RETENTION_MS,
    RETENTION,
    RETENTION_BYTES,
    TIMES,
    UNCLEAN,
    UNCOMPACTED,
    cannot_be_written,
    dangers,
    kept_ms,
    new_config,
    open_ms,
    replica_dangers,
    replicas_of_internal,
    safe_config,
)
from rankstream.operations.cli import main
from rankstream.settings import KafkaSettings, Settings, TimeSettings
from rankstream.wire.topics import Topic
from streams.topology import STAGES, topics_of
from tests.services import ServiceMissing, our_cluster, without
from tests.worker_process import PATIENCE_S

SAFE = {
    IN_SYNC: "2",
    UNCLEAN: "false",
    RETENTION: "604800000",
    RETENTION_BYTES: "-1",
    TIMES: BY_BROKER,
}
LOG = Topic("events", 4, {}, is_source=True)
OTHER = Topic("late", 4, {})


def partition(
    number: int, replicas: str, in_sync: str, *, leader: int = 0, away: str = ""
) -> dict[str, Any]:
    """A partition as a broker describes it; brokers are digits."""
    return {
        "partition_index": number,
        "leader_id": leader or int(in_sync[0]),
        "replica_nodes": [*map(int, replicas)],
        "isr_nodes": [*map(int, in_sync)],
        "offline_replicas": [*map(int, away)],
    }


@pytest.mark.parametrize(
    ("n_replicas", "there", "told"),
    [
        (3, {}, []),
        (3, {IN_SYNC: "1"}, [(IN_SYNC, "2")]),
        (3, {IN_SYNC: "3"}, []),
        (5, {}, [(IN_SYNC, "3")]),
        (2, {IN_SYNC: "1"}, []),
        (1, {IN_SYNC: "1"}, []),
        (3, {UNCLEAN: "true"}, [(UNCLEAN, "false")]),
        (3, {RETENTION: "-1"}, []),
        (3, {RETENTION: str(LEAST_RETENTION_MS)}, []),
        (
            3,
            {RETENTION: str(LEAST_RETENTION_MS - 1)},
            [(RETENTION, str(LEAST_RETENTION_MS))],
        ),
        (3, {RETENTION_BYTES: "1000000000000"}, [(RETENTION_BYTES, "-1")]),
        (3, {TIMES: "CreateTime"}, [(TIMES, BY_BROKER)]),
    ],
)
def test_settings_that_endanger_records_are_found(
    n_replicas: int, there: dict[str, str], told: list[tuple[str, str]]
) -> None:
    """Each with the value that it should have."""
    found = dangers(LOG, n_replicas, SAFE | there)
    assert [(each.key, each.wanted) for each in found] == told


@pytest.mark.parametrize(
    ("days", "keep_days", "kept"),
    [
        (0, 90, 180 * DAY_MS),
        (0, 1, LEAST_RETENTION_MS),
        (30, 90, 30 * DAY_MS),
        (-1, 90, -1),
    ],
)
def test_logs_are_kept_as_long_as_statistics_speak_of_them(
    days: int, keep_days: int, kept: int
) -> None:
    """Unless the settings say otherwise; new topics are made so."""
    settings = Settings(
        kafka=KafkaSettings(events_days=days, interactions_days=5),
        time=TimeSettings(keep_ms=keep_days * DAY_MS),
    )
    topics = {topic.name: topic for topic in topics_of(settings.kafka)}
    assert kept_ms(topics["events"], settings) == kept
    assert kept_ms(topics["interactions"], settings) == 5 * DAY_MS
    assert new_config(topics["events"], settings)[RETENTION] == str(kept)
    for name in set(topics) - {"events", "interactions"}:
        assert kept_ms(topics[name], settings) is None
    assert new_config(topics["late"], settings)[RETENTION] == str(14 * DAY_MS)
    assert RETENTION not in new_config(topics["queries"], settings)


def test_the_log_must_outlast_the_windows_that_are_open() -> None:
    """Also where it is too short for other reasons: then nothing starts."""
    settings = Settings(time=TimeSettings(click_window_ms=DAY_MS // 2))
    there, needed_ms = SAFE | {RETENTION: "3600000"}, open_ms(LOG, settings)
    assert needed_ms == DAY_MS // 2 + settings.time.disorder_ms
    (danger,) = dangers(LOG, 3, there, 3 * DAY_MS, needed_ms)
    assert (danger.key, danger.wanted) == (RETENTION, str(3 * DAY_MS))
    assert danger.why.startswith("lists leave while their click window is open")
    (danger,) = dangers(LOG, 3, there, 3 * DAY_MS)
    assert danger.why.startswith("records leave before a worker that was away")
    assert dangers(LOG, 3, SAFE | {RETENTION: "-1"}, -1, needed_ms) == []


def test_longer_windows_need_no_log() -> None:
    """The state itself has their lists; nor does another topic have any."""
    longest = Settings(time=TimeSettings(click_window_ms=DAY_MS - 30_000))
    longer = Settings(time=TimeSettings(click_window_ms=DAY_MS - 29_999))
    assert (open_ms(LOG, longest), open_ms(LOG, longer)) == (DAY_MS, 0)
    assert open_ms(OTHER, longest) == 0


@pytest.mark.parametrize(
    ("there_ms", "wanted_ms", "told"),
    [
        (7 * DAY_MS, 180 * DAY_MS, 180 * DAY_MS),
        (180 * DAY_MS, 180 * DAY_MS, None),
        (200 * DAY_MS, 180 * DAY_MS, None),
        (-1, 180 * DAY_MS, None),
        (200 * DAY_MS, -1, -1),
        (-1, -1, None),
        (1, 180 * DAY_MS, 180 * DAY_MS),
        (1, -1, -1),
    ],
)
def test_records_that_leave_too_soon_are_told_with_what_was_asked_for(
    there_ms: int, wanted_ms: int, told: int | None
) -> None:
    """More than was asked for is nobody's danger."""
    found = dangers(LOG, 3, SAFE | {RETENTION: str(there_ms)}, wanted_ms)
    assert [each.wanted for each in found] == ([] if told is None else [str(told)])


def test_only_what_stages_read_must_be_kept() -> None:
    """Dead letters and late clicks are for people; states are compacted."""
    short = SAFE | {RETENTION: "1000", RETENTION_BYTES: "1000"}
    assert dangers(OTHER, 3, short) == []
    assert len(dangers(LOG, 3, short)) == 2
    sources = {topic.name for topic in topics_of(KafkaSettings()) if topic.is_source}
    assert sources == {kind.source for kind in STAGES}
    assert sources == {"queries", "clicks", "events", "interactions"}


def test_brokers_give_the_time_of_every_record_of_new_topics() -> None:
    """Without it input topics are refused; others are only said to be at risk."""
    older = SAFE | {TIMES: "CreateTime"}
    for topic in topics_of(KafkaSettings()):
        assert (safe_config(1) | topic.config)[TIMES] == BY_BROKER
        expected = [] if topic.name in ("queries", "clicks") else [TIMES]
        assert [each.key for each in dangers(topic, 1, older)] == expected


def test_what_a_start_would_read_for_nothing_is_told() -> None:
    """Of states that every commit writes to; nobody minds less than was asked for."""
    files, markers = UNCOMPACTED
    older = SAFE | {files: "60000", markers: "86400000"}
    oldest = SAFE | {files: "60001", markers: "86400001"}
    least = SAFE | dict.fromkeys(UNCOMPACTED, "1000")
    for topic in topics_of(KafkaSettings()):
        is_first = any(topic.name == kind.state_topics[0] for kind in STAGES)
        found = [each.key for each in dangers(topic, 1, older)]
        assert found == ([markers] if is_first else [])
        is_compacted = topic.config["cleanup.policy"] == "compact"
        found = [each.key for each in dangers(topic, 1, oldest)]
        assert found == (list(UNCOMPACTED) if is_compacted else [])
        assert dangers(topic, 1, least) == []
        assert dangers(topic, 1, new_config(topic, Settings())) == []


def test_more_in_sync_than_there_are_replicas_takes_no_record() -> None:
    """What is wanted then is what so few replicas can give."""
    assert cannot_be_written(3, {IN_SYNC: "3"}) is None
    found = cannot_be_written(1, {IN_SYNC: "2"})
    assert found is not None
    assert (found.wanted, found.got) == ("1", "2")


def test_replicas_that_are_missing_are_told_in_words() -> None:
    """By how bad it is: nobody leads, nobody can write, the next one stops it."""
    partitions = [
        partition(0, "123", "123"),
        partition(1, "123", "12", away="3"),
        partition(2, "123", "13"),
        partition(3, "123", "1", away="3"),
        partition(4, "12", "2", leader=-1, away="12"),
        partition(5, "123", "21", away="3"),
    ]
    told = replica_dangers("shop.events", partitions, 2)
    assert told == [
        "topic shop.events must have a leader for each partition; partition 4 has "
        "none: start brokers 1 and 2; until then nobody reads or writes there",
        "topic shop.events must have 2 replicas in sync to be written; partition 3 has "
        "fewer: start broker 3; until then no commit that writes there succeeds",
        "topic shop.events must have all its replicas in sync; partitions 1, 2 and 5 "
        "lack broker 3, away and broker 2, behind: start broker 3; one broker less may "
        "stop all writing",
    ]
    assert replica_dangers("shop.events", partitions[:1], 2) == []
    assert replica_dangers("one", [partition(0, "1", "1")], 2) == []
    (late,) = replica_dangers("shop.events", [partition(0, "12", "1")], 1)
    assert "partition 0 lacks broker 2, behind: see why broker 2 cannot keep up" in late
    (nobody,) = replica_dangers("new", [partition(0, "1", "1", leader=-1)], 1)
    assert "partition 0 has none: wait for one" in nobody


def test_commits_need_the_topics_of_the_cluster_itself() -> None:
    """They were made when there was one broker, and stay so."""
    one = {"partitions": [partition(0, "1", "1"), partition(1, "123", "123")]}
    (told,) = replicas_of_internal({"__transaction_state": one}, 3)
    assert "__transaction_state must have 3 replicas, as ours have; it has 1" in told
    assert list(replicas_of_internal({"__transaction_state": one}, 1)) == []


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[Broker]]:
    """Three of them, of one cluster."""
    try:
        with our_cluster(3) as nodes:
            yield nodes
    except ServiceMissing as reason:
        without(reason, os.environ)


def until(holds: Callable[[], bool]) -> None:
    """Wait for what the cluster comes to know by itself."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.broker
def test_a_cluster_that_loses_a_broker(
    brokers: list[Broker], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Topics survive one broker; `check` says which is away, and for what it is bad.

    What somebody set to less is told, and corrected with --alter.
    """
    bootstrap = ",".join(broker.bootstrap for broker in brokers)
    file = tmp_path / "shop.toml"
    file.write_text(
        f'namespace = "shop"\n[kafka]\nbootstrap = "{bootstrap}"\n'
        "input_partitions = 3\npartitions = 3\nlearner_partitions = 1\n"
        "replication_factor = 3\n"
    )
    words = ["--config", str(file)]
    assert main(["topics", "create", *words]) == 0
    # Each broker hears of them in its own time.
    until(lambda: main(["topics", "check", *words]) == 0)
    assert "all topics are as they must be" in capsys.readouterr().out

    admin = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    events = ConfigResource(ConfigResourceType.TOPIC, "shop.events")
    described = admin.describe_configs([events], config_filter="all")
    config = described["topic"]["shop.events"]
    assert config[IN_SYNC]["value"] == "2"
    assert config[UNCLEAN]["value"] == "false"

    loose = {IN_SYNC: "1", UNCLEAN: "true", RETENTION: "60000", RETENTION_BYTES: "9"}
    admin.alter_configs(
        [ConfigResource(ConfigResourceType.TOPIC, "shop.events", loose)]
    )
    closed = {IN_SYNC: "4"}
    admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, "shop.late", closed)])
    admin.close()
    settings = Settings(
        namespace="shop",
        file=str(file),
        kafka=KafkaSettings(
            bootstrap=bootstrap,
            input_partitions=3,
            partitions=3,
            learner_partitions=1,
            replication_factor=3,
        ),
    )
    ours = TopicAdmin(settings, topics_of(settings.kafka))
    until(lambda: len(ours.dangers()) == 4 and len(ours.problems()) == 1)
    endangered = ours.dangers()
    for key, value in loose.items():
        named = f"topic shop.events must not have {key}={value};"
        assert any(named in each for each in endangered)
    assert all(f"topics create --alter --config {file}" in x for x in endangered)
    (wrong,) = ours.problems()
    assert "shop.late must have min.insync.replicas of at most its 3" in wrong
    assert main(["topics", "create", "--alter", *words]) == 0
    until(lambda: (ours.problems(), ours.dangers()) == ([], []))
    capsys.readouterr()

    brokers[2].kill()
    n_topics = len(topics_of(settings.kafka))

    def told() -> str:
        capsys.readouterr()
        main(["topics", "check", *words])
        return capsys.readouterr().out

    until(lambda: told().count("at risk topic shop.") == n_topics)
    assert main(["topics", "check", *words]) == 1
    said = capsys.readouterr().out
    assert (
        "at risk topic shop.events must have all its replicas in sync; partitions 0, "
        "1 and 2 lack broker 3, away: start broker 3; one broker less may stop"
    ) in said
    # A worker that starts now is not refused: the broker comes back. Whichever broker
    # is asked first, the dead one too.
    for _ in range(6):
        another = TopicAdmin(settings, topics_of(settings.kafka))
        assert another.problems() == []
        another.close()

    brokers[2].start()
    until(lambda: main(["topics", "check", *words]) == 0)
    ours.close()
