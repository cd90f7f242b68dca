"""Trees boosted on what was gathered, by one loss or the best of several."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.losses.discounts import discounts
from models.training.boosting import Boosted, boosted
from models.training.boosting_plan import BoostingPlan
from models.training.chosen_loss import best_of_losses, worths_by_query
from models.training.ranker_training import Epoch, Trained
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.training import SELECTED
from rankstream.ranking.tree_scoring import TreeScorer
from rankstream.wire.envelope import names_of
from rankstream.wire.models.forests import NO_TREES, Forest
from streams.training.gathering import Gathers
from streams.training.versions.fitted_ranker import Fitted, losses_tried
from streams.training.versions.forest_ranker import ForestRanker, forest_of

SIGNS = {"rising": 1, "falling": -1}


class _Grown(NamedTuple):
    """What boosting by one loss gave, as a ranker; `weights` [n_parameters]."""

    boosted: Boosted
    ranker: ForestRanker
    weights: Floats

    @property
    def best_epoch(self) -> int:
        """The round that was taken."""
        return self.boosted.best_epoch

    def fitted(self) -> Trained:
        """The same as any ranker."""
        return Trained(self.weights, self.best_epoch, self.boosted.epochs)


def fitted_forest(
    model: ModelSettings,
    parent: Forest,
    gathered: Gathers,
    on_epoch: Callable[[Epoch], object],
) -> Fitted:
    """Add trees to those of the parent, or begin anew where they would be too many.

    Losses are chosen from as
    `streams.training.versions.fitted_ranker.fitted_ranker` does.

    Raises
    ------
    ValueError
        As `models.training.boosting.boosted`.
    """
    settings = model.training
    plan = plan_of(model)
    is_anew = len(parent.roots) + plan.rounds > settings.trees.rounds_at_most
    training, held_out = gathered.chunks(settings.least_support)
    start = TreeScorer(parent)

    def grown_by(loss: str) -> _Grown:
        found = boosted(
            start.scores,
            training,
            held_out,
            plan.by(loss),
            is_anew=is_anew,
            on_epoch=on_epoch,
        )
        return _beside(parent, found)

    if settings.loss != SELECTED:
        one = grown_by(settings.loss)
        return Fitted(one.fitted(), settings.loss, [], one.ranker, one.ranker.start)
    judged = gathered.judging_losses(settings.least_support)
    by_rank = discounts(plan.cutoff)
    found = best_of_losses(
        settings.losses,
        grown_by,
        lambda made: worths_by_query(made.ranker, made.weights, judged, by_rank),
        judged,
    )
    best, tried = found.trained, losses_tried(found.selection, found.best_epochs)
    return Fitted(best.fitted(), found.loss, tried, best.ranker, best.ranker.start)


def _beside(parent: Forest, found: Boosted) -> _Grown:
    """What is served: the parent's trees, as they were stretched, and those grown."""
    if not found.best_epoch:
        return _Grown(found, ForestRanker(parent, NO_TREES), parent.leaves)
    grown = forest_of(found.trees)
    leaves = np.concatenate([found.start_scale * parent.leaves, grown.leaves])
    return _Grown(found, ForestRanker(parent, grown), leaves)


def plan_of(model: ModelSettings) -> BoostingPlan:
    """How a model's settings have it boosted; its loss is left as by default."""
    settings, trees = model.training, model.training.trees
    signs: tuple[int, ...] = ()
    if trees.monotone:
        names = names_of(model.feature_names or model.features)
        signs = tuple(SIGNS.get(trees.monotone.get(name, ""), 0) for name in names)
    return BoostingPlan(
        cutoff=settings.cutoff,
        rounds=trees.rounds,
        patience=trees.patience,
        least_gain=settings.least_gain,
        seed=settings.seed,
        leaves=trees.leaves,
        learning_rate=trees.learning_rate,
        least_items=trees.least_items,
        share_of_features=trees.share_of_features,
        share_of_queries=trees.share_of_queries,
        regularisation=trees.regularisation,
        monotone=signs,
        is_zero_missing=trees.missing == "zero",
    )
