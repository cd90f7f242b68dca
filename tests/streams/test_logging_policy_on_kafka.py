"""A logging policy that the role `train` optimises twice while users are served."""

import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.experiments import Experiments
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import store_of
from rankstream.wire.topics import EVALUATIONS, EVENTS, PREFERENCES
from streams.local import LocalPipeline
from streams.partition_fold import preferences_among
from tests.logging_shop import (
    EXPERIMENT,
    MODEL,
    LoggingShop,
    is_below,
    split_mean_square,
    squared_errors,
    uniform_mean_square,
)
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

TIMES = """
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
state_s = 1.0
"""
CONFIG = f"{TIMES}{MODEL}{EXPERIMENT}[train]\nvalue_every_s = 0\n"
STAGES = (900, 900, 900)
"""Lists under each policy; the newest of a stage may not be closed when it is made."""


def last_verdict(settings: Settings) -> dict:
    """The last word on the experiment in `evaluations`."""
    found = [
        record.value
        for record in read_records(settings, EVALUATIONS)
        if record.value and b'"experiment":"boost"' in record.value
    ]
    return msgspec.json.decode(found[-1]) if found else {}


def partial_sums(settings: Settings) -> dict[tuple[int, bytes], bytes]:
    """The last value of each key of `preferences`."""
    return {
        (record.partition, record.key): record.value
        for record in read_records(settings, PREFERENCES)
        if record.key is not None and record.value is not None
    }


@pytest.mark.broker
def test_a_policy_that_changes_twice_is_judged_exactly(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Each list under its own policy; less variance than uniform lists and A/B's."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, CONFIG)
    settings, log = settings_of(config), tmp_path / "worker.log"
    assert main(["experiments", "publish", "--config", str(config)]) == 0
    store = store_of(settings)
    client, ranker = Experiments(store), Ranker("lists", store=store)
    assert client.refresh()
    begin_ms = int(time.time() * 1_000) - 20 * sum(STAGES) - 100_000
    joined = client.of("boost", unit="s", now_ms=begin_ms)
    assert joined is not None
    with running(config, log) as worker:
        assert ranker.wait(PATIENCE_S), worker.said()[-3_000:]
        with EventProducer(settings) as producer:
            shop = LoggingShop(joined, ranker, producer)
            for number, size in enumerate(STAGES):
                shop.show(size, begin_ms)
                producer.flush()
                if number + 1 < len(STAGES):
                    waited_until(ranker.refresh, log)
            producer.end()
        waited_until(
            lambda: (
                last_verdict(settings).get("totals", {}).get("impressions")
                == sum(STAGES)
            ),
            log,
        )
        status, _ = worker.stop()
    verdict = last_verdict(settings)
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for record in read_records(settings, EVENTS):
        pipeline.fold_events(record.partition, record.value or b"")
    pipeline.flush()
    refolded = {
        (partition, change.key): change.value
        for partition, fold in enumerate(pipeline.folds)
        for change in preferences_among(fold.consumers).changes(fold.join.counts)
    }
    ranker.close()
    store.close()

    assert status == 0
    assert len(set(shop.versions)) == len(STAGES)
    assert shop.mean_square() < 0.8 * min(uniform_mean_square(), split_mean_square())
    errors = squared_errors(shop.scores, 4_000)
    assert is_below(errors["logging"], errors["ab"])
    assert is_below(errors["logging"], errors["uniform"])
    every = verdict["methods"]["all:logging-policy"]
    assert every["impressions"] == sum(STAGES)
    assert every["pairs"][0]["mean"] == pytest.approx(np.mean(shop.credits), abs=1e-5)
    assert verdict["methods"]["logging-policy"]["sessions"]["needed"] > 0
    found = partial_sums(settings)
    assert {key: found.get(key) for key in refolded} == refolded
