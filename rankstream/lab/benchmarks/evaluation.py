"""Inference of multileaving over numpy, and the fold that uses it."""

import gc
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from models.interleaving.pairwise_preference import LARGEST_WEIGHT, draw, preferences
from models.interleaving.probabilistic import assignment_shares, expected_signs
from models.interleaving.probabilistic import preferences as soft_preferences
from rankstream.lab.benchmarks.evaluation_rival import (
    listing_preferences,
    sampled_preferences,
    vectorised_preferences,
)
from rankstream.lab.benchmarks.workload import Workload, canonical_records
from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings, KafkaSettings, Settings
from rankstream.wire.events import (
    MULTILEAVE,
    Element,
    Impression,
    decode_event_record,
    encode_record,
)
from streams.local import LocalPipeline

LENGTH, N_DOCUMENTS, TAU = 10, 30, 3.0
N_SAMPLES = 10_000
N_LISTS = 40
RANKERS = (2, 5, 10, 20, 50, 100, 200)

Array = npt.NDArray[Any]
Case = tuple[Array, Array, Array]

RIVALS: dict[Callable[..., Array], str] = {
    listing_preferences: "numpy after the listing",
    vectorised_preferences: "numpy without loops",
}


def measure(*, quick: bool = False) -> list[dict[str, Any]]:
    """All figures; `quick` takes fewer repeats."""
    n_runs = 1 if quick else 5
    return [
        _pairwise(40, n_runs, goal=50.0, floor=15.0),
        _probabilistic(15, n_runs, goal=500.0, floor=100.0),
        _probabilistic(50, n_runs, goal=30.0, floor=10.0),
        _pairwise(40, n_runs, rival_of=vectorised_preferences),
        _fold(2_000 if quick else 20_000, 1 if quick else 3),
        *(_pairwise(n, n_runs) for n in RANKERS),
    ]


def cases_of(n_rankers: int, n_clicks: int) -> list[Case]:
    """Rankings that agree in part, a list of ten, and clicks on some of it."""
    rng = np.random.default_rng(n_rankers)
    cases = []
    for _ in range(N_LISTS):
        quality = rng.standard_normal(N_DOCUMENTS)
        noise = rng.standard_normal((n_rankers, N_DOCUMENTS))
        rankings = np.argsort(-(quality + noise), axis=1)
        shown = draw(rankings, LENGTH, rng)
        clicks = np.zeros(LENGTH, np.bool_)
        clicks[rng.choice(LENGTH, n_clicks, replace=False)] = True
        cases.append((rankings, shown, clicks))
    return cases


def _pairwise(
    n_rankers: int,
    n_runs: int,
    *,
    goal: float | None = None,
    floor: float | None = None,
    rival_of: Callable[..., Array] = listing_preferences,
) -> dict[str, Any]:
    cases = cases_of(n_rankers, 3)

    def ours() -> None:
        for rankings, shown, clicks in cases:
            preferences(rankings, shown, clicks, LARGEST_WEIGHT, False)

    def rival() -> None:
        for case in cases:
            rival_of(*case)

    agrees = all(
        np.allclose(preferences(*case, LARGEST_WEIGHT, False), rival_of(*case))
        for case in cases
    )
    return _figure(
        f"pairwise preference, {n_rankers} rankers, k = {LENGTH}, 3 clicks, "
        f"over {RIVALS[rival_of]}",
        _rates(ours, rival, n_runs),
        is_same=agrees,
        goal=goal,
        floor=floor,
    )


