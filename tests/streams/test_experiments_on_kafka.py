"""An experiment on a real broker: followed, folded exactly under kill -9, judged."""

import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import numpy as np
import pytest

from producers.event_producer import EventProducer
from producers.topic_reader import read_records
from rankstream.experiments import Experiments
from rankstream.operations.cli import main
from rankstream.operations.monitoring.overview import Gathered
from rankstream.operations.monitoring.poller import Poller
from rankstream.ranker import Ranker
from rankstream.settings import Settings
from rankstream.snapshots import store_of
from rankstream.wire.topics import CLICKS, EVALUATIONS, EVENTS, PREFERENCES, QUERIES
from streams.local import LocalPipeline
from streams.partition_fold import preferences_among
from tests.services import KafkaService, RedisService
from tests.worker_process import (
    SHORT_TIMES,
    configured,
    running,
    settings_of,
    waited_until,
)

N_LISTS = 3_000
CONFIG = (
    SHORT_TIMES
    + """[experiments.boost]
method = "team-draft"
also = { sample-scored = {} }
rankers = { good = "", bad = "" }
length = 4
"""
)
ITEMS = [f"d{i}" for i in range(8)]


def serve(settings: Settings, killing: Mapping[int, object]) -> None:
    """What a service does: follow, combine, send; users prefer low numbers."""
    store = store_of(settings)
    client = Experiments(store)
    assert client.refresh()
    rng = np.random.default_rng(1)
    start_ms = int(time.time() * 1_000) - 20 * N_LISTS - 100_000
    with EventProducer(settings) as producer:
        for number in range(N_LISTS):
            at_ms = start_ms + 20 * number
            session = f"s{number // 4}"
            running_now = client.of("boost", unit=session, now_ms=at_ms)
            assert running_now is not None
            rankings = {"good": ITEMS[:5], "bad": ITEMS[:2:-1]}
            query = f"q{number % 50}"
            name = Ranker.impression_id(f"i{number}", query)
            drawn = running_now.combine(rankings, query_id=query, impression_id=name)
            event = running_now.query_event(
                drawn, at_ms=at_ms, session=session, candidates=ITEMS
            )
            producer.send(QUERIES, event)
            for place, item in enumerate(drawn.shown, 1):
                if rng.random() < (0.5 if item < "d4" else 0.1) / place:
                    click = Ranker.click_event(name, at_ms=at_ms + 5, position=place)
                    producer.send(CLICKS, click)
            if number % 100 == 99:
                time.sleep(0.1)
            due = killing.get(number)
            if callable(due):
                due()
        producer.end()
    store.close()


def partial_sums(settings: Settings) -> dict[tuple[int, bytes], bytes]:
    """The last value of each key of `preferences`."""
    values: dict[tuple[int, bytes], bytes] = {}
    for record in read_records(settings, PREFERENCES):
        if record.key is not None and record.value is not None:
            values[record.partition, record.key] = record.value
    return values


def last_verdict(settings: Settings) -> dict:
    """The last word on `evaluations`."""
    found = [record.value for record in read_records(settings, EVALUATIONS)]
    return msgspec.json.decode(found[-1]) if found and found[-1] else {}


@pytest.mark.broker
def test_an_experiment_is_exact_under_fire_and_judged(
    kafka: KafkaService,
    redis_server: RedisService,
    namespace: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The same bytes as in process, every list once; a verdict with a winner."""
    config = configured(tmp_path, kafka.bootstrap, redis_server.url, namespace, CONFIG)
    settings = settings_of(config)
    assert main(["experiments", "publish", "--config", str(config)]) == 0
    log = tmp_path / "worker.log"
    struck: list[str] = []

    def counted() -> int:
        totals = last_verdict(settings).get("totals", {})
        return int(totals.get("impressions", 0))

    with running(config, log) as worker:

        def kill(role: str) -> None:
            waited_until(lambda: worker.kill(role), log)
            struck.append(role)

        waited_until(lambda: worker.said().count("event=restored") >= 12, log)
        plan = {
            700: lambda: kill("fold"),
            1_500: lambda: kill("evaluate"),
            2_200: lambda: kill("fold"),
        }
        serve(settings, plan)
        waited_until(lambda: counted() == N_LISTS, log)
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

    assert struck == ["fold", "evaluate", "fold"]
    assert status == 0
    assert partial_sums(settings) == refolded
    assert verdict["methods"]["team-draft"]["winner"] == "good"
    assert verdict["methods"]["sample-scored"]["impressions"] == N_LISTS
    assert pipeline.comparisons()[0].totals[0] == N_LISTS

    gathered = Gathered()
    poller = Poller(settings, gathered)
    poller.start()
    waited_until(lambda: bool(gathered.overview()["experiments"]), log)
    poller.close()
    (row,) = gathered.overview()["experiments"]
    assert (row["winner"], row["impressions"]) == ("good", N_LISTS)

    capsys.readouterr()
    assert (
        main(["experiments", "show", "boost", "--json", "--config", str(config)]) == 0
    )
    assert '"experiment":"boost"' in capsys.readouterr().out
    picture = tmp_path / "boost.svg"
    words = ["experiments", "show", "boost", "--plot", str(picture)]
    assert main([*words, "--config", str(config)]) == 0
    assert "winner: good" in capsys.readouterr().out
    drawn = picture.read_text()
    assert "winner good" in drawn
    assert "course, for sessions to come" in drawn
    assert main(["experiments", "list", "--json", "--config", str(config)]) == 0
    assert '"clients": "follow"' in capsys.readouterr().out
