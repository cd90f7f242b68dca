"""Queries of the demonstration, and rankers whose weights are known."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from producers.formats.letor import LetorData, generated_queries, read_letor
from rankstream.ranking.scoring import normalised, scores_of

Floats = npt.NDArray[np.floating]
Weights = npt.NDArray[np.float32]


def queries_of(
    path: Path | None, rng: np.random.Generator
) -> tuple[LetorData, LetorData]:
    """Queries to learn from, and a fifth held out.

    Raises
    ------
    ValueError
        Where there are fewer than two.
    FileUnreadable
        Where the file does not parse.
    """
    if path is None:
        whole = generated_queries(n_queries=250, n_documents=20, n_features=16, rng=rng)
    else:
        whole = read_letor(path)
    n_queries = len(whole.query_ids)
    if n_queries < 2:
        raise ValueError(f"the data must hold at least 2 queries; got {n_queries}")
    order = rng.permutation(n_queries)
    n_test = max(1, n_queries // 5)
    return _chosen(whole, order[n_test:]), _chosen(whole, order[:n_test])


def _chosen(data: LetorData, queries: npt.NDArray[np.int64]) -> LetorData:
    bounds = bounds_of(data)
    rows = np.concatenate([np.arange(*bounds[query]) for query in queries.tolist()])
    sizes = [bounds[query][1] - bounds[query][0] for query in queries.tolist()]
    return LetorData(
        [data.query_ids[query] for query in queries.tolist()],
        data.labels[rows],
        data.features[rows],
        np.concatenate(([0], np.cumsum(sizes))),
        data.first_feature,
    )


def bounds_of(data: LetorData) -> list[tuple[int, int]]:
    """The rows of each query: where they begin and end."""
    offsets = data.offsets.tolist()
    return list(pairwise(offsets))


def scores_by_query(data: LetorData, weights: Weights) -> list[Floats]:
    """Scores [n_documents] of each query, by linear `weights` [n_features]."""
    return [
        scores_of(normalised(data.features[start:end], "min-max"), weights, [])
        for start, end in bounds_of(data)
    ]


def production_weights(data: LetorData) -> Weights:
    """A ranker such as one has before there are clicks: fitted to three queries."""
    bounds = bounds_of(data)[:3]
    features = np.concatenate(
        [normalised(data.features[start:end], "min-max") for start, end in bounds]
    ).astype(np.float64)
    labels = data.labels[: bounds[-1][1]].astype(np.float64)
    penalty = 3.0 * np.eye(features.shape[1])
    weights = np.linalg.solve(
        features.T @ features + penalty, features.T @ (labels - labels.mean())
    )
    return weights.astype(np.float32)
