"""Epochs that were used do not come back, on a real Redis and a real Kafka."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from kafka import KafkaProducer

from producers.brokers.topic_admin import TopicAdmin
from producers.event_producer import send_records
from rankstream.experiment_records import stored_records
from rankstream.experiments import Experiments
from rankstream.operations.cli import main
from rankstream.snapshots import store_of
from rankstream.wire.topics import EXPERIMENTS, PREFERENCES, full_name
from streams.comparisons.preference_fold import PreferencesFold
from streams.native.closed_impressions import closed_of
from streams.topology import topics_of
from tests.services import KafkaService, RedisService
from tests.streams.comparisons import compared_lists
from tests.worker_process import configured, settings_of, written_settings

FIRST = "published, for the first time"

BOOST = """
[experiments.boost]
epoch = {epoch}
method = "team-draft"
also = {{ sample-scored = {{}} }}
rankers = {{ a = "", b = "", c = "" }}
share = {share}
"""
OTHER = """
[experiments.other]
rankers = { a = "", b = "" }
"""


@pytest.fixture
def publish(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> Callable[..., tuple[int, str]]:
    """Publishes the tables; exit status and what was said."""

    def published(tables: str, action: str = "publish") -> tuple[int, str]:
        config = configured(
            tmp_path, kafka.bootstrap, redis_server.url, namespace, tables
        )
        capsys.readouterr()
        status = main(["experiments", action, "--config", str(config)])
        said = capsys.readouterr()
        return status, " ".join((said.out + said.err).split())

    return published


def boost(epoch: int, share: float = 1.0) -> str:
    """The table of the experiment."""
    return BOOST.format(epoch=epoch, share=share)


def test_what_was_removed_needs_a_later_epoch(
    publish: Callable[..., tuple[int, str]], tmp_path: Path
) -> None:
    """Whoever publishes, under the same settings too; clients see no trace of it."""
    assert publish(boost(2) + OTHER) == (0, f"boost: {FIRST} other: {FIRST}")
    status, said = publish(OTHER)
    store = store_of(settings_of(tmp_path / "rankstream.toml"))
    client = Experiments(store)

    assert status == 0
    assert "boost: removed; comes back with an epoch above 2 only" in said
    assert client.refresh()
    assert client.of("boost", unit="s", now_ms=0) is None
    assert client.of("other", unit="s", now_ms=0) is not None
    for tables in (boost(2), boost(1), boost(2, share=0.5)):
        status, said = publish(tables + OTHER)
        assert status == 2
        assert "experiments.boost must have an epoch above 2" in said
        assert stored_records(store).records["boost"].settings is None
    _, said = publish(boost(2) + OTHER, "list")
    assert "raise the epoch" in said
    assert publish(boost(3) + OTHER) == (0, f"boost: {FIRST} other: unchanged")
    assert publish(OTHER)[0] == 0
    assert publish(boost(3) + OTHER)[0] == 2
    assert publish(boost(4) + OTHER)[0] == 0
    store.close()


def test_an_emptied_redis_forgets_nothing(
    publish: Callable[..., tuple[int, str]],
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
) -> None:
    """The topic has what runs and what was removed; the command brings both back."""

    def emptied() -> None:
        with redis.Redis.from_url(redis_server.url) as client:
            for key in client.scan_iter(f"{namespace}:*"):
                client.delete(key)

    assert publish(boost(1) + OTHER)[0] == 0
    assert publish(boost(2))[0] == 0
    store = store_of(settings_of(tmp_path / "rankstream.toml"))
    before = stored_records(store)
    emptied()
    assert stored_records(store).records == {}
    status, said = publish(boost(2, share=0.5))
    assert status == 2
    assert "must have an epoch above 2, as it differs from what runs" in said
    assert stored_records(store).records == {}
    assert publish(boost(2)) == (0, "boost: unchanged")
    assert stored_records(store) == before
    emptied()
    status, said = publish(boost(2) + OTHER)
    assert status == 2
    assert "other must have an epoch above 1, as that one was removed" in said
    settings = settings_of(tmp_path / "rankstream.toml")
    send_records(settings, EXPERIMENTS, [(b"\xfe", b"nonsense")])
    status, said = publish(boost(3))
    assert status == 2
    assert r"experiment b'\xfe' in the topic must be readable; " in said
    assert stored_records(store).records == {}
    store.close()


def test_what_the_log_counted_is_not_published_otherwise(
    publish: Callable[..., tuple[int, str]], kafka: KafkaService, namespace: str
) -> None:
    """Though no record knows it, as in a namespace of an older release."""
    assert publish(OTHER) == (0, f"other: {FIRST}")
    fold = PreferencesFold(compared_lists.EXPERIMENTS, 0)
    fold.take(closed_of(compared_lists.some_interactions(5)))
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    for key, value in compared_lists.state_of(fold).items():
        producer.send(full_name(namespace, PREFERENCES), value, key, partition=0)
    producer.flush()
    producer.close()

    status, said = publish(boost(1, share=0.5) + OTHER)
    assert status == 2
    assert "must have an epoch above 1, as lists of that one were counted" in said
    assert publish(boost(1) + OTHER) == (0, f"boost: {FIRST} other: unchanged")


def test_a_cluster_without_the_topic_is_told_so(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """By `topics check`, and by the command; no client follows what would be lost."""
    config = written_settings(
        tmp_path, kafka.bootstrap, redis_server.url, namespace, boost(1)
    )
    settings = settings_of(config)
    older = [each for each in topics_of(settings.kafka) if each.name != EXPERIMENTS]
    admin = TopicAdmin(settings, older)
    admin.create()
    admin.close()
    missing = f"topic {full_name(namespace, EXPERIMENTS)} must exist; it does not: run"
    capsys.readouterr()
    assert main(["topics", "check", "--config", str(config)]) == 1
    assert missing in " ".join(capsys.readouterr().out.split())
    assert main(["experiments", "publish", "--config", str(config)]) == 2
    assert missing in capsys.readouterr().err
    store = store_of(settings)
    assert stored_records(store).records == {}
    store.close()


def test_publishing_without_kafka_is_refused(
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """What only Redis had would be lost with it."""
    config = written_settings(
        tmp_path, "127.0.0.1:1", redis_server.url, namespace, boost(1)
    )
    assert main(["experiments", "publish", "--config", str(config)]) == 2
    said = capsys.readouterr().err
    assert (
        "Kafka must answer at 127.0.0.1:1, as its topic keeps the experiments" in said
    )
    assert "nothing was published" in said
    store = store_of(settings_of(config))
    assert stored_records(store).records == {}
    store.close()
