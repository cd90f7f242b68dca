"""Scores and trainings of trees, beside LightGBM's own."""

import time
import warnings
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from rankstream.lab.benchmarks.harness import (
    Figure,
    beside_figure,
    in_turns,
    new_figure,
    rate,
)
from rankstream.lab.benchmarks.trainings.trees_training import training_figure
from rankstream.operations.tree_files.lightgbm_text import read_lightgbm
from rankstream.ranking.tree_scoring import TreeScorer

if TYPE_CHECKING:
    from lightgbm import Booster

N_DOCUMENTS, N_FEATURES, N_TREES, N_LEAVES = 100, 136, 300, 31
N_ROWS = 20_000
SIZE = f"{N_DOCUMENTS} documents, {N_TREES} trees of {N_LEAVES} leaves"

MOST_MS = (5.0, 15.0)
"""A goal and a floor of numpy alone."""


def measure(*, quick: bool = False) -> list[Figure]:
    """The compiled function beside LightGBM, numpy alone, and a training."""
    booster = _booster(10 if quick else N_TREES)
    forest = read_lightgbm(booster.model_to_string().encode()).forest
    scorer = TreeScorer(forest)
    features = _features(np.random.default_rng(2), N_DOCUMENTS)

    def theirs() -> npt.NDArray[np.float64]:
        found = booster.predict(features, raw_score=True, num_threads=1)
        return np.asarray(found, np.float64)

    def ours() -> npt.NDArray[np.float64]:
        return scorer.scores(features)

    # Of the processor: neither side may use a second thread.
    clock, n_runs = time.process_time, 3 if quick else 9
    pairs = in_turns(
        lambda: rate(ours, 50, clock), lambda: rate(theirs, 50, clock), n_runs
    )
    in_numpy = min(
        1_000.0 / rate(lambda: scorer.scores_in_numpy(features), 10, clock)
        for _ in range(n_runs)
    )
    is_same = bool(np.abs(ours() - theirs()).max() < 1e-12)
    return [
        beside_figure(f"scores, {SIZE}", "lists/s", pairs, (1.0, 0.5), is_same=is_same),
        new_figure(
            f"scores in numpy alone, {SIZE}",
            in_numpy, "ms", None, in_numpy, MOST_MS, less_is_better=True,
        ),
        training_figure(quick=quick),
    ]  # fmt: skip


def _features(rng: np.random.Generator, n: int) -> npt.NDArray[np.float32]:
    return rng.standard_normal((n, N_FEATURES)).astype(np.float32)


def _booster(n_trees: int) -> "Booster":
    import lightgbm  # noqa: PLC0415  of the extra `trees`

    rng = np.random.default_rng(1)
    features = _features(rng, N_ROWS)
    labels = features[:, :20].sum(axis=1) + features[:, 5] * features[:, 7]
    plan = {
        "objective": "regression", "num_leaves": N_LEAVES, "num_threads": 1,
        "deterministic": True, "seed": 1, "verbose": -1,
    }  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lightgbm.train(plan, lightgbm.Dataset(features, labels), n_trees)
