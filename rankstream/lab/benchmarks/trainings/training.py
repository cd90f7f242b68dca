"""A training in its parts, each by itself: reading, values, and ten epochs.

What is read are statistics of many queries and their features, as the role that trains
reads them, but for the topics. Epochs are those of generated queries of the same size,
with grades that features tell of and values that clicks would give, so that the ranker
has a quality; the rival, numpy query by query, trains on the same queries for as many
epochs. Networks, and each loss, are timed on fewer of them. Time is what a core was
busy.
"""

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from models.arrays import Floats
from models.estimators.bias_curve import position_curve
from models.estimators.splits import split_groups
from models.evaluation.ndcg import mean_ndcg
from models.losses.registry import DEFAULT, LOSSES
from models.rankers.ranker import Ranker, Scorer
from models.rankers.registry import LinearRanker, ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_scores import linear_unless
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.benchmarks.harness import (
    NO_BOUNDS,
    Bounds,
    Figure,
    alone_figure,
    new_figure,
    timed,
)
from rankstream.lab.benchmarks.statistics import (
    GROUPS,
    IMPRESSIONS,
    Record,
    many,
    template_of,
)
from rankstream.lab.benchmarks.trainings.training_rival import train_in_numpy
from rankstream.lab.benchmarks.workload import Workload
from rankstream.ranking.checked_weights import CheckedWeights
from rankstream.wire.candidates import candidates_key, candidates_value
from rankstream.wire.events import DETERMINISTIC, LOGGED, PLACKETT_LUCE
from streams.statistics.columns import Columns
from streams.statistics.reader import Statistics
from streams.training.feature_records import FeatureRecords
from streams.training.gathering import Gathered, Scaling
from streams.training.item_tables import (
    APART,
    SELECTED_ON,
    TRAINED_ON,
    PooledSums,
)

N_QUERIES, N_ITEMS, N_FEATURES = 30_000, 25, 136
HELD_OUT = 5
"""One query of so many."""

CHUNK = 1_000
N_EPOCHS = 10
FEW_OF = 10
"""One query of so many is enough to time an epoch of a loss."""

HIDDEN = 64
"""Units of the network, as in the published experiments."""

CUTOFF = 10
FEATURES_HASH = b"features"
RATES = np.array([0.05, 0.15, 0.35, 0.6, 0.9])
"""P(click | looked at) by grade."""

GRADES_FROM = np.array([0.3, 1.1, 1.8, 2.5])
"""Deviations above the mean from which a grade is 1 to 4."""

GOAL_S, FLOOR_S = 30.0, 120.0
CPU = "s of CPU"
LARGEST_GAP = 0.005
"""Of NDCG between ours and the rival's: further apart they are not of equal quality."""


class Parts(NamedTuple):
    """Seconds of CPU."""

    reading: float
    values: float


class Graded(NamedTuple):
    """Generated queries in chunks, and the grades of their items.

    `grades` [n_items].
    """

    chunks: list[QueryChunk]
    grades: npt.NDArray[np.int64]

    def ndcg(self, weights: Floats, ranker: Scorer | None = None) -> float:
        """Mean NDCG of a ranker by true grades; `weights` [n_parameters].

        A linear one if not given.
        """
        ranker = linear_unless(ranker, len(weights))
        scores = [ranker.item_scores(weights, each.features) for each in self.chunks]
        offsets = np.arange(0, len(self.grades) + 1, N_ITEMS)
        return mean_ndcg(self.grades, np.concatenate(scores), offsets, CUTOFF)


def measure(*, quick: bool = False) -> list[Figure]:
    """The figures of this benchmark.

    Parameters
    ----------
    quick
        Fewer queries, only to see that it works.
    """
    n_queries = 60 if quick else N_QUERIES
    parts = read(n_queries)
    sides = generated(n_queries, rng=np.random.default_rng(1))
    linear = _beside(LinearRanker(N_FEATURES), np.zeros(N_FEATURES), sides)
    n_few = n_queries // FEW_OF
    few = generated(n_few, rng=np.random.default_rng(1))
    network = ranker_of("neural", N_FEATURES, [HIDDEN])
    start = network.initial_parameters(rng=np.random.default_rng(5))
    neural = _beside(network, start, few)
    size, few_size = (f"{n:,} x {N_ITEMS} x {N_FEATURES}" for n in (n_queries, n_few))
    return [
        alone_figure(f"reading statistics and features, {size}", parts.reading, CPU),
        alone_figure(
            f"weights: sums of items, features beside them, {size}", parts.values, CPU
        ),
        _epochs(f"{size}, linear", linear, (None, 1.0)),
        _quality("linear", linear),
        alone_figure(
            "weights and ten epochs together",
            parts.values + linear.ours_s,
            CPU,
            (GOAL_S, FLOOR_S),
        ),
        _epochs(f"{few_size}, {HIDDEN} sigmoid units", neural),
        _quality(f"{HIDDEN} sigmoid units", neural),
        *_each_loss(few),
    ]


