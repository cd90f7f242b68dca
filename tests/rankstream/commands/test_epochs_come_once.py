"""Epochs that were used do not come back, on a real Redis and a real Kafka."""

from collections.abc import Callable
from pathlib import Path

import pytest
import redis
from kafka import KafkaProducer

from rankstream.cli import main
from rankstream.experiments import Experiments, stored_experiments
from rankstream.snapshots import store_of
from rankstream.wire.topics import PREFERENCES, full_name
from streams.comparisons.preference_fold import PreferencesFold
from streams.fold.closed_impressions import closed_of
from tests.services import KafkaService, RedisService
from tests.streams.comparisons import compared_lists
from tests.worker_process import configured, settings_of

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
    assert publish(boost(2) + OTHER) == (0, "boost: new other: new")
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
        assert status != 0
        assert "experiments.boost must have an epoch above 2" in said
        assert list(stored_experiments(store)) == ["other"]
    _, said = publish(boost(2) + OTHER, "list")
    assert "raise the epoch" in said
    assert publish(boost(3) + OTHER) == (0, "boost: new other: unchanged")
    assert publish(OTHER)[0] == 0
    assert publish(boost(3) + OTHER)[0] != 0
    assert publish(boost(4) + OTHER)[0] == 0
    store.close()


def test_an_emptied_redis_forgets_what_the_log_remembers(
    publish: Callable[..., tuple[int, str]],
    redis_server: RedisService,
    kafka: KafkaService,
    namespace: str,
) -> None:
    """What ran may come back as it was; nothing else may under a counted epoch."""

    def emptied() -> None:
        with redis.Redis.from_url(redis_server.url) as client:
            for key in client.scan_iter(f"{namespace}:*"):
                client.delete(key)

    assert publish(boost(1)) == (0, "boost: new")
    fold = PreferencesFold(compared_lists.EXPERIMENTS, 0)
    fold.take(closed_of(compared_lists.some_interactions(5)))
    producer = KafkaProducer(bootstrap_servers=kafka.bootstrap)
    for key, value in compared_lists.state_of(fold).items():
        producer.send(full_name(namespace, PREFERENCES), value, key, partition=0)
    producer.flush()
    producer.close()

    emptied()
    status, said = publish(boost(1, share=0.5))
    assert status != 0
    assert "must have an epoch above 1, as lists of that one were counted" in said
    assert publish(boost(1)) == (0, "boost: new")
    emptied()
    assert publish(boost(2, share=0.5)) == (0, "boost: new")
