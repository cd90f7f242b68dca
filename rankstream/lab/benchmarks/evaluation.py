"""Inference of multileaving over the same in numpy, and the fold that uses it."""

import time
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from models.arrays import Flags, Floats, Integers
from models.interleaving.pairwise_preference import LARGEST_WEIGHT, draw, preferences
from models.interleaving.probabilistic import assignment_shares, expected_signs
from models.interleaving.probabilistic import preferences as soft_preferences
from rankstream.lab.benchmarks.folded_log import ONE_PARTITION
from rankstream.lab.benchmarks.harness import (
    NO_BOUNDS,
    Bounds,
    Figure,
    beside_figure,
    in_turns,
    rate,
    timed,
)
from rankstream.lab.benchmarks.workload import (
    Workload,
    canonical_records,
)
from rankstream.ranking.combining import combine
from rankstream.settings import ExperimentSettings, Settings
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

N_COMPARED = 10
"""Rankers that are compared on every list of a log."""

WITHOUT = Settings(kafka=ONE_PARTITION)
COMPARED = Settings(
    kafka=ONE_PARTITION,
    experiments={
        "bench": ExperimentSettings(rankers={f"r{i}": "" for i in range(N_COMPARED)})
    },
)

Array = npt.NDArray[Any]
Case = tuple[Array, Array, Array]


def listing_preferences(rankings: Integers, shown: Integers, clicks: Flags) -> Floats:
    """Pairwise preference multileaving after its listing, with the equation's sign.

    Numpy after the listing: pairs of documents are looped over, each updates the whole
    matrix at once; nothing loops over rankers.

    Parameters
    ----------
    rankings : [n_rankers, n_documents]
        Whole rankings.
    shown, clicks : [k]
    """
    n_rankers, n_documents = rankings.shape
    ranks = np.empty_like(rankings)
    places = np.arange(1, n_documents + 1)
    np.put_along_axis(ranks, rankings, np.tile(places, (n_rankers, 1)), axis=1)
    first = ranks.min(axis=0)
    sizes = np.array([(first <= x).sum() for x in range(1, len(shown) + 1)])
    matrix = np.zeros((n_rankers, n_rankers))
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return matrix
    n_read = min(clicked[-1] + 2, len(shown))
    for i in clicked:
        for j in np.flatnonzero(~clicks[:n_read]):
            two = shown[[i, j]]
            low, high = np.sort(first[two])
            if min(i, j) + 1 < high:
                continue
            x = np.arange(low, high)
            weight = np.prod(1.0 - 1.0 / (sizes[x - 1] - x + 1))
            agrees = np.where(ranks[:, two[0]] < ranks[:, two[1]], 1.0, -1.0)
            matrix += (agrees[:, None] - agrees[None, :]) / weight
    return matrix


def vectorised_preferences(
    rankings: Integers, shown: Integers, clicks: Flags
) -> Floats:
    """The same, all pairs of documents at once as well: one product per list.

    A weight is a ratio of running products over the ranks, kept as logarithms; each
    ranker's credit is its orders of the pairs times their weights.

    Parameters
    ----------
    rankings : [n_rankers, n_documents]
        Whole rankings.
    shown, clicks : [k]
    """
    n_rankers, k = len(rankings), len(shown)
    clicked = np.flatnonzero(clicks)
    if not len(clicked):
        return np.zeros((n_rankers, n_rankers))
    skipped = np.flatnonzero(~clicks[: clicked[-1] + 2])
    ranks = np.argsort(rankings, axis=1) + 1
    first = ranks.min(axis=0)
    sizes = np.searchsorted(np.sort(first), np.arange(1, k + 1), side="right")
    with np.errstate(divide="ignore"):  # a sole choice leaves nothing below it free
        left = np.log(1.0 - 1.0 / (sizes - np.arange(k)))
    survival = np.concatenate(([0.0], np.cumsum(np.maximum(left, -700.0))))
    one, other = first[shown[clicked], None], first[shown[skipped]]
    low, high = np.minimum(one, other), np.maximum(one, other)
    are_free = np.minimum(clicked[:, None], skipped) + 1 >= high
    logarithms = survival[low - 1] - survival[np.minimum(high, k) - 1]
    weights = np.where(are_free, np.exp(np.where(are_free, logarithms, 0.0)), 0.0)
    agrees = ranks[:, shown[clicked], None] < ranks[:, None, shown[skipped]]
    credit = (2.0 * agrees - 1.0).reshape(n_rankers, -1) @ weights.ravel()
    return np.asarray(credit[:, None] - credit[None, :])


