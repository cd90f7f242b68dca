"""A ranker trained by each of several losses, of which held-out queries choose one.

No loss is best everywhere, and their values cannot be compared. So rankers are, by the
estimated worth of their rankings of queries that none was trained on.

References
----------
Oosterhuis & de Rijke (SIGIR 2020), section 4.4: unbiased loss selection.
"""

from collections.abc import Callable, Sequence
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from models.arrays import Floats
from models.losses.discounts import discounts
from models.losses.ranking_worth import query_worths
from models.losses.selection import Selection, best_setting
from models.rankers.ranker import Ranker, Scorer
from models.training.query_chunk import ChunkSource
from models.training.ranker_training import (
    Epoch,
    Trained,
    TrainingDiverged,
    TrainingPlan,
    train_ranker,
)


class Made(Protocol):
    """What a training by one loss gave."""

    @property
    def best_epoch(self) -> int:
        """The epoch that was taken."""


Given = TypeVar("Given", bound=Made)


class ChosenLoss(NamedTuple, Generic[Given]):
    """What training by several losses gave.

    Parameters
    ----------
    loss
        The one whose ranker is worth most.
    trained
        What it gave.
    best_epochs
        Loss -> number of the epoch that was taken, of all that came to something.
    selection
        What each ranker is worth, and how far it is behind.
    """

    loss: str
    trained: Given
    best_epochs: dict[str, int]
    selection: Selection


def train_by_chosen_loss(  # noqa: PLR0913  all that a training depends on
    ranker: Ranker,
    start: Floats,
    training: ChunkSource,
    held_out: ChunkSource,
    plan: TrainingPlan,
    losses: Sequence[str],
    *,
    judged: ChunkSource | None = None,
    worths: Floats | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> ChosenLoss[Trained]:
    """Train a ranker by each loss from the same start, and keep the best.

    One that diverges is left out.

    Parameters
    ----------
    start : [n_parameters]
        Where each training begins.
    losses
        Names, each once; `plan.loss` is not looked at. Of equal ones the first is kept.
    judged
        Queries that choose: those held out if not given. Values that are raised or
        clipped, as those that weights come from may be, choose with a bias.
    worths : [n_ranks]
        As `train_ranker`.
    on_epoch
        As `train_ranker`; epochs of one loss follow those of another.

    Raises
    ------
    TrainingDiverged
        Where all do.
    ValueError
        Where losses are none or not apart, or as `train_ranker`.
    """
    judged = held_out if judged is None else judged
    by_rank = discounts(plan.cutoff) if worths is None else worths

    def trained_by(loss: str) -> Trained:
        return train_ranker(
            ranker,
            start,
            training,
            held_out,
            plan.by(loss),
            worths=worths,
            on_epoch=on_epoch,
        )

    def worths_of(trained: Trained) -> Floats:
        return worths_by_query(ranker, trained.weights, judged, by_rank)

    return best_of_losses(losses, trained_by, worths_of, judged)


def best_of_losses(
    losses: Sequence[str],
    train: Callable[[str], Given],
    worths_of: Callable[[Given], Floats],
    judged: ChunkSource,
) -> ChosenLoss[Given]:
    """What is worth most of what trainings by each loss give.

    One that diverges is left out.

    Parameters
    ----------
    losses
        Names, each once. Of equal ones the first is kept.
    train
        Trains by a loss.
    worths_of
        The worth of each query's ranking by what a training gave, [n_queries].
    judged
        These queries.

    Raises
    ------
    TrainingDiverged
        Where all do.
    ValueError
        Where losses are none or not apart, or as `train`.
    """
    if not losses or len(set(losses)) < len(losses):
        raise ValueError(f"losses must be names, each once; got {list(losses)}")
    made: dict[str, Given] = {}
    fallen: list[TrainingDiverged] = []

    def worths_by(loss: str) -> Floats | None:
        try:
            made[loss] = train(loss)
        except TrainingDiverged as error:
            fallen.append(error)
            return None
        return worths_of(made[loss])

    by_name = {loss: loss for loss in losses}
    shares = [judged[number].weights for number in range(len(judged))]
    try:
        chosen, selection = best_setting(by_name, worths_by, np.concatenate(shares))
    except ValueError:
        if not made and fallen:
            raise fallen[0] from None
        raise
    best_epochs = {loss: each.best_epoch for loss, each in made.items()}
    return ChosenLoss(chosen, made[chosen], best_epochs, selection)


def worths_by_query(
    ranker: Scorer, parameters: Floats, chunks: ChunkSource, worths: Floats
) -> Floats:
    """The estimated worth of each query's ranking, [n_queries], chunk after chunk.

    Parameters
    ----------
    parameters : [n_parameters]
    worths : [n_ranks]
        See `models.losses.ranking_worth.query_worths`.
    """
    found = []
    for number in range(len(chunks)):
        chunk = chunks[number]
        scores = ranker.item_scores(parameters, chunk.features)
        found.append(
            query_worths(scores, chunk.values, chunk.is_kept, chunk.offsets, worths)
        )
    return np.concatenate(found)
