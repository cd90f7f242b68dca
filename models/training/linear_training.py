"""Linear rankers trained by a loss, through `models.training.ranker_training`.

The weights are one for each feature, and the start says how many there are.
"""

from collections.abc import Callable

from models.arrays import Floats
from models.losses.discounts import discounts
from models.rankers.registry import LinearRanker
from models.training.query_chunk import ChunkSource
from models.training.ranker_training import (
    Epoch,
    Trained,
    TrainingDiverged,
    TrainingPlan,
    mean_worth,
    train_ranker,
)

__all__ = [
    "Epoch",
    "Trained",
    "TrainingDiverged",
    "TrainingPlan",
    "mean_dcg",
    "train",
]


def train(
    start: Floats,
    training: ChunkSource,
    held_out: ChunkSource,
    plan: TrainingPlan,
    *,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained:
    """Train a linear ranker from where it starts; `start` [n_features].

    Parameters and errors are those of `models.training.ranker_training.train_ranker`.
    """
    ranker = LinearRanker(len(start))
    return train_ranker(ranker, start, training, held_out, plan, on_epoch=on_epoch)


def mean_dcg(weights: Floats, chunks: ChunkSource, cutoff: int) -> float:
    """Estimated DCG of a linear ranker; see `mean_worth`.

    Parameters
    ----------
    weights : [n_features]
    cutoff
        Ranks that count.
    """
    return mean_worth(weights, chunks, discounts(cutoff))
