"""Every learner on a real broker: the snapshots of its log, to the last bit."""

import time
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from models.learners.registry import LEARNERS
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, decode_snapshot
from rankstream.wire.topics import CLICKS, QUERIES, SNAPSHOTS
from streams.learning.learner_needs import (
    multileaving_of,
    needs_candidates,
    policy_for,
)
from tests.learned_log import learned_anew
from tests.live_lists import closed
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

N_EACH = 150
STEP_MS = 200
MOST_BEHIND = 60
"""Impressions that a served model may lack."""

SHAPES = {
    "pdgd": 'kind = "neural-relu"\nhidden = [4]',
    "mgd": "options = { n_candidates = 9 }",
    "dbgd": 'options = { comparison = "team-draft", optimiser = "adagrad" }',
    "pl-rank": "options = { n_samples = 10 }",
}

SETTINGS = """
[time]
click_window_ms = 4_000
disorder_ms = 2_000
idle_ms = 30_000
[delivery]
session_timeout_s = 6.0
""" + "\n".join(
    f'[models."{name}"]\nfeatures = 5\nlearner = "{name}"\n{SHAPES.get(name, "")}'
    for name in sorted(LEARNERS)
)


def is_near(ranker: Ranker, n_shown: int) -> bool:
    """Whether what is served has learned from nearly all that was shown."""
    ranker.refresh()
    return n_shown - ranker.version <= MOST_BEHIND


def live_closely(
    settings: Settings, redis_url: str, log: Path, half_way: object
) -> None:
    """Users of all models in turns; rankers serve what Redis has."""
    store = SnapshotStore(redis_url, namespace=settings.namespace)
    rankers = {name: Ranker(name, store=store) for name in sorted(LEARNERS)}
    for ranker in rankers.values():
        assert ranker.wait(PATIENCE_S)
    rng = np.random.default_rng(3)
    start_ms = int(time.time() * 1_000) - 60_000 - N_EACH * 6 * STEP_MS
    with EventProducer(settings) as producer:
        for number in range(N_EACH * len(rankers)):
            name = sorted(rankers)[number % len(rankers)]
            ranker, model = rankers[name], settings.models[name]
            n_shown = number // len(rankers)
            if n_shown - ranker.version > MOST_BEHIND:
                producer.flush()
                waited_until(partial(is_near, ranker, n_shown), log)
            features = rng.random((8, 5))
            ranking = ranker.rank(
                features,
                cutoff=5,
                policy=policy_for(model),
                seed=int(rng.integers(2**63)),
                multileaving=multileaving_of(model),
            )
            at_ms, query = start_ms + number * STEP_MS, f"q{number % 40}"
            event = ranker.query_event(
                ranking,
                query_id=query,
                items=[f"d{(row * 3) % 8}" for row in range(8)],
                at_ms=at_ms,
                impression_id=f"i{number}",
                log_candidates=needs_candidates(model),
            )
            producer.send(QUERIES, event)
            likes = features[ranking.order, 0] > rng.random(5)
            for row in np.flatnonzero(likes).tolist():
                click = ranker.click_event(
                    f"i{number}", query_id=query, position=row + 1, at_ms=at_ms + row
                )
                producer.send(CLICKS, click)
            if number == N_EACH * 3 and callable(half_way):
                half_way()
        producer.end()
    assert all(ranker.version > 0 for ranker in rankers.values())
    store.close()


@pytest.mark.broker
def test_snapshots_are_those_of_the_log(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """All learners at once in a closed loop, their process killed in the middle."""
    config = configured(
        tmp_path, kafka.bootstrap, redis_server.url, namespace, SETTINGS
    )
    settings = settings_of(config)
    log = tmp_path / "worker.log"

    def written() -> list[tuple[bytes, bytes]]:
        return [
            (record.key or b"", record.value)
            for record in read_records(settings, SNAPSHOTS)
            if record.value is not None
        ]

    # Of all versions the last ones must come, under their names.
    last = {f"{name}/0.{N_EACH}".encode() for name in LEARNERS}

    with running(config, log) as worker:
        waited_until(lambda: worker.said().count("event=restored") >= 12, log)
        live_closely(settings, redis_server.url, log, lambda: worker.kill("learn"))
        waited_until(lambda: closed(settings) == N_EACH * len(LEARNERS), log)
        waited_until(lambda: last <= dict(written()).keys(), log)
        status, _ = worker.stop()
    given, pipeline = learned_anew(settings)

    assert status == 0
    assert pipeline.counters()["learner_skipped"] == 0
    for key, value in written():
        assert value == given[key], key
    for name in LEARNERS:
        newest = dict(written())[f"{name}/0.{N_EACH}".encode()]
        assert newest == pipeline.snapshots[name.encode()], name
        assert decode_snapshot(newest).updates > 10, name
