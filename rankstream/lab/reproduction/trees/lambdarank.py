"""LightGBM's own `lambdarank`, on labels, and on clicks with its position correction.

On clicks each distinct list is a group, a click its label and the rank its position;
weights say how often it was. That is what its documentation asks for, and equal to a
group for each list that was shown, but that bins and leaves count distinct rows.

References
----------
LightGBM's documentation, "Support for Position Bias Treatment": an additive bias of
each position is fitted beside the trees, and left out where they rank.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from models.arrays import Floats, Singles
from rankstream.lab.closed_loops.world import World
from rankstream.lab.reproduction.trees.click_lists import ClickLists
from rankstream.lab.reproduction.trees.fitting import Trained
from rankstream.lab.reproduction.trees.plan import PLAN, ROUNDS_ON_CLICKS

if TYPE_CHECKING:
    from lightgbm import Booster

OPTIONS: dict[str, Any] = {
    "objective": "lambdarank",
    "metric": "ndcg",
    "eval_at": [PLAN.cutoff],
    "lambdarank_truncation_level": PLAN.cutoff,
    "num_leaves": PLAN.leaves,
    "learning_rate": PLAN.learning_rate,
    "min_data_in_leaf": PLAN.least_items,
    "num_threads": 1,
    "deterministic": True,
    "force_col_wise": True,
    "verbosity": -1,
}


def on_labels(train: World, validation: World) -> Trained:
    """Trees by labels, to the best round by NDCG of validation queries."""
    import lightgbm  # noqa: PLC0415  of the extra `trees`

    made, held_out = (
        lightgbm.Dataset(
            world.features, world.labels, group=np.diff(world.offsets), params=OPTIONS
        )
        for world in (train, validation)
    )
    stop = lightgbm.early_stopping(PLAN.patience, verbose=False)
    booster = lightgbm.train(
        OPTIONS,
        made,
        PLAN.rounds,
        valid_sets=[held_out.set_reference(made)],
        callbacks=[stop],
    )
    return _trained(booster, booster.best_iteration)


def on_clicks(world: World, lists: ClickLists) -> Trained:
    """Trees by lists of the documents of a world."""
    import lightgbm  # noqa: PLC0415  of the extra `trees`

    sizes = np.diff(lists.offsets)
    made = lightgbm.Dataset(
        world.features[lists.documents],
        lists.clicked.astype(np.int32),
        group=sizes,
        weight=np.repeat(lists.times / lists.times.mean(), sizes),
        position=lists.ranks,
        params=OPTIONS,
    )
    return _trained(lightgbm.train(OPTIONS, made, ROUNDS_ON_CLICKS), ROUNDS_ON_CLICKS)


def _trained(booster: "Booster", rounds: int) -> Trained:
    def scores(features: Singles) -> Floats:
        return np.asarray(booster.predict(features, num_threads=1), np.float64)

    return Trained(scores, rounds)
