"""Planted relevance comes back through a real Kafka, for what stood low as well.

The old policy puts the good items low; one that is rolled back to has its lists in a
scope of their own. Click rates are far off; corrected relevance is not.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from producers.event_producer import EventProducer, send_records
from producers.topic_reader import read_records
from rankstream.operations.answers.relevance import relevance_of
from rankstream.operations.answers.sources import LoggingPolicies
from rankstream.operations.cli import main
from rankstream.wire.models.deployments import deployment_record
from rankstream.wire.topics import CLICKS, QUERIES, SNAPSHOTS, STATISTICS
from streams.statistics.keys import ScopeName
from streams.statistics.reader import Statistics
from tests.services import KafkaService, RedisService
from tests.worker_process import configured, running, settings_of, waited_until

ITEMS = ("a", "b", "c", "d")
RELEVANCE = dict(zip(ITEMS, (0.2, 0.3, 0.6, 0.8), strict=True))
EXAMINATION = (1.0, 0.5, 0.35, 0.25)
ROLLED_BACK = "search@2.7"
LISTS = {"v1": (3_000, 0.9), ROLLED_BACK: (3_000, 0.8)}
"""By intervention: lists, and how often `a` stands first and `d` last."""

FITTED_ON = frozenset(range(5))
MORE = "[delivery]\nstate_s = 1.0\n"


def events():
    """Query and click events of both interventions, from one seed."""
    rng = np.random.default_rng(14)
    at_ms = int(time.time() * 1_000) - 60_000
    number = 0
    for intervention, (n_lists, forward) in LISTS.items():
        order = np.eye(4)
        exposures = forward * order + (1 - forward) * order[::-1]
        for _ in range(n_lists):
            number += 1
            shown = ITEMS if rng.random() < forward else ITEMS[::-1]
            named = {
                "impression_id": f"i{number}",
                "query_id": "shoes",
                "at_ms": at_ms + number * 5,
            }
            yield (
                QUERIES,
                named
                | {
                    "shown": shown,
                    "candidates": ITEMS,
                    "policy": "logged",
                    "exposures": exposures.ravel().tolist(),
                    "intervention": intervention,
                    "session": f"s{number // 3}",
                },
            )
            for rank, item in enumerate(shown, 1):
                if rng.random() < EXAMINATION[rank - 1] * RELEVANCE[item]:
                    yield CLICKS, named | {"position": rank}


def named(intervention: str) -> Callable[[ScopeName], bool]:
    """Whether a scope is of this intervention."""
    return lambda name: name.intervention == intervention


@pytest.mark.broker
def test_planted_relevance_lies_in_its_interval_and_click_rates_far_outside(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of all scopes together, and of what was logged after the rollback alone."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, MORE)
    settings, log = settings_of(config), tmp_path / "worker.log"
    producer = EventProducer(settings)
    for topic, event in events():
        producer.send(topic, json.dumps(event).encode())
    producer.end()
    n_lists = sum(n for n, _ in LISTS.values())

    def read() -> Statistics:
        records = read_records(settings, STATISTICS)
        return Statistics((one.key, one.value) for one in records if one.key)

    def is_counted() -> bool:
        return read().queries().get("shoes", (0, 0))[0] == n_lists

    roles = ("--role", "ingest", "--role", "fold")
    with running(config, log, *roles):
        waited_until(is_counted, log)
    statistics = read()
    assert {name.intervention for name in statistics.scopes()} == LISTS.keys()
    trust = LoggingPolicies((), {ROLLED_BACK: FITTED_ON})
    curve = position_curve(EXAMINATION)
    for wanted in (LISTS.keys(), {"v1"}, {ROLLED_BACK}):
        chunks = [
            chunk
            for intervention in wanted
            for chunk in statistics.columns(["shoes"], is_wanted=named(intervention))
        ]
        found = relevance_of(chunks, curve, settings.statistics.groups, trust)
        put_low = [row for row in found.items if row.item in "cd"]
        assert len(put_low) == 2
        for row in put_low:
            planted, rate = RELEVANCE[row.item], row.clicked / row.impressions
            assert row.low <= planted <= row.high, (wanted, row)
            assert planted - rate > 5 * (row.high - row.low) / 2, (wanted, row)

    curve_told = ",".join(map(str, EXAMINATION))
    words = ["statistics", "show", "shoes", "--config", str(config)]
    assert main([*words, "--examination", curve_told]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "relevance, corrected for position" in said
    assert f"{ROLLED_BACK!r} was chosen from clicks, maybe from these" in said

    deployed = deployment_record(ROLLED_BACK, 1, sorted(FITTED_ON))
    send_records(settings, SNAPSHOTS, [deployed])
    assert main([*words, "--examination", curve_told]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert f"{ROLLED_BACK!r} was chosen from clicks of 5 groups: values are" in said
