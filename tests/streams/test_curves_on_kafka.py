"""A curve of trust bias on a real broker: fitted, read by a training, and watched.

Users trust what stands high, and click there what they do not like. All roles run in
one worker; a model of curves finds their trust in the clicks, and a ranker is trained
under the newest curve.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from models.click_models.trust_bias import TrustBiasModel
from models.estimators.splits import Shares, split_groups
from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.operations.cli import main
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import Snapshot, SnapshotStore, decode_snapshot
from rankstream.wire.models.curves import CurveRecord, PublishedCurve, curve_rows
from rankstream.wire.models.training import (
    RunRecord,
    decode_record,
    decode_training_key,
)
from rankstream.wire.topics import (
    CLICKS,
    EVALUATIONS,
    QUERIES,
    SNAPSHOTS,
    TRAINING,
)
from tests.clicked_lists import (
    N_FEATURES,
    N_ITEMS,
    Shown,
    Sink,
    features_of,
    relevance_of,
)
from tests.rankstream.lab.commands.test_simulate_on_kafka import n_counted
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    PATIENCE_S,
    configured,
    running,
    settings_of,
    waited_until,
)

USERS = TrustBiasModel(
    (0.65, 0.5, 0.4, 0.3, 0.25),
    (0.3, 0.2, 0.12, 0.08, 0.05),
    (0.02, 0.25, 0.5, 0.75, 1.0),
)
N_RANKS = len(USERS.alpha)
N_QUERIES = 4
CURVE_AT, TRAINED_AT, N_LISTS = 1_000, 1_500, 2_600
LAG = 300
"""Lists that may still be in their windows."""

TOGETHER = 0.05 / (2 * (N_RANKS - 1))
"""Ratios and offsets of all ranks but the first, together at 95 %."""

SETTINGS = f"""
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
session_timeout_s = 6.0
state_s = 1.0
[statistics]
groups = 10
split_shares = [0.2, 0.6, 0.2]
[curves.users]
estimator = "trust"
ranks = {N_RANKS}
confidence = {1.0 - TOGETHER}
[curves.users.schedule]
after = [{CURVE_AT}]
[models.m]
features = {N_FEATURES}
versions = "trained"
[models.m.training]
after = [{TRAINED_AT}]
epochs = 10
batch = 8
least_support = 1.0
most_unsupported = 1.0
"""


def show(producer: Sink, ranker: Ranker, shown: Shown, n_lists: int) -> Shown:
    """So many lists more, each of a session of its own, and what users click."""
    rng = np.random.default_rng((13, shown.n_lists))
    at_ms = shown.at_ms
    for number in range(shown.n_lists, shown.n_lists + n_lists):
        at_ms += 20
        query = number % N_QUERIES
        ranking = ranker.rank(
            features_of(query), cutoff=N_RANKS, seed=int(rng.integers(2**63))
        )
        event = ranker.query_event(
            ranking,
            query_id=f"q{query}",
            items=[f"d{item}" for item in range(N_ITEMS)],
            at_ms=at_ms,
            impression_id=f"i{number}",
            session=f"s{number}",
        )
        producer.send(QUERIES, event)
        grades = (5.0 * relevance_of(query)[ranking.order]).astype(np.int64)
        chances = USERS.click_probabilities(grades)
        for row in np.flatnonzero(rng.random(N_RANKS) < chances).tolist():
            click = ranker.click_event(
                f"i{number}", query_id=f"q{query}", position=row + 1, at_ms=at_ms + 1
            )
            producer.send(CLICKS, click)
    return Shown(shown.n_lists + n_lists, at_ms)


def fits_of(settings: Settings) -> list[CurveRecord]:
    """Fits that were committed, oldest first."""
    return [decode_record("curve", value) for value in values_of(settings, "curve")]


def runs_of(settings: Settings) -> list[RunRecord]:
    """Trainings that were committed, oldest first."""
    return [decode_record("run", value) for value in values_of(settings, "run")]


def values_of(settings: Settings, kind: str) -> Iterator[bytes]:
    """Records of a kind in `training`."""
    for record in read_records(settings, TRAINING):
        named = decode_training_key(record.key or b"")
        if record.value and named and named.kind == kind:
            yield record.value


def by_hand(config: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Fit the curve once more, and wait; its name."""
    capsys.readouterr()
    words = ["intervene", "--config", str(config), "users", "--wait", "--json"]
    assert main(words) == 0
    (run,) = json.loads(capsys.readouterr().out)
    return str(run["intervention"])


def newest(settings: Settings) -> Snapshot:
    """The last curve of the topic; of those before only the newest need be kept."""
    values = [
        record.value
        for record in read_records(settings, SNAPSHOTS)
        if record.key == b"users" and record.value
    ]
    return decode_snapshot(values[-1])


