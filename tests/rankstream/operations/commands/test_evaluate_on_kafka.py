"""`rankstream evaluate` and `export --arrays` on a real broker: as from a dump."""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from producers.event_producer import EventProducer
from rankstream.operations.cli import main
from rankstream.ranker import Ranker
from rankstream.snapshots import SnapshotStore
from rankstream.wire.topics import EVENTS, INTERACTIONS
from tests.clicked_lists import (
    CUTOFF,
    EXAMINATION,
    N_FEATURES,
    N_ITEMS,
    Shown,
    relevance_of,
    show,
)
from tests.rankstream.lab.commands.test_simulate_on_kafka import n_counted
from tests.services import KafkaService, RedisService
from tests.worker_process import PATIENCE_S, configured, running, settings_of

N_LISTS, N_QUERIES = 600, 10
SETTINGS = f"""
[time]
click_window_ms = 1_000
disorder_ms = 2_000
idle_ms = 600_000
[delivery]
state_s = 1.0
[statistics]
groups = 10
[models.m]
features = {N_FEATURES}
versions = "trained"
"""
ROLES = ["--role", "ingest", "--role", "fold", "--role", "learn", "--role", "publish"]
GIVEN = ["--examination", ",".join(map(str, EXAMINATION))]


@pytest.fixture(scope="module")
def folder(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaService,
    redis_server: RedisService,
) -> Path:
    """Settings of a namespace with lists of a model, dumps, and rankings."""
    folder = tmp_path_factory.mktemp("log")
    name = f"evaluate-{time.time_ns()}"
    services = kafka.bootstrap, redis_server.url
    config = configured(folder, *services, name, SETTINGS)
    settings = settings_of(config)
    store = SnapshotStore(redis_server.url, namespace=name)
    ranker = Ranker("m", store=store)
    with (
        running(config, folder / "worker.log", *ROLES) as worker,
        EventProducer(settings) as producer,
    ):
        assert ranker.wait(PATIENCE_S), worker.said()[-3_000:]
        begin = Shown(0, int(time.time() * 1_000) - 120_000)
        show(producer, ranker, begin, N_LISTS, n_queries=N_QUERIES)
        producer.end()
        assert n_counted(config, at_least=N_LISTS) == N_LISTS
    store.close()
    for topic in (EVENTS, INTERACTIONS):
        words = ["dump", str(folder / f"{topic}.dump"), "--topic", topic]
        assert main([*words, "--config", str(config)]) == 0
    rankings = [
        {"query_id": f"q{query}", "items": [f"d{i}" for i in np.argsort(-liked)]}
        for query, liked in ((q, relevance_of(q)) for q in range(N_QUERIES))
    ]
    lines = "".join(json.dumps(each) + "\n" for each in rankings)
    (folder / "best.jsonl").write_text(lines)
    return folder


def evaluated(folder: Path, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    """What it prints as JSON."""
    capsys.readouterr()
    policies = ["m", str(folder / "best.jsonl")]
    config = ["--config", str(folder / "rankstream.toml")]
    assert main(["evaluate", *policies, *config, "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.broker
def test_policies_are_valued_on_what_the_topics_hold(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A model of Redis and rankings of a file; the truth lies in the intervals."""
    found = evaluated(folder, capsys, *GIVEN)
    logged, first, best = found["policies"]
    liked = [np.sort(relevance_of(query))[::-1][:CUTOFF] for query in range(N_QUERIES)]
    truth = float(np.mean([np.dot(each, EXAMINATION) for each in liked]))

    assert [first["name"], best["name"]] == ["m@0.0", "best"]
    assert found["estimator"] == "intervention-aware"
    assert found["coverage"]["n_lists"] == N_LISTS
    assert found["coverage"]["lacking"] == {}
    assert best["low"] < truth < best["high"]
    assert best["verdict"] == "better"
    # What logged was the first version: lists drawn from equal scores.
    assert first["reward"] == pytest.approx(logged["reward"], rel=1e-6)
    evenly = float(np.mean([relevance_of(q).mean() for q in range(N_QUERIES)]))
    assert first["low"] < evenly * sum(EXAMINATION) < first["high"]


@pytest.mark.broker
@pytest.mark.parametrize("words", [GIVEN, ["--against", "m", "--weights", "dcg"]])
def test_a_dump_of_the_log_says_the_same(
    words: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Under a curve that is given, and under one that is fitted."""
    of_topics = evaluated(folder, capsys, *words)
    of_dump = evaluated(folder, capsys, *words, "--log", str(folder / "events.dump"))

    for one, other in zip(of_topics["policies"], of_dump["policies"], strict=True):
        names = [name for name, value in one.items() if isinstance(value, float)]
        # Of so few lists a curve that is fitted gives no intervals.
        assert len(names) == (5 if words != GIVEN else 9)
        for name in names:
            # Partitions may be read in another order.
            assert one.pop(name) == pytest.approx(other.pop(name), rel=1e-9, abs=1e-12)
    logged = [found.pop("logged_clicks") for found in (of_topics, of_dump)]
    assert logged[0] == pytest.approx(logged[1], rel=1e-9)
    curves = [found.pop("curve") for found in (of_topics, of_dump)]
    assert curves[0].pop("alpha") == pytest.approx(curves[1].pop("alpha"), rel=1e-9)
    assert curves[0] == curves[1]
    assert of_topics == of_dump


@pytest.mark.broker
def test_models_that_redis_has_not_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With those that it has; and versions that are not kept."""
    config = ["--config", str(folder / "rankstream.toml"), *GIVEN]
    assert main(["evaluate", "n", *config]) == 2
    assert "have a snapshot in Redis, as m; 'n' has none" in capsys.readouterr().err
    assert main(["evaluate", "m@0.7", *config]) != 0
    assert "0.7" in capsys.readouterr().err


def exported(file: Path, *words: str) -> dict[str, Any]:
    """Arrays that were written."""
    assert main(["export", "--arrays", str(file), *words]) == 0
    with np.load(file) as arrays:
        return {name: arrays[name] for name in arrays.files}


def rounds_of(found: dict[str, Any]) -> list[tuple[Any, ...]]:
    """All rounds by the names of their items and queries, sorted."""
    names = found["items"][found["action"]], found["queries"][found["query"]]
    columns = "at_ms", "group", "position", "reward", "pscore"
    return sorted(zip(*names, *(found[name] for name in columns), strict=True))


@pytest.mark.broker
def test_arrays_are_those_of_what_was_closed(folder: Path) -> None:
    """All of the topic, as from a dump of it; then one query alone."""
    config = ["--config", str(folder / "rankstream.toml")]
    found = exported(folder / "log.npz", *config)
    other = exported(folder / "dump.npz", str(folder / "interactions.dump"), *config)

    assert int(found["n_rounds"]) == N_LISTS * CUTOFF
    assert int(found["n_actions"]) == N_ITEMS
    assert found["intervention"].max() == 0
    assert found["interventions"].tolist() == ["m"]
    # Equal scores: each item is as likely at each rank.
    assert found["pscore"] == pytest.approx(np.full(N_LISTS * CUTOFF, 1 / N_ITEMS))
    assert rounds_of(found) == rounds_of(other)

    part = exported(folder / "part.npz", "--query", "Q3", *config)
    assert part["queries"].tolist() == ["q3"]
    assert rounds_of(part) == [row for row in rounds_of(found) if row[1] == "q3"]
