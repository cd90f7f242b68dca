"""Hostile records between good ones: good counts stay exact, bad ones are buried."""

import json
from collections import Counter

import numpy as np

from rankstream.settings import Settings
from rankstream.wire.topics import CLICKS, QUERIES
from streams.dead_letter import HEADER_PREFIX
from streams.local import LocalPipeline, local_settings
from streams.stage import Output
from streams.statistics.reader import summaries_of
from tests.hostile import NOW_MS, hostile_records, query, strange_but_good

N_GOOD = 10_000


def test_poison_changes_no_count_and_every_bad_record_is_buried_as_it_came() -> None:
    """Ten thousand good lists with clicks, every hostile record between them."""
    letters: list[Output] = []
    pipeline = LocalPipeline(
        local_settings(Settings()),
        now=lambda: NOW_MS,
        on_output=lambda out: (
            letters.append(out) if out.topic.endswith("dlq") else None
        ),
    )
    rng = np.random.default_rng(3)
    hostile = hostile_records()
    strange = strange_but_good()
    bad = list(hostile.items()) * 3
    places = sorted(rng.choice(N_GOOD, size=len(bad), replace=False).tolist())
    struck = dict(zip(places, bad, strict=True))
    sent: list[bytes | None] = []
    clicked: Counter[str] = Counter()
    for number in range(N_GOOD):
        at_ms = NOW_MS - 100_000 + number
        name = f"i{number}"
        pipeline.send(QUERIES, json.dumps(query(name, at_ms=at_ms)).encode())
        if number % 3 == 0:
            item = "ab"[number % 2]
            event = {"impression_id": name, "query_id": "hostile", "at_ms": at_ms + 1}
            pipeline.send(CLICKS, json.dumps(event | {"item_id": item}).encode())
            clicked[item] += 1
        if number in struck:
            value = struck[number][1]
            pipeline.send(QUERIES, value)
            sent.append(value)
    for value in strange.values():
        pipeline.send(QUERIES, value)
    pipeline.end()

    counters = pipeline.counters()
    summaries = summaries_of(
        (change.key, change.value) for change in pipeline.statistics()
    )
    shown: Counter[str] = Counter()
    clicks: Counter[str] = Counter()
    for _, cell in summaries:
        for row in range(len(cell.column("item"))):
            item = cell.items[cell.column("item")[row]]
            shown[item] += int(cell.column("shown")[row])
            clicks[item] += int(cell.column("clicked")[row])

    assert counters["applied_impressions"] == N_GOOD + len(strange)
    assert counters["applied_clicks"] == sum(clicked.values())
    assert (counters["late"], counters["orphan"], counters["pending"]) == (0, 0, 0)
    assert shown["a"] == shown["b"] == N_GOOD + len(strange) - 1
    assert {item: clicks[item] for item in "ab"} == dict(clicked)
    buried = [b"7" if value == b"[7]" else value for value in sent]
    assert [letter.value for letter in letters] == buried
    assert all(HEADER_PREFIX + "code" in dict(letter.headers) for letter in letters)


def test_a_client_two_hours_ahead_makes_nobody_late() -> None:
    """Five percent of a replayed log ahead of the rest: all of it is applied."""
    pipeline = LocalPipeline(local_settings(Settings()), now=lambda: NOW_MS)
    rng = np.random.default_rng(5)
    start_ms = NOW_MS - 90_000_000
    for number in range(20_000):
        ahead = 7_200_000 if rng.random() < 0.05 else 0
        event = query(f"i{number}", at_ms=start_ms + number * 1_000 + ahead)
        pipeline.send(QUERIES, json.dumps(event).encode())
    pipeline.end()

    assert pipeline.counters()["applied_impressions"] == 20_000
    assert pipeline.counters()["late"] == 0