def sampled_preferences(
    shares: Floats, n_samples: int, rng: np.random.Generator
) -> Floats:
    """Mean sign over sampled assignments of the clicked places, all pairs at once.

    Parameters
    ----------
    shares : [n_clicks, n_rankers]
    """
    n_clicks, n_rankers = shares.shape
    bounds = np.cumsum(shares, axis=1)
    counts = np.zeros((n_samples, n_rankers), np.int8)
    rows = np.arange(n_samples)
    for click in range(n_clicks):
        owners = np.searchsorted(bounds[click], rng.random(n_samples), side="right")
        counts[rows, np.minimum(owners, n_rankers - 1)] += 1
    return np.asarray(
        [np.sign(counts[:, n, None] - counts).mean(axis=0) for n in range(n_rankers)]
    )


RIVALS: dict[Callable[..., Array], str] = {
    listing_preferences: "numpy after the listing",
    vectorised_preferences: "numpy without loops",
}


def measure(*, quick: bool = False) -> list[Figure]:
    """All figures; `quick` takes fewer repeats."""
    n_runs = 1 if quick else 5
    return [
        _pairwise(40, n_runs, (50.0, 15.0)),
        _probabilistic(15, n_runs, (500.0, 100.0)),
        _probabilistic(50, n_runs, (30.0, 10.0)),
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
    bounds: Bounds = NO_BOUNDS,
    rival_of: Callable[..., Array] = listing_preferences,
) -> Figure:
    cases = cases_of(n_rankers, 3)

    def ours() -> list[Array]:
        return [preferences(*case, LARGEST_WEIGHT, False) for case in cases]

    def rival() -> list[Array]:
        return [rival_of(*case) for case in cases]

    return beside_figure(
        f"pairwise preference, {n_rankers} rankers, k = {LENGTH}, 3 clicks, "
        f"over {RIVALS[rival_of]}",
        "batches/s",
        _rates(ours, rival, n_runs),
        bounds,
        is_same=all(map(np.allclose, ours(), rival())),
    )


def _probabilistic(n_rankers: int, n_runs: int, bounds: Bounds) -> Figure:
    cases = cases_of(n_rankers, 5)[: N_LISTS // 4]
    shares = [assignment_shares(*case, TAU) for case in cases]
    rng = np.random.default_rng(1)

    def ours() -> None:
        for case in cases:
            soft_preferences(*case, TAU)

    def rival() -> list[Array]:
        return [sampled_preferences(each, N_SAMPLES, rng) for each in shares]

    exact = map(expected_signs, shares)
    agrees = all(
        np.abs(one - other).max() < 0.05
        for one, other in zip(exact, rival(), strict=True)
    )
    return beside_figure(
        f"probabilistic, exact, {n_rankers} rankers, 5 clicks, over {N_SAMPLES:,} "
        "sampled assignments",
        "batches/s",
        _rates(ours, rival, n_runs, n_ours=20),
        bounds,
        is_same=agrees,
    )


def _fold(n_impressions: int, n_runs: int) -> Figure:
    """Canonical throughput with ten rankers compared on every list, over without."""
    records, n_events = compared_records(n_impressions)
    n_credited(COMPARED, records[:4])
    pairs = in_turns(
        lambda: timed(lambda: n_credited(COMPARED, records), time.perf_counter),
        lambda: timed(lambda: n_credited(WITHOUT, records), time.perf_counter),
        n_runs,
    )
    return beside_figure(
        "canonical fold with 10 rankers compared on every list, over without",
        "events/s",
        [(n_events / ours.seconds, n_events / rival.seconds) for ours, rival in pairs],
        (0.5, 0.25),
        is_same=all(ours.result == n_impressions for ours, _ in pairs),
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


def n_credited(settings: Settings, records: list[bytes]) -> int:
    """Lists of which rankers got a credit, once all records are folded."""
    pipeline = LocalPipeline(settings, now=lambda: 0)
    for value in records:
        pipeline.fold_events(0, value)
    pipeline.flush()
    return pipeline.counters()["compared_credited"]


def _rates(
    ours: Callable[[], object],
    rival: Callable[[], object],
    n_runs: int,
    n_ours: int = 5,
) -> list[tuple[float, float]]:
    """Times a second that either does its work, in turns."""
    ours()
    return in_turns(
        lambda: rate(ours, n_ours, time.perf_counter),
        lambda: rate(rival, 1, time.perf_counter),
        n_runs,
    )