class _Beside(NamedTuple):
    """Seconds of CPU and NDCG of both sides."""

    ours_s: float
    theirs_s: float
    ours: float
    theirs: float


def _beside(ranker: Ranker, start: Floats, sides: tuple[Graded, Graded]) -> _Beside:
    """Ours and the rival's epochs, of the same queries from the same start.

    `start` [n_parameters].
    """
    training, held_out = sides
    plan = TrainingPlan(CUTOFF, N_EPOCHS, patience=N_EPOCHS)
    # Compiled before it is timed.
    train_ranker(ranker, start, training.chunks[:1], held_out.chunks[:1], plan)
    ours_s, ours = timed(
        lambda: train_ranker(ranker, start, training.chunks, held_out.chunks, plan)
    )
    n_units = sum(ranker.sizes[1:-1])
    theirs_s, (theirs, _) = timed(
        lambda: train_in_numpy(start, training.chunks, held_out.chunks, plan, n_units)
    )
    quality = (held_out.ndcg(each, ranker) for each in (ours.weights, theirs))
    return _Beside(ours_s, theirs_s, *quality)


def read(n_queries: int) -> Parts:
    """What it takes to read statistics and features, and to make values of them."""
    templates = [
        template_of(Workload(IMPRESSIONS, policy, 1, N_ITEMS), 0)
        for policy in (DETERMINISTIC, LOGGED, PLACKETT_LUCE)
    ]
    records = [one for scope in islice(many(templates), n_queries) for one in scope]
    features = [*candidate_records(templates, n_queries)]
    reading = _Timer()
    with reading:
        known = FeatureRecords(features, FEATURES_HASH, N_FEATURES)
        statistics = Statistics(records)

    def columns() -> Iterator[Columns]:
        chunks = iter(statistics.columns())
        while True:
            with reading:
                chunk = next(chunks, None)
            if chunk is None:
                return
            yield chunk

    splits = split_groups(GROUPS)
    split_of = np.full(GROUPS, APART)
    split_of[list(splits.training)] = TRAINED_ON
    split_of[list(splits.selection)] = SELECTED_ON
    scaling = Scaling(
        CheckedWeights(np.zeros(N_FEATURES, np.float32), None, None), "min-max"
    )
    curve = position_curve(1.0 / np.arange(1.0, CUTOFF + 1.0))
    gathered = Gathered(scaling, known, splits, PooledSums(curve, split_of))
    before_s, started_s = reading.seconds, time.process_time()
    gathered.take(columns(), lambda _: None)
    for side in gathered.chunks(0.0):
        for number in range(len(side)):
            assert side[number].n_queries  # noqa: S101  what was read is measured
    spent_s = time.process_time() - started_s
    return Parts(reading.seconds, spent_s - (reading.seconds - before_s))


def candidate_records(
    templates: list[list[Record]], n_queries: int
) -> Iterator[Record]:
    """Features of as many queries as `many` makes of the templates."""
    rng = np.random.default_rng(3)
    kinds = []
    for template in templates:
        chunk = next(iter(Statistics(template).columns()))
        row = rng.random((N_ITEMS, N_FEATURES)).astype("<f4").tobytes()
        items = msgspec.msgpack.encode(chunk.items[0])
        value = candidates_value(items, row, N_FEATURES)
        kinds.append((chunk.names[0].candidate_set, value))
    for number in range(n_queries):
        name, value = kinds[number % len(kinds)]
        yield candidates_key(f"query {number}", name, FEATURES_HASH), value


def generated(n_queries: int, *, rng: np.random.Generator) -> tuple[Graded, Graded]:
    """Queries to learn from, and held out, whose grades features tell of.

    Features come in groups that go together, some of them mostly 0, within [0, 1] in
    each query; grades by their sum, one product of two, and noise; values as clicks
    give them, with a support that differs from item to item.
    """
    n_groups = N_FEATURES // 6
    mixed = rng.standard_normal((n_groups, N_FEATURES))
    mixed *= rng.random(mixed.shape) < 0.2
    truth = rng.standard_normal(N_FEATURES) * (rng.random(N_FEATURES) < 0.4)
    is_sparse = rng.random(N_FEATURES) < 0.4
    sides: tuple[list[Any], list[Any]] = [], []
    n_held_out = n_queries // HELD_OUT
    for side, n_of_side in zip(
        sides, (n_queries - n_held_out, n_held_out), strict=True
    ):
        for first in range(0, n_of_side, CHUNK):
            n = min(CHUNK, n_of_side - first)
            hidden = rng.standard_normal((n * N_ITEMS, n_groups))
            raw = hidden @ mixed + 0.7 * rng.standard_normal((n * N_ITEMS, N_FEATURES))
            raw[:, is_sparse] = np.maximum(raw[:, is_sparse] - 1.2, 0.0)
            side.append(_chunk(raw.reshape(n, N_ITEMS, -1), truth, n_of_side, rng))
    training, held_out = (
        Graded([chunk for chunk, _ in side], np.concatenate([each for _, each in side]))
        for side in sides
    )
    return training, held_out


