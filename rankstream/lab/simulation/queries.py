"""Queries of a simulation: those to learn from, and others to measure with."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from models.evaluation.ndcg import mean_ndcg
from producers.formats.letor import LetorData, generated_queries, read_fold, read_letor
from rankstream.ranking.checked_weights import checked_weights
from rankstream.ranking.scoring import normalised, shifted
from rankstream.snapshots import Snapshot

MOST_GRADES = 5


def queries_of(
    data: Path | None, *, fold: int, seed: int
) -> tuple[LetorData, LetorData]:
    """Queries to learn from, and others to measure with.

    Parameters
    ----------
    data
        A LETOR file or a folder of folds; None for made-up queries.
    fold
        Of a folder, from 1.
    seed
        Of made-up queries.

    Raises
    ------
    ValueError
        Where there are fewer than two queries, or a label that users do not know.
    FileUnreadable
        Where the data do not parse.
    """
    train, test = _split(data, fold, seed)
    n_grades = n_grades_of(train, test)
    if n_grades > MOST_GRADES:
        raise ValueError(
            f"labels of {data} must be below {MOST_GRADES}, as users know no "
            f"other grades; got {n_grades - 1}"
        )
    return train, test


def n_grades_of(*data: LetorData) -> int:
    """One more than the highest label."""
    return int(max(each.labels.max() for each in data)) + 1


def _split(path: Path | None, fold: int, seed: int) -> tuple[LetorData, LetorData]:
    if path is None:
        rng = np.random.default_rng(seed)
        # One mixture of features must rule both splits.
        whole = generated_queries(n_queries=250, n_documents=20, n_features=16, rng=rng)
        return _between(whole, 0, 200), _between(whole, 200, 250)
    if path.is_dir():
        found = read_fold(path, fold)
        return found.train, found.test
    data = read_letor(path)
    n_queries = len(data.query_ids)
    if n_queries < 2:
        raise ValueError(
            f"{path} must hold at least 2 queries, one of them to measure "
            f"with; got {n_queries}"
        )
    n_test = max(1, n_queries // 5)
    return _between(data, 0, n_queries - n_test), _between(
        data, n_queries - n_test, n_queries
    )


def _between(data: LetorData, first: int, last: int) -> LetorData:
    rows = slice(data.offsets[first], data.offsets[last])
    return LetorData(
        data.query_ids[first:last],
        data.labels[rows],
        data.features[rows],
        data.offsets[first : last + 1] - data.offsets[first],
        data.first_feature,
    )


def ndcg_of(learned: Snapshot, test: LetorData, cutoff: int) -> float:
    """Mean NDCG of what was learned."""
    numbers = checked_weights(learned, None)
    bounds = test.offsets.tolist()
    moved = shifted(test.features, numbers.shift, numbers.scale)
    scores = [
        numbers.scores(normalised(moved[start:end], learned.normalisation), learned)
        for start, end in pairwise(bounds)
    ]
    flat = np.concatenate(scores).astype(np.float64)
    return mean_ndcg(test.labels, flat, test.offsets, cutoff)
