"""Statistics read into columns, against the reader that goes from cell to cell.

A third of the scopes each logged certain lists, two lists by a coin, and lists drawn by
Plackett-Luce from 20 candidates; all have 20 groups. What takes memory is longer lists
with more clicks, whose cells take kilobytes each, as many as are asked for.
"""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

import msgspec
import numpy as np

from rankstream.lab.benchmarks.harness import (
    Figure,
    alone_figure,
    beside_figure,
    in_fresh_process,
    in_turns,
    peak_mib,
    timed,
)
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
MOST_RESIDENT_MIB = 512.0


def measure(*, quick: bool = False) -> list[Figure]:
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


class Read(NamedTuple):
    """What was read: rows, clicks and expected exposure."""

    n_rows: int
    n_clicked: int
    expected: float

    def is_as(self, other: "Read") -> bool:
        """Whether the other read the same."""
        is_near = abs(self.expected - other.expected) < 1e-9 * other.expected
        return self[:2] == other[:2] and is_near


def read_columns(records: list[Record]) -> Read:
    """By columns."""
    n_rows = n_clicked = 0
    expected = 0.0
    for chunk in Statistics(records).columns():
        n_rows += len(chunk.rank)
        n_clicked += int(chunk.by_class[0].sum())
        expected += float(chunk.expected.sum())
    return Read(n_rows, n_clicked, expected)


def read_cells(records: list[Record]) -> Read:
    """From cell to cell, as readers did before there were columns."""
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
    return Read(n_rows, n_clicked, expected)


def _beside_the_rival(templates: list[list[Record]], n_runs: int) -> Figure:
    records = records_of(templates, N_OF_RIVAL)
    pairs = in_turns(
        lambda: timed(lambda: read_columns(records)),
        lambda: timed(lambda: read_cells(records)),
        n_runs,
    )
    return beside_figure(
        f"scopes of {GROUPS} groups into columns, {N_OF_RIVAL} at a time",
        "scopes/s of CPU",
        [
            (N_OF_RIVAL / ours.seconds, N_OF_RIVAL / cells.seconds)
            for ours, cells in pairs
        ],
        (20.0, 8.0),
        is_same=all(ours.result.is_as(cells.result) for ours, cells in pairs),
    )


def _all(templates: list[list[Record]], n_scopes: int) -> Figure:
    records = records_of(templates, n_scopes)
    return alone_figure(
        f"{n_scopes:,} scopes of {GROUPS} groups into columns",
        timed(lambda: read_columns(records)).seconds,
        "s of CPU",
        (20.0, 40.0),
    )


def _memory(n_gib: float) -> Figure:
    """The largest resident size of a process of its own that reads so many bytes."""
    n_bytes, spent_s, peak = in_fresh_process(read_many, n_gib)
    return alone_figure(
        f"largest resident size, {n_bytes / GIB:.2f} GiB into columns in "
        f"{spent_s:.0f} s of CPU",
        peak,
        "MiB",
        (MOST_RESIDENT_MIB, MOST_RESIDENT_MIB),
    )


def read_many(n_gib: float) -> tuple[int, float, float]:
    """Bytes of values, seconds of CPU, and MiB that were resident at most."""
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

    found = timed(
        lambda: sum(len(chunk.rank) for chunk in Statistics(values()).columns())
    )
    assert found.result  # noqa: S101  what was read is what is measured
    return read, found.seconds, peak_mib()
