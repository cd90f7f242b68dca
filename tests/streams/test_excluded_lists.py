"""Who is excluded leaves no trace in sums, comparisons and models."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

from rankstream.settings import (
    ExcludeSettings,
    ExperimentSettings,
    ModelSettings,
    Settings,
)
from rankstream.wire.events import Impression, decode_interaction_record
from rankstream.wire.topics import CLICKS, QUERIES
from streams.ingest.ingest import Ingest
from streams.local import LocalPipeline, local_settings
from streams.stage import Change, Output, SourceRecord
from tests.streams.recount.recounted import Folded, random_log

NOW_MS = 1_700_000_000_000
PROBE, ROBOT = "probe", "robot"
EXCLUDE = ExcludeSettings(users=[PROBE])


def settings_with(exclude: ExcludeSettings) -> Settings:
    """A model and an experiment that lists belong to."""
    model = ModelSettings(features=2, normalisation="none")
    experiment = ExperimentSettings(rankers={"one": "", "two": ""})
    return local_settings(
        Settings(models={"m": model}, experiments={"x": experiment}, exclude=exclude)
    )


def events(*, with_probe: bool) -> list[tuple[str, dict[str, Any]]]:
    """Lists of a model and of an experiment, with clicks; each third is a probe's."""
    rng = np.random.default_rng(3)
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(300):
        items = [f"d{item}" for item in rng.permutation(5)]
        user = PROBE if number % 3 == 1 else f"u{number % 11}"
        shown: dict[str, Any] = {
            "impression_id": f"i{number}",
            "query_id": f"q{number % 7}",
            "at_ms": NOW_MS + number,
            "model": "m",
            "candidates": sorted(items),
            "policy": "plackett-luce",
            "scores": rng.normal(size=5).tolist(),
            "features": rng.normal(size=(5, 2)).tolist(),
            "seed": number,
            "shown": items,
            "user": user,
            "session": f"{user}-{number % 5}",
        }
        if number % 2:
            shown |= {
                "policy": "multileave",
                "experiment": {"id": "x", "epoch": 1, "method": "pairwise-preference"},
                "rankings": {"one": items, "two": items[::-1]},
            }
        clicked = {
            "impression_id": f"i{number}",
            "query_id": f"q{number % 7}",
            "at_ms": NOW_MS + number + 5,
            "position": int(rng.integers(1, 6)),
        }
        if with_probe or user != PROBE:
            found += [(QUERIES, shown), (CLICKS, clicked)]
    return found


def results(sent: list[tuple[str, dict[str, Any]]], settings: Settings) -> Any:
    """Statistics, comparisons, interactions, models; and counts."""
    outputs: list[Output] = []
    pipeline = LocalPipeline(settings, now=lambda: NOW_MS, on_output=outputs.append)
    for topic, event in sent:
        pipeline.send(topic, json.dumps(event).encode())
    pipeline.end()
    sums = sorted((each.key, each.value) for each in pipeline.statistics())
    compared = [one.encoded() for one in pipeline.comparisons()]
    interactions = [
        interaction
        for output in outputs
        if output.topic == "interactions"
        for interaction in decode_interaction_record(output.value or b"").interactions
    ]
    return (sums, compared, interactions, pipeline.snapshots), pipeline.counters()


def test_all_that_is_kept_is_as_if_nobody_excluded_had_come() -> None:
    """To the byte; but their events are applied, and counted."""
    found, counts = results(events(with_probe=True), settings_with(EXCLUDE))
    expected, without = results(events(with_probe=False), settings_with(EXCLUDE))
    assert found == expected
    assert counts["applied_impressions"] == without["applied_impressions"] + 100 == 300
    assert counts["applied_clicks"] == without["applied_clicks"] + 100 == 300
    assert counts["excluded_impressions"] == counts["excluded_clicks"] == 100
    assert without["excluded_impressions"] == without["excluded_clicks"] == 0
    assert counts["interactions"] == 200
    # They would have left a trace in each of the four.
    others, _ = results(events(with_probe=True), settings_with(ExcludeSettings()))
    assert all(one != other for one, other in zip(found, others, strict=True))


