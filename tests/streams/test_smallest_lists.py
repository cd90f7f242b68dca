"""Lists of which there is little to learn, from their events to counts and models."""

import json

from rankstream.settings import ModelSettings, Settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.local import LocalPipeline, local_settings
from streams.statistics.reader import Statistics

NOW_MS = 1_700_000_000_000
SETTINGS = local_settings(Settings(models={"m": ModelSettings(features=2)}))


def query(name: str, **fields: object) -> bytes:
    """A list of one item that a model ranked."""
    event = {"impression_id": name, "query_id": name, "at_ms": NOW_MS, "shown": ["a"]}
    logged = {
        "model": "m", "policy": "plackett-luce", "candidates": ["a"], "scores": [0.5],
        "features": [[1.0, 2.0]],
    }  # fmt: skip
    return json.dumps(event | logged | fields).encode()


def pipeline_after(*queries: bytes) -> LocalPipeline:
    """What is there once each list was clicked at its first place."""
    pipeline = LocalPipeline(SETTINGS, now=lambda: NOW_MS)
    for each in queries:
        pipeline.send(QUERIES, each)
        click = json.loads(each)
        named = {name: click[name] for name in ("impression_id", "query_id", "at_ms")}
        pipeline.send(CLICKS, json.dumps(named | {"position": 1}).encode())
    pipeline.end()
    return pipeline


def counted(pipeline: LocalPipeline) -> dict[str, tuple[int, int]]:
    """Impressions and clicks of each query."""
    return Statistics(
        (change.key, change.value) for change in pipeline.statistics()
    ).queries()


def test_a_list_of_one_item_is_counted_and_teaches_nothing() -> None:
    """There is no other item that users could have preferred it to."""
    pipeline = pipeline_after(query("one"))
    counts = pipeline.counters()
    assert counted(pipeline) == {"one": (1, 1)}
    assert counts["dead_letter"] == counts["ingestion_dead_letter"] == 0
    assert counts["learner_updates"] == 0


def test_a_list_of_a_model_that_nobody_knows_is_counted() -> None:
    """The statistics ask for no model, and known ones learn nothing from it."""
    two = {"shown": ["a", "b"], "candidates": ["a", "b"], "scores": [0.5, 0.1]}
    rows = {"features": [[1.0, 2.0], [3.0, 1.0]]}
    known = pipeline_after(query("two", **two, **rows))
    other = pipeline_after(query("two", model="unknown", **two, **rows))
    assert counted(known) == counted(other) == {"two": (1, 1)}
    assert known.counters()["learner_updates"] == 1
    assert other.counters()["learner_updates"] == 0
    assert set(other.snapshots) <= {b"m"}
