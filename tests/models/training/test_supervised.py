"""Labels are trained from as values are, and few of them make a poorer ranker."""

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.losses.gains import binary_gains, exponential_gains
from models.rankers.registry import ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, mean_worth, train_ranker
from models.training.supervised import (
    drawn_queries,
    labelled_queries,
    production_ranker,
    train_on_labels,
)
from tests.models.training.chunks import queries

TRUTH = np.array([1.0, -2.0, 0.0, 0.5, 1.5])
GAINS = exponential_gains(5)
PLAN = TrainingPlan(epochs=15, learning_rate=0.03)
SEED = np.random.default_rng


def labelled(n: int, seed: int) -> QueryChunk:
    """Queries whose labels follow features and noise."""
    chunk = queries(n, TRUTH, SEED(seed))
    noisy = chunk.features @ TRUTH + 0.5 * SEED(seed + 1).standard_normal(
        len(chunk.values)
    )
    labels = np.digitize(noisy, [0.0, 0.7, 1.4, 2.1])
    return labelled_queries(chunk.features, labels, chunk.offsets, gains=GAINS)


def test_labels_are_worth_their_gains() -> None:
    """Queries weigh the same, and all items are known."""
    features = np.zeros((5, 2))
    chunk = labelled_queries(
        features, np.array([0, 2, 1, 4, 0]), np.array([0, 3, 5]), gains=GAINS
    )

    assert chunk.values.tolist() == [0.0, 3.0, 1.0, 15.0, 0.0]
    assert chunk.weights.tolist() == [0.5, 0.5]
    assert chunk.is_kept.all()
    assert chunk.features.dtype == np.float32


@pytest.mark.parametrize("kind", ["linear", "neural"])
def test_all_labels_make_a_better_ranker_than_few(kind: str) -> None:
    """The skyline, and the ranker in production, by queries of neither."""
    ranker = ranker_of(kind, 5, [] if kind == "linear" else [8])
    training, held_out, test = labelled(300, 0), labelled(100, 5), labelled(200, 9)
    full = train_on_labels(ranker, training, held_out, PLAN, rng=SEED(1))
    worth = [
        mean_worth(
            production_ranker(ranker, training, held_out, PLAN, rng=SEED(seed)).weights,
            [test], discounts(5), ranker,
        )
        for seed in range(4)
    ]  # fmt: skip
    start = ranker.initial_parameters(rng=SEED(1))
    by_hand = train_ranker(ranker, start, [training], [held_out], PLAN)

    assert by_hand.weights.tobytes() == full.weights.tobytes()
    assert mean_worth(full.weights, [test], discounts(5), ranker) > np.mean(worth)


@pytest.mark.parametrize(("share", "n"), [(0.01, 3), (0.07, 21), (1e-9, 1), (1.0, 294)])
def test_a_share_of_the_queries_is_drawn_of_those_that_tell(
    share: float, n: int
) -> None:
    """Rounded up, each with its items."""
    chunk = labelled(300, 0)
    level = chunk.values.copy()
    level[: chunk.offsets[5]] = 1.0
    chunk = chunk._replace(values=level)
    found = drawn_queries(chunk, share, rng=SEED(3))
    kept = {chunk.features[begin].tobytes() for begin in chunk.offsets[:5]}
    value_of = {
        row.tobytes(): value
        for row, value in zip(chunk.features, chunk.values, strict=True)
    }

    assert found.n_queries == n
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.offsets[-1] == len(found.features) == len(found.values)
    assert [value_of[row.tobytes()] for row in found.features] == found.values.tolist()
    assert not kept & {found.features[begin].tobytes() for begin in found.offsets[:-1]}


def test_queries_are_drawn_evenly_of_either_side() -> None:
    """Each as likely as any other, those that stop a production ranker too."""
    chunk = labelled(20, 0)
    firsts = {chunk.features[begin].tobytes(): 0 for begin in chunk.offsets[:-1]}
    for seed in range(200):
        found = drawn_queries(chunk, 0.25, rng=SEED(seed))
        for begin in found.offsets[:-1]:
            firsts[found.features[begin].tobytes()] += 1
    # 50 of 200 on average, 6.1 standard deviation.
    assert 25 < min(firsts.values()) <= max(firsts.values()) < 75

    ranker = ranker_of("linear", 5)
    training, held_out = labelled(300, 0), labelled(100, 5)
    made = production_ranker(ranker, training, held_out, PLAN, rng=SEED(3))
    rng = SEED(3)
    few, stops = (drawn_queries(one, 0.01, rng=rng) for one in (training, held_out))
    by_hand = train_on_labels(ranker, few, stops, PLAN, rng=rng)
    assert stops.n_queries == 1
    assert (made.epochs, made.best_epoch) == (by_hand.epochs, by_hand.best_epoch)


def test_what_labels_cannot_tell_is_refused_in_words() -> None:
    """No relevant document, labels beyond the gains, and rows that do not fit."""
    features, offsets = np.zeros((3, 2), np.float32), np.array([0, 1, 3])
    ranker = ranker_of("linear", 2)
    nothing = labelled_queries(
        features, np.array([1, 0, 0]), offsets, gains=binary_gains(3, 2)
    )
    with pytest.raises(ValueError, match="must have items of different gains"):
        train_on_labels(ranker, nothing, nothing, PLAN, rng=SEED(0))
    # One document alone is in no order, however relevant it is.
    single = labelled_queries(
        features, np.array([2, 0, 0]), offsets, gains=binary_gains(3, 2)
    )
    with pytest.raises(ValueError, match="to draw from"):
        production_ranker(ranker, single, single, PLAN, rng=SEED(0))
    with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2"):
        labelled_queries(
            features, np.array([0, 3, 0]), offsets, gains=binary_gains(3, 2)
        )
    with pytest.raises(ValueError, match="must be of the same items"):
        labelled_queries(features, np.array([0, 1]), offsets, gains=GAINS)
    with pytest.raises(ValueError, match="of one query or more"):
        labelled_queries(features[:0], np.array([], int), np.array([0]), gains=GAINS)
    with pytest.raises(ValueError, match=r"share must lie in \(0, 1\]"):
        drawn_queries(labelled(9, 0), 0.0, rng=SEED(0))
