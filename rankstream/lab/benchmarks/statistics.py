"""Statistics read into columns, against the reader that goes from cell to cell.

A third of the scopes each logged certain lists, two lists by a coin, and lists drawn by
Plackett-Luce from 20 candidates; all have 20 groups. What takes memory is longer lists
with more clicks, whose cells take kilobytes each, as many as are asked for.
"""

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from statistics import median
from typing import Any

import msgspec
import numpy as np

from rankstream.lab.benchmarks.workload import Workload, canonical_elements
from rankstream.settings import LimitSettings, StatisticsSettings
from rankstream.wire.events import (
    DETERMINISTIC,
    LOGGED,
    PLACKETT_LUCE,
    Click,
    ClickMark,
    Impression,
    Interaction,
)
from streams.fold.statistics_fold import StatisticsFold
from streams.native.closed_impressions import closed_of
from streams.statistics import keys
from streams.statistics.reader import Statistics

Record = tuple[bytes, bytes]

N_SCOPES = 30_000
N_OF_RIVAL = 60
"""Scopes that the rival reads, and ours beside it."""

N_TEMPLATES = 30
IMPRESSIONS = 60
GROUPS = 20
KEEP_MS = 90 * 86_400_000

GIB = 1 << 30
MOST_RESIDENT = 512 << 20


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """Scopes a second beside the rival's, all of them, and the memory of many bytes."""
    n_scopes = 300 if quick else N_SCOPES
    templates = mixed_templates(1 if quick else N_TEMPLATES)
    return [
        _beside_the_rival(templates, 1 if quick else 5),
        _all(templates, n_scopes),
        _memory(0.02 if quick else 4.0),
    ]


def mixed_templates(n_each: int) -> list[list[Record]]:
    """Records of scopes of three policies, in turns."""
    policies = (DETERMINISTIC, LOGGED, PLACKETT_LUCE)
    return [
        template_of(Workload(IMPRESSIONS, policy, n_queries=1, rescored_ms=1 << 42), i)
        for i in range(n_each)
        for policy in policies
    ]


def template_of(plan: Workload, seed: int) -> list[Record]:
    """What the fold writes of one query."""
    kept = StatisticsSettings(groups=GROUPS)
    fold = StatisticsFold(LimitSettings(), kept, KEEP_MS, 0)
    interactions: list[Interaction] = []
    for _, _, element in canonical_elements(plan, np.random.default_rng(seed)):
        if isinstance(element, Impression):
            one = msgspec.structs.replace(element, unit=len(interactions))
            interactions.append(Interaction(one, []))
        elif isinstance(element, Click):
            mark = ClickMark(element.position, element.at_ms, element.action)
            interactions[-1].clicks.append(mark)
    fold.take(closed_of(interactions))
    records = [(key, value) for _, key, value in fold.changes({}) if value]
    return [one for one in records if keys.decode(one[0])[0] != "counted"]


def many(templates: list[list[Record]]) -> Iterator[list[Record]]:
    """Records of ever more queries, each as one of the templates."""
    split = [[(keys.decode(key), value) for key, value in each] for each in templates]
    number = 0
    while True:
        for template in split:
            yield [
                (keys.encode([parts[0], f"query {number}", *parts[2:]]), value)
                for parts, value in template
            ]
            number += 1


def records_of(templates: list[list[Record]], n_scopes: int) -> list[Record]:
    """Records of so many scopes."""
    scopes = islice(many(templates), n_scopes)
    return [record for scope in scopes for record in scope]


def read_columns(records: list[Record]) -> tuple[float, int, int, float]:
    """Seconds of CPU, rows, clicks and expected exposure by columns."""
    started_s = time.process_time()
    n_rows = n_clicked = 0
    expected = 0.0
    for chunk in Statistics(records).columns():
        n_rows += len(chunk.rank)
        n_clicked += int(chunk.by_class[0].sum())
        expected += float(chunk.expected.sum())
    return time.process_time() - started_s, n_rows, n_clicked, expected


def read_cells(records: list[Record]) -> tuple[float, int, int, float]:
    """The same from cell to cell, as readers did before there were columns."""
    started_s = time.process_time()
    statistics = Statistics(records)
    n_rows = n_clicked = 0
    expected = 0.0
    for name in statistics.scopes():
        for cell in statistics.cells(name).values():
            exposures = statistics.exposures(*name[:3], cell, name.era)
            places = zip(*cell.pairs[:, :2].T.tolist(), strict=True)
            shown = {(cell.items[item], rank) for item, rank in places}
            n_rows += len(shown | exposures.keys())
            n_clicked += int(cell.column("clicked").sum())
            expected += sum(exposures.values())
    return time.process_time() - started_s, n_rows, n_clicked, expected


def _beside_the_rival(templates: list[list[Record]], n_runs: int) -> dict[str, Any]:
    records = records_of(templates, N_OF_RIVAL)
    ours, theirs, ratios, agrees = [], [], [], True
    for _ in range(n_runs):
        found = read_columns(records), read_cells(records)
        ours.append(N_OF_RIVAL / found[0][0])
        theirs.append(N_OF_RIVAL / found[1][0])
        ratios.append(ours[-1] / theirs[-1])
        close = abs(found[0][3] - found[1][3]) < 1e-9 * found[1][3]
        agrees = agrees and found[0][1:3] == found[1][1:3] and close
    return {
        "name": f"scopes of {GROUPS} groups into columns, {N_OF_RIVAL} at a time",
        "value": median(ours),
        "unit": "scopes/s of CPU",
        "rival": median(theirs),
        "ratio": median(ratios) if agrees else None,
        "goal": 20.0,
        "floor": 8.0,
    }


def _all(templates: list[list[Record]], n_scopes: int) -> dict[str, Any]:
    spent_s = read_columns(records_of(templates, n_scopes))[0]
    return {
        "name": f"{n_scopes:,} scopes of {GROUPS} groups into columns",
        "value": spent_s,
        "unit": "s of CPU",
        "rival": None,
        "ratio": spent_s,
        "goal": 20.0,
        "floor": 40.0,
        "less_is_better": True,
    }


def _memory(n_gib: float) -> dict[str, Any]:
    """The largest resident size of a process of its own that reads so many bytes."""
    told = subprocess.run(  # noqa: S603  our own module
        [sys.executable, "-m", __name__, str(n_gib)],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    n_bytes, spent_s, peak = map(float, told.split())
    return {
        "name": f"largest resident size, {n_bytes / GIB:.2f} GiB into columns in "
        f"{spent_s:.0f} s of CPU",
        "value": peak / (1 << 20),
        "unit": "MiB",
        "rival": None,
        "ratio": peak / (1 << 20),
        "goal": MOST_RESIDENT / (1 << 20),
        "floor": MOST_RESIDENT / (1 << 20),
        "less_is_better": True,
    }


def main(n_gib: float) -> None:
    """Print bytes of values, seconds of CPU, and bytes that were resident at most."""
    plan = Workload(4_000, DETERMINISTIC, 1, 60, 40, clicks_per_list=6.0)
    templates = [template_of(plan, seed) for seed in range(5)]
    read = 0

    def values() -> Iterator[Record]:
        nonlocal read
        for scope in many(templates):
            for key, value in scope:
                read += len(value)
                yield key, value
            if read >= n_gib * GIB:
                return

    started_s = time.process_time()
    n_rows = sum(len(chunk.rank) for chunk in Statistics(values()).columns())
    assert n_rows  # noqa: S101  what was read is what is measured
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1_024
    sys.stdout.write(f"{read} {time.process_time() - started_s} {peak}\n")


if __name__ == "__main__":
    main(float(sys.argv[1]))
