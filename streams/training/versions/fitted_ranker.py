"""A ranker trained on what was gathered, by one loss or the best of several."""

import math
from collections.abc import Callable
from typing import NamedTuple

from models.arrays import Floats
from models.losses.selection import Selection
from models.rankers.ranker import Ranker, Scorer
from models.rankers.registry import ranker_of
from models.training.chosen_loss import train_by_chosen_loss
from models.training.ranker_training import Epoch, Trained, TrainingPlan, train_ranker
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.training import SELECTED
from rankstream.wire.models.training import LossTried
from streams.training.gathering import Gathers


class Fitted(NamedTuple):
    """What training gave.

    Parameters
    ----------
    trained
        By the loss that was taken.
    loss
        Its name.
    tried
        All losses there were to choose from; none where one was set.
    ranker
        Whose parameters those that were trained are.
    start : [n_parameters]
        The parent as it was served, as parameters of the same.
    """

    trained: Trained
    loss: str
    tried: list[LossTried]
    ranker: Scorer
    start: Floats

    @property
    def best_epoch(self) -> int:
        """The epoch, or round, that was taken."""
        return self.trained.best_epoch


def ranker_of_model(model: ModelSettings) -> Ranker:
    """The ranker whose parameters a model's versions have."""
    return ranker_of(model.kind, model.features, model.hidden)


def fitted_ranker(
    model: ModelSettings,
    start: Floats,
    gathered: Gathers,
    on_epoch: Callable[[Epoch], object],
) -> Fitted:
    """Train by the loss of the settings, or choose one of several.

    Those that choose are the held-out queries, whose values are taken as they are:
    values that weights come from are raised where an item was hardly looked at, and
    would choose with a bias.

    Parameters
    ----------
    start : [n_parameters]
        Of the parent.

    Raises
    ------
    ValueError
        As `models.training.ranker_training.train_ranker`.
    """
    ranker, settings = ranker_of_model(model), model.training
    training, held_out = gathered.chunks(settings.least_support)
    names = {*TrainingPlan.__dataclass_fields__} - {"loss"}
    plan = TrainingPlan(**{name: getattr(settings, name) for name in names})
    if settings.loss != SELECTED:
        trained = train_ranker(
            ranker,
            start,
            training,
            held_out,
            plan.by(settings.loss),
            on_epoch=on_epoch,
        )
        return Fitted(trained, settings.loss, [], ranker, start)
    found = train_by_chosen_loss(
        ranker,
        start,
        training,
        held_out,
        plan,
        settings.losses,
        judged=gathered.judging_losses(settings.least_support),
        on_epoch=on_epoch,
    )
    tried = losses_tried(found.selection, found.best_epochs)
    return Fitted(found.trained, found.loss, tried, ranker, start)


def losses_tried(selection: Selection, best_epochs: dict[str, int]) -> list[LossTried]:
    """The record of each loss that there was to choose from."""
    columns = (
        selection.values,
        selection.errors,
        selection.behind,
        selection.behind_errors,
    )
    rows = zip(selection.names, *(each.tolist() for each in columns), strict=True)
    return [
        LossTried(
            loss, best_epochs[loss], worth, _known(error), behind, _known(behind_error)
        )
        for loss, worth, error, behind, behind_error in rows
    ]


def _known(error: float) -> float | None:
    return None if math.isnan(error) else error