def _probabilistic(
    n_rankers: int, n_runs: int, *, goal: float, floor: float
) -> dict[str, Any]:
    cases = cases_of(n_rankers, 5)[: N_LISTS // 4]
    shares = [assignment_shares(*case, TAU) for case in cases]
    rng = np.random.default_rng(1)

    def ours() -> None:
        for case in cases:
            soft_preferences(*case, TAU)

    def rival() -> None:
        for each in shares:
            sampled_preferences(each, N_SAMPLES, rng)

    agrees = all(
        np.abs(expected_signs(each) - sampled_preferences(each, N_SAMPLES, rng)).max()
        < 0.05
        for each in shares
    )
    return _figure(
        f"probabilistic, exact, {n_rankers} rankers, 5 clicks, over {N_SAMPLES:,} "
        "sampled assignments",
        _rates(ours, rival, n_runs, n_ours=20),
        is_same=agrees,
        goal=goal,
        floor=floor,
    )


def _fold(n_impressions: int, n_runs: int) -> dict[str, Any]:
    """Canonical throughput with ten rankers compared on every list, over without."""
    records, n_events = compared_records(n_impressions)
    names = {f"r{i}": "" for i in range(10)}
    kafka = KafkaSettings(partitions=1, learner_partitions=1)
    without = Settings(kafka=kafka)
    settings = Settings(
        kafka=kafka, experiments={"bench": ExperimentSettings(rankers=names)}
    )
    ours, rivals, credited = [], [], 0
    _replayed(settings, records[:4])
    for _ in range(n_runs):
        rivals.append(n_events / _replayed(without, records)[0])
        seconds, counters = _replayed(settings, records)
        ours.append(n_events / seconds)
        credited = counters["compared_credited"]
    return _figure(
        "canonical fold with 10 rankers compared on every list, over without",
        (ours, rivals),
        is_same=credited == n_impressions,
        goal=0.5,
        floor=0.25,
        unit="events/s",
    )


def compared_records(n_impressions: int) -> tuple[list[bytes], int]:
    """The log of the pipeline benchmark, every list a multileaving of ten rankers."""
    plan = Workload(n_impressions, MULTILEAVE, n_partitions=1)
    rng = np.random.default_rng(3)
    records, n_events = [], 0
    for _, value, count in canonical_records(plan, np.random.default_rng(1)):
        batch = decode_event_record(value)
        elements = [_compared(element, rng) for element in batch.elements]
        kept = msgspec.structs.replace(batch, elements=elements)
        records.append(encode_record(kept))
        n_events += count
    return records, n_events


def _compared(element: Element, rng: np.random.Generator) -> Element:
    if not isinstance(element, Impression):
        return element
    items = msgspec.msgpack.decode(element.candidates)
    rows = [rng.permutation(len(items))[:LENGTH].tolist() for _ in range(10)]
    rankings = {f"r{i}": [items[d] for d in row] for i, row in enumerate(rows)}
    method = "pairwise-preference"
    found = combine(method, rankings, LENGTH, seed=int(rng.integers(2**62)))
    extra = {
        "experiment": {"id": "bench", "epoch": 1, "method": method},
        "rankings": found.rankings,
    }
    shown = np.array([items.index(item) for item in found.shown], "<u2")
    return msgspec.structs.replace(
        element, shown=shown.tobytes(), extra=msgspec.msgpack.encode(extra)
    )


def _replayed(settings: Settings, records: list[bytes]) -> tuple[float, dict[str, int]]:
    pipeline = LocalPipeline(settings, now=lambda: 0)
    gc.collect()
    started = time.perf_counter()
    for value in records:
        pipeline.fold_events(0, value)
    pipeline.flush()
    return time.perf_counter() - started, pipeline.counters()


def _rates(
    ours: Callable[[], None],
    rival: Callable[[], None],
    n_runs: int,
    n_ours: int = 5,
) -> tuple[list[float], list[float]]:
    """Times a second that either does its work, in turns."""
    ours()
    found: tuple[list[float], list[float]] = ([], [])
    for _ in range(n_runs):
        for work, times, into in ((ours, n_ours, found[0]), (rival, 1, found[1])):
            started = time.perf_counter()
            for _ in range(times):
                work()
            into.append(times / (time.perf_counter() - started))
    return found


def _figure(
    name: str,
    rates: tuple[list[float], list[float]],
    *,
    is_same: bool,
    goal: float | None,
    floor: float | None,
    unit: str = "batches/s",
) -> dict[str, Any]:
    ours, rivals = rates
    ratios = [mine / theirs for mine, theirs in zip(ours, rivals, strict=True)]
    return {
        "name": name,
        "value": median(ours),
        "unit": unit,
        "rival": median(rivals),
        "ratio": median(ratios) if is_same else None,
        "goal": goal,
        "floor": floor,
    }
