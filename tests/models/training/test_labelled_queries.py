"""Labels are trained from as values are."""

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.losses.gains import binary_gains, exponential_gains
from models.rankers.registry import ranker_of
from models.training.labelled_queries import labelled_queries
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, mean_worth, train_ranker
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
    """Judged by queries of neither."""
    ranker = ranker_of(kind, 5, [] if kind == "linear" else [8])
    held_out, test = labelled(100, 5), labelled(200, 9)
    start = ranker.initial_parameters(rng=SEED(1))
    many, few = (
        mean_worth(
            train_ranker(ranker, start, [labelled(n, 0)], [held_out], PLAN).weights,
            [test],
            discounts(5),
            ranker,
        )
        for n in (300, 2)
    )

    assert many > few


def test_what_labels_cannot_tell_is_refused_in_words() -> None:
    """Labels beyond the gains, rows that do not fit, and no query."""
    features, offsets = np.zeros((3, 2), np.float32), np.array([0, 1, 3])
    gains = binary_gains(3, 2)
    for label in (3, -1):
        with pytest.raises(ValueError, match=r"labels must lie in 0\.\.2"):
            labelled_queries(features, np.array([0, label, 0]), offsets, gains=gains)
    with pytest.raises(ValueError, match="gains must be a finite number"):
        labelled_queries(
            features, np.array([0, 1, 0]), offsets, gains=np.array([0.0, np.inf])
        )
    with pytest.raises(ValueError, match="must be of the same items"):
        labelled_queries(features, np.array([0, 1]), offsets, gains=GAINS)
    with pytest.raises(ValueError, match="of one query or more"):
        labelled_queries(features[:0], np.array([], int), np.array([0]), gains=GAINS)
