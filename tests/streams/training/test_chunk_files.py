"""Queries in files: what comes back, where chunks end, and what values they have."""

from itertools import pairwise

import numpy as np
import pytest

from models.estimators.bias_curve import position_curve
from models.estimators.intervention_aware import (
    ItemSums,
    estimates,
    training_values,
)
from streams.training.chunk_files import ChunkFile, SelectionChunks, TrainingChunks
from streams.training.item_tables import (
    N_SPLITS,
    N_TABLES,
    SELECTED_ON,
    TRAINED_ON,
    PooledSums,
)

N_FEATURES = 3
SUMS = PooledSums(position_curve([1.0]), np.zeros(1, np.int64))
LEAST = 4.0


def queries(n, rng):
    """Features, sums and lists of queries of one to six items."""
    for _ in range(n):
        n_items = int(rng.integers(1, 7))
        features = rng.random((n_items, N_FEATURES)).astype(np.float32)
        sums = rng.random((N_TABLES, N_SPLITS, n_items)) * 10.0
        sums[1, :, rng.random(n_items) < 0.2] = 0.0
        yield features, sums, rng.integers(1, 50, N_SPLITS)


def written(found, chunk_bytes):
    """A file of these queries."""
    file = ChunkFile(N_FEATURES, SUMS, chunk_bytes)
    for each in found:
        file.add(*each)
    file.settle()
    return file


@pytest.mark.parametrize("chunk_bytes", [1, 200, 1 << 20])
def test_chunks_hold_all_queries_with_their_values(chunk_bytes):
    """In their order, however many of them a chunk has room for."""
    found = [*queries(40, np.random.default_rng(1))]
    file = written(found, chunk_bytes)
    n_impressions = 12_345
    trained = TrainingChunks(file, n_impressions, LEAST)
    judged = SelectionChunks((file,), LEAST)
    assert (file.n_queries, len(trained)) == (40, len(judged))
    assert (len(file) == 40) == (chunk_bytes == 1)
    assert (len(file) == 1) == (chunk_bytes == 1 << 20)
    for source, split in ((trained, TRAINED_ON), (judged, SELECTED_ON)):
        place, total = 0, sum(int(each[2][split]) for each in found)
        for number in range(len(source)):
            chunk = source[number]
            assert chunk.features.nbytes <= max(chunk_bytes, 6 * 4 * N_FEATURES)
            ends = chunk.offsets.tolist()
            for i, (begin, end) in enumerate(pairwise(ends)):
                features, sums, counts = found[place]
                assert chunk.features[begin:end].tolist() == features.tolist()
                of_split = ItemSums(*sums[:, [split]])
                values = (
                    training_values(of_split, n_impressions)
                    if split == TRAINED_ON
                    else estimates(of_split).values
                )
                is_kept = sums[1, split] >= LEAST
                assert chunk.is_kept[begin:end].tolist() == is_kept.tolist()
                expected = np.where(is_kept, values, 0.0)
                assert chunk.values[begin:end].tolist() == expected.tolist()
                assert chunk.weights[i] == counts[split] / total
                place += 1
        assert place == 40
        weights = np.concatenate([source[i].weights for i in range(len(source))])
        assert weights.sum() == pytest.approx(1.0)


def test_items_without_support_are_never_kept():
    """Even where no support is asked for: they have a value only by being clipped."""
    file = written(queries(30, np.random.default_rng(2)), 1 << 20)
    chunk = TrainingChunks(file, 10, 0.0)[0]
    support = SUMS.support(file.stored(0).tables[:, TRAINED_ON])
    assert 0 < (support == 0).sum() < len(support)
    assert chunk.is_kept.tolist() == (support > 0).tolist()


def test_both_sides_are_judged_together():
    """Their weights are shares of all lists of the selection groups."""
    sides = [written(queries(20, np.random.default_rng(x)), 300) for x in (3, 4)]
    judged = SelectionChunks((sides[0], sides[1]), LEAST)
    assert len(judged) == len(sides[0]) + len(sides[1])
    weights = np.concatenate([judged[i].weights for i in range(len(judged))])
    assert len(weights) == 40
    assert weights.sum() == pytest.approx(1.0)
    counts = sum(each.n_impressions[SELECTED_ON] for each in sides)
    assert judged.n_impressions == counts