def _chunk(
    raw: Floats, truth: Floats, n_of_side: int, rng: np.random.Generator
) -> tuple[QueryChunk, npt.NDArray[np.int64]]:
    """Queries of raw features [n_queries, n_items, n_features], and their grades."""
    least = raw.min(axis=1, keepdims=True)
    width = raw.max(axis=1, keepdims=True) - least
    features = (raw - least) / np.where(width > 0.0, width, 1.0)
    told = features @ truth
    told = (told - told.mean()) / told.std()
    told += 0.25 * np.tanh(3.0 * features[:, :, 0] * features[:, :, 1])
    told += 0.6 * rng.standard_normal(told.shape)
    grades = np.digitize(told.ravel(), GRADES_FROM)
    support = 100.0 * rng.lognormal(0.0, 1.0, len(grades))
    values = rng.poisson(RATES[grades] * support) / support
    is_kept = support >= 25.0
    chunk = QueryChunk(
        np.arange(0, len(grades) + 1, N_ITEMS),
        features.reshape(len(grades), -1).astype(np.float32),
        np.where(is_kept, values, 0.0),
        is_kept,
        np.full(len(raw), 1.0 / n_of_side),
    )
    return chunk, grades


class _Timer:
    """Seconds of CPU within its blocks."""

    def __init__(self) -> None:
        self.seconds = self._started_s = 0.0

    def __enter__(self) -> None:
        self._started_s = time.process_time()

    def __exit__(self, *_: object) -> None:
        self.seconds += time.process_time() - self._started_s


def _epochs(name: str, found: _Beside, bounds: Bounds = NO_BOUNDS) -> Figure:
    """Both sides of the epochs; void where they end with different quality."""
    is_equal = abs(found.ours - found.theirs) <= LARGEST_GAP
    return new_figure(
        f"{N_EPOCHS} epochs, {name}, a fifth held out, over numpy query by query",
        found.ours_s,
        CPU,
        found.theirs_s,
        found.theirs_s / found.ours_s if is_equal else None,
        bounds,
    )


def _quality(name: str, found: _Beside) -> Figure:
    return new_figure(
        f"{name}: NDCG@{CUTOFF} of held-out queries by true grades, after the epochs, "
        "over numpy",
        found.ours,
        "NDCG",
        found.theirs,
        found.ours / found.theirs,
    )


def _each_loss(sides: tuple[Graded, Graded]) -> list[Figure]:
    """Seconds of CPU for an epoch of each loss, and by the usual one of a network.

    What is timed beside the pass is the DCG of held-out queries, once.
    """
    linear = ranker_of("linear", N_FEATURES)
    networks = {
        f"{HIDDEN} {units} units": ranker_of(kind, N_FEATURES, [HIDDEN])
        for kind, units in (("neural", "sigmoid"), ("neural-relu", "rectified"))
    }
    cases = [
        *((f"linear, {loss}", linear, loss) for loss in LOSSES),
        *((f"{name}, {DEFAULT}", ranker, DEFAULT) for name, ranker in networks.items()),
    ]
    n_queries = sum(chunk.n_queries for chunk in sides[0].chunks)
    return [
        alone_figure(
            f"an epoch of {n_queries:,} queries, {name}",
            _epoch_s(ranker, sides, loss),
            CPU,
        )
        for name, ranker, loss in cases
    ]


def _epoch_s(ranker: Ranker, sides: tuple[Graded, Graded], loss: str) -> float:
    """The shorter of two epochs after the start, which compiles what is not yet."""
    start = ranker.initial_parameters(rng=np.random.default_rng(5))
    plan = TrainingPlan(epochs=2, loss=loss, patience=2)
    training, held_out = (side.chunks for side in sides)
    ends_s: list[float] = []
    train_ranker(
        ranker, start, training, held_out, plan,
        on_epoch=lambda _: ends_s.append(time.process_time()),
    )  # fmt: skip
    return float(np.diff(ends_s).min())
