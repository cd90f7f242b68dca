"""Features of candidates on a broker: from rankers to the topic that keeps them."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.answers.statistics import sets_logged
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import SnapshotStore, features_hash
from rankstream.wire.candidates import decode_candidates, decode_candidates_key
from rankstream.wire.topics import CANDIDATES, EVENTS, QUERIES
from streams.local import LocalPipeline
from streams.stage import Output
from tests.live_lists import closed
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

KEEP_MS = 60_000
N_LISTS = 1_500
STEP_MS = 200
NAMES = ["bm25", "age"]
ITEMS = [f"d{number}" for number in range(6)]
STAY, LEAVE = [f"stay {n}" for n in range(5)], [f"leave {n}" for n in range(5)]

SETTINGS = f"""
[time]
keep_ms = {KEEP_MS}
click_window_ms = 4_000
remember_ms = 4_000
disorder_ms = 2_000
idle_ms = 30_000
[delivery]
session_timeout_s = 6.0
state_s = 1.0
[models.m]
features = 2
feature_names = ["bm25", "age"]
log_candidates = true
"""

Records = list[tuple[int, bytes | None, bytes | None]]
"""Partition, key and value of each."""


def features_of(query: str) -> npt.NDArray[np.float32]:
    """Of the same items each query has its own."""
    rng = np.random.default_rng(list(query.encode()))
    return rng.random((len(ITEMS), 2)).astype(np.float32)


def serve(
    settings: Settings,
    redis_url: str,
    start_ms: int,
    due: Mapping[int, Callable[[], object]],
) -> None:
    """Lists of all queries in the first era, of half of them in all that follow.

    Half way another server takes over, which has logged nothing yet, and gives other
    features.
    """
    store = SnapshotStore(redis_url, namespace=settings.namespace)
    servers = [Ranker("m", store=store, feature_names=NAMES) for _ in range(2)]
    assert all(server.wait(PATIENCE_S) for server in servers)
    with EventProducer(settings) as producer:
        for number in range(N_LISTS):
            at_ms = start_ms + number * STEP_MS
            queries = STAY + LEAVE if at_ms - start_ms < KEEP_MS // 2 else STAY
            query = queries[number % len(queries)]
            is_late = number >= N_LISTS // 2
            ranker = servers[is_late]
            ranking = ranker.rank(features_of(query) + is_late, cutoff=3)
            event = ranker.query_event(
                ranking, query_id=query, items=ITEMS, at_ms=at_ms,
                impression_id=f"i{number}",
            )  # fmt: skip
            producer.send(QUERIES, event)
            if number % 50 == 0:
                producer.flush()
                time.sleep(0.1)
            if number in due:
                due[number]()
        producer.end()
    store.close()


def written(settings: Settings) -> Records:
    """Records of the topic as a reader has them, partition after partition."""
    return [
        (record.partition, record.key, record.value)
        for record in read_records(settings, CANDIDATES)
    ]


def folded_in_process(settings: Settings) -> Records:
    """The same, of the canonical log."""
    found: list[Output] = []
    pipeline = LocalPipeline(settings, now=lambda: 0, on_output=found.append)
    for record in read_records(settings, EVENTS):
        pipeline.fold_events(record.partition, record.value or b"")
    pipeline.flush()
    counts = pipeline.counters()
    assert counts["candidates_written"] == len(STAY) + len(LEAVE)
    assert counts["candidates_different"] == len(STAY)
    mine = [(o.partition, o.key, o.value) for o in found if o.topic == CANDIDATES]
    return sorted(mine, key=lambda each: each[0])


def last_of(records: Records) -> dict[tuple[int, bytes | None], bytes | None]:
    """The last value of each key, tombstones included."""
    return {(partition, key): value for partition, key, value in records}


@pytest.mark.broker
def test_features_outlive_kills_and_leave_with_their_eras(
    kafka: KafkaService, redis_server: RedisService, namespace: str, tmp_path: Path
) -> None:
    """Each query's own and first ones, once; the fold is killed, and started again."""
    config = configured(
        tmp_path, kafka.bootstrap, redis_server.url, namespace, SETTINGS
    )
    settings = settings_of(config)
    log = tmp_path / "worker.log"
    # Eras begin where the test does, so that all of the first half lie in one.
    start_ms = (int(time.time() * 1_000) // KEEP_MS - 9) * KEEP_MS

    with running(config, log) as worker:

        def kill() -> None:
            waited_until(lambda: worker.kill("fold"), log)

        due = dict.fromkeys((100, 700, 1_200), kill)
        # The role `learn` may compile first.
        waited_until(lambda: worker.said().count("event=restored") >= 16, log)
        serve(settings, redis_server.url, start_ms, due)
        waited_until(lambda: closed(settings) == N_LISTS, log)
        status, _ = worker.stop()
    assert status == 0

    # Compaction may have taken what a tombstone follows; nothing is there twice.
    found, expected = written(settings), folded_in_process(settings)
    assert Counter(found) <= Counter(expected)
    last = last_of(found)
    assert last == last_of(expected)
    living = {}
    for (_, key), value in last.items():
        query, _, list_hash = decode_candidates_key(key or b"")
        assert list_hash == features_hash(NAMES)
        if value is not None:
            living[query] = decode_candidates(value)
    assert sorted(living) == STAY
    for query, each in living.items():
        assert (each.items, each.n_features) == (ITEMS, 2)
        assert each.features == features_of(query).tobytes()
    left = [key for (_, key), value in last.items() if value is None]
    assert len(left) == len(LEAVE)

    living_names = {decode_candidates_key(key or b"")[:2] for _, key in last}
    by_query = {query: {name} for query, name in living_names if query in STAY}
    for query in (STAY[0], STAY[-1]):
        assert sets_logged(settings, query) == by_query[query]
    assert sets_logged(settings, LEAVE[0]) == set()