def watched(settings: Settings, version: str, log: Path) -> dict[str, Any]:
    """What a monitor shows as soon as it has a version of the curve."""
    gathered = Gathered({name: x.training for name, x in settings.models.items()})
    poller = Poller(settings, gathered)
    poller.start()

    def shows_it() -> bool:
        curves = gathered.overview()["curves"]
        return [f"{each['model']}@{each['version']}" for each in curves] == [version]

    try:
        waited_until(shows_it, log)
        return gathered.overview()
    finally:
        poller.close()


def is_trained(ranker: Ranker) -> bool:
    """Whether rankers have what a training published."""
    ranker.refresh()
    return ranker.version > 0


def lived(
    config: Path, redis_url: str, log: Path, capsys: pytest.CaptureFixture[str]
) -> dict[str, Any]:
    """Show all lists, fit, train, and fit again; what a monitor shows of the last."""
    settings = settings_of(config)
    store = SnapshotStore(redis_url, namespace=settings.namespace)
    # Who shows lists keeps the first version, so that each run has the same clicks.
    ranker, served = (Ranker("m", store=store) for _ in range(2))
    shown = Shown(0, int(time.time() * 1_000) - 60_000 - N_LISTS * 20)
    with running(config, log) as worker, EventProducer(settings) as producer:
        assert ranker.wait(PATIENCE_S), worker.said()[-3_000:]
        assert served.wait(PATIENCE_S)
        shown = show(producer, ranker, shown, CURVE_AT + LAG)
        producer.flush()
        waited_until(lambda: bool(fits_of(settings)), log)
        shown = show(producer, ranker, shown, TRAINED_AT + LAG - shown.n_lists)
        producer.flush()
        waited_until(lambda: bool(runs_of(settings)), log)
        waited_until(lambda: is_trained(served), log)
        show(producer, ranker, shown, N_LISTS - shown.n_lists)
        producer.end()
        assert n_counted(config, at_least=N_LISTS) == N_LISTS
        last = by_hand(config, capsys)
        waited_until(lambda: store.current("users") is not None, log)
        overview = watched(settings, last, log)
        status, _ = worker.stop()
    store.close()
    assert status == 0
    return overview


@pytest.mark.broker
def test_trust_is_found_and_a_training_and_a_monitor_read_it(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The last curve has the truth in its intervals, all ranks together."""
    services = kafka.bootstrap, redis_server.url
    config = configured(tmp_path, *services, namespace, SETTINGS)
    settings = settings_of(config)
    overview = lived(config, redis_server.url, tmp_path / "worker.log", capsys)
    snapshot, fits = newest(settings), fits_of(settings)
    last = curve_rows(snapshot)

    assert snapshot.intervention == fits[-1].intervention
    assert [fit.reason for fit in fits] == ["count", "asked"]
    assert_truth_is_within(last)
    (run,) = runs_of(settings)
    assert run.curve.source == fits[0].intervention
    n_known = len(run.curve.alpha)
    assert n_known > 1
    assert run.curve.alpha == fits[0].alpha[:n_known]
    assert run.curve.beta == fits[0].beta[:n_known]

    (curve,) = overview["curves"]
    assert [rank["alpha"] for rank in curve["ranks"]] == last[0].tolist()
    assert [rank["beta"] for rank in curve["ranks"]] == last[3].tolist()
    validation = split_groups(10, Shares(*settings.statistics.split_shares)).validation
    assert curve["groups"] == fits[-1].groups == [*validation]
    assert overview["examination"] == [], "its own estimate has given way"
    (*_, told) = (
        msgspec.json.decode(record.value, type=PublishedCurve)
        for record in read_records(settings, EVALUATIONS)
        if record.key == b"users" and record.value
    )
    assert f"users@{told.version}" == fits[-1].intervention
    assert [rank.alpha for rank in told.ranks] == last[0].tolist()


def assert_truth_is_within(rows: NDArray[np.float64]) -> None:
    """Ratios and offsets of all ranks, in intervals that say something."""
    alpha, alpha_low, alpha_high, beta, beta_low, beta_high = rows
    ratios = np.array(USERS.alpha) / USERS.alpha[0]
    offsets = USERS.beta - USERS.beta[0] * ratios
    assert (alpha_low <= ratios).all()
    assert (ratios <= alpha_high).all()
    assert (beta_low <= offsets).all()
    assert (offsets <= beta_high).all()
    assert (alpha_high - alpha_low).max() < 0.7
    assert (alpha[0], beta[0]) == (1.0, 0.0)
