"""A model trained as its kind is; where that is "selected" as each, and one is taken.

Weights of features need few clicks, and trees find more with many. Both are trained on
the same values of the same queries, and held-out queries choose, as they choose a loss.
The kind of the parent goes on from it, and the other one begins anew.
"""

from collections.abc import Callable

import msgspec
import numpy as np

from models.arrays import Floats
from models.losses.discounts import discounts
from models.training.chosen_loss import best_of_losses, worths_by_query
from models.training.ranker_training import Epoch
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.training import SELECTED
from rankstream.ranking.checked_weights import CheckedWeights
from rankstream.wire.envelope import TREES
from rankstream.wire.models.forests import NO_TREES, Forest
from streams.training.gathering import Gathered, Gathers
from streams.training.versions.either_ranker import EitherRanker, Side, columns_of
from streams.training.versions.fitted_ranker import Fitted, fitted_ranker, losses_tried
from streams.training.versions.forest_ranker import ForestRanker

Telling = Callable[[str], Callable[[Epoch], object]]
"""Gives what is told of each epoch of a kind."""


def fitted_kind(
    model: ModelSettings, parent: CheckedWeights, gathered: Gathered, telling: Telling
) -> Fitted:
    """Train a model as its kind is.

    Parameters
    ----------
    telling
        What it gives ends the training where it raises.

    Raises
    ------
    ValueError
        As `fitted_ranker` and `fitted_forest`.
    """
    if model.kind != SELECTED:
        return _of_kind(model, parent, gathered, telling)
    settings = model.training
    losses = settings.losses if settings.loss == SELECTED else [settings.loss]
    candidates = {
        f"{form.kind} by {loss}": _by(form, loss)
        for form in model.forms
        for loss in losses
    }
    sides = {
        form.kind: Side(
            gathered, columns_of(model.features, is_trees=form.kind == TREES)
        )
        for form in model.forms
    }
    judged = gathered.judging_losses(settings.least_support)
    by_rank = discounts(settings.cutoff)

    def trained(name: str) -> Fitted:
        form = candidates[name]
        fitted = _of_kind(form, parent, sides[form.kind], telling)
        return _either(model.features, parent, fitted)

    def worths_of(made: Fitted) -> Floats:
        return worths_by_query(made.ranker, made.trained.weights, judged, by_rank)

    found = best_of_losses([*candidates], trained, worths_of, judged)
    tried = [
        msgspec.structs.replace(
            each,
            loss=candidates[each.loss].training.loss,
            kind=candidates[each.loss].kind,
        )
        for each in losses_tried(found.selection, found.best_epochs)
    ]
    return found.trained._replace(tried=tried)


def _by(form: ModelSettings, loss: str) -> ModelSettings:
    plan = msgspec.structs.replace(form.training, loss=loss, losses=[])
    return msgspec.structs.replace(form, training=plan)


def _of_kind(
    model: ModelSettings,
    parent: CheckedWeights,
    gathered: Gathers,
    telling: Telling,
) -> Fitted:
    on_epoch = telling(model.kind)
    if model.kind == TREES:
        # Few models grow trees.
        from streams.training.versions.fitted_forest import (  # noqa: PLC0415
            fitted_forest,
        )

        return fitted_forest(model, _forest(parent), gathered, on_epoch)
    start = _start(model.features, parent)
    return fitted_ranker(model, start, gathered, on_epoch)


def _forest(parent: CheckedWeights) -> Forest:
    """Trees of the parent, none where it has weights."""
    return NO_TREES if parent.trees is None else parent.trees.forest


def _start(n_features: int, parent: CheckedWeights) -> Floats:
    """Weights of the parent, 0 where it has trees, [n_features]."""
    if parent.trees is not None:
        return np.zeros(n_features)
    return parent.weights.astype(np.float64)


def _either(n_features: int, parent: CheckedWeights, fitted: Fitted) -> Fitted:
    """The same as parameters of both sides, of which the parent is one too."""
    trees, own = ForestRanker(_forest(parent), NO_TREES), slice(0, n_features)
    if isinstance(fitted.ranker, ForestRanker):
        trees, own = fitted.ranker, slice(n_features, None)
    ranker = EitherRanker(n_features, trees)
    start = np.concatenate([_start(n_features, parent), trees.start])
    weights = np.zeros(ranker.n_parameters)
    weights[own] = fitted.trained.weights
    trained = fitted.trained._replace(weights=weights)
    return fitted._replace(trained=trained, ranker=ranker, start=start)