def test_a_robot_counts_up_to_its_limit() -> None:
    """Of forty lists in a minute the first five."""
    settings = settings_with(ExcludeSettings(lists_per_minute=5))
    sent = [
        (QUERIES, event | {"user": None, "session": ROBOT})
        for topic, event in events(with_probe=True)[:80]
        if topic == QUERIES
    ]
    (_, _, interactions, _), counts = results(sent, settings)
    assert [one.impression.impression_id for one in interactions] == [
        f"i{number}" for number in range(5)
    ]
    assert counts["excluded_impressions"] == 35


def test_no_event_can_say_of_itself_that_it_is_excluded() -> None:
    """Nor by its attributes."""
    sent = events(with_probe=False)[:40]
    plain, _ = results(sent, settings_with(EXCLUDE))
    forged = [
        (
            topic,
            event | {"attributes": {"excluded": True}} if topic == QUERIES else event,
        )
        for topic, event in sent
    ]
    (sums, compared, interactions, _), counts = results(forged, settings_with(EXCLUDE))
    assert counts["excluded_impressions"] == 0
    assert (sums, compared, len(interactions)) == (plain[0], plain[1], len(plain[2]))
    named = [(topic, event | {"excluded": True}) for topic, event in sent]
    _, counts = results(named, settings_with(EXCLUDE))
    assert counts["applied_impressions"] == 0


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_a_restarted_ingestion_excludes_alike(cut: int) -> None:
    """The counters of sessions are a part of its state."""
    settings = settings_with(ExcludeSettings(lists_per_minute=5))
    sent = [
        json.dumps(event | {"session": f"s{number % 3}"}).encode()
        for number, (topic, event) in enumerate(events(with_probe=True)[:80])
        if topic == QUERIES
    ]

    def written(stage: Ingest, first: int, last: int) -> list[bytes | None]:
        for offset in range(first, last):
            stage.fold(SourceRecord(QUERIES, 0, offset, NOW_MS, None, sent[offset], ()))
            stage.settle()
        return [one.value for one in stage.outputs()]

    whole = Ingest(QUERIES, 0, settings)
    expected = [written(whole, 0, cut), written(whole, cut, len(sent))]
    before, after = Ingest(QUERIES, 0, settings), Ingest(QUERIES, 0, settings)
    found = [written(before, 0, cut)]
    after.restore([Change(one.topic, one.key, one.value) for one in before.changes()])
    found.append(written(after, cut, len(sent)))
    assert found == expected
    assert any(b"excluded" in (value or b"") for value in expected[1])


@pytest.mark.parametrize("seed", range(3))
def test_the_recount_leaves_out_whom_the_log_excludes(seed: int) -> None:
    """And sees where a fold did not."""
    rng = np.random.default_rng(seed)

    def excluded(element: Any) -> Any:
        if not isinstance(element, Impression) or rng.random() < 0.6:
            return element
        extra = msgspec.msgpack.encode({"excluded": True, "user": "u"})
        return msgspec.structs.replace(element, extra=extra)

    log = [[excluded(element) for element in record] for record in random_log(seed)]
    folded = Folded(log, checkpoint=[None, 399, 200][seed])
    verdict = folded.verdict()
    assert verdict.is_clean, verdict.differences
    assert folded.outcomes["excluded_impressions"] > 20
    assert folded.outcomes["excluded_clicks"] > 0
    plain = Folded(random_log(seed), checkpoint=[None, 399, 200][seed])
    plain.log = folded.log
    assert not plain.verdict().is_clean
    folded.outcomes["excluded_clicks"] -= 1
    assert not folded.verdict().is_clean


def test_only_what_ingestion_writes_excludes() -> None:
    """First of the map, and true; any other place or value excludes nothing in C."""
    log = random_log(1, 60)
    for extra in ({"excluded": False}, {"user": "excluded"}, {"u": 1, "excluded": 2}):
        packed = msgspec.msgpack.encode(extra)
        marked = [
            [
                msgspec.structs.replace(element, extra=packed)
                if isinstance(element, Impression)
                else element
                for element in record
            ]
            for record in log
        ]
        folded = Folded(marked)
        assert folded.outcomes["excluded_impressions"] == 0
        assert folded.verdict().is_clean
