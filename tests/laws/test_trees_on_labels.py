"""Trees by our losses rank as LightGBM's own do, where labels stand for values."""

import lightgbm
import numpy as np
import numpy.typing as npt
import pytest

from models.losses.gains import exponential_gains
from models.training.boosting import boosted
from models.training.boosting_plan import BoostingPlan
from models.training.labelled_queries import labelled_queries
from rankstream.lab.closed_loops.world import World
from rankstream.ranking.tree_scoring import TreeScorer
from streams.training.versions.forest_ranker import forest_of
from tests import mq2008

ROUNDS, LEAVES, LEARNING_RATE, LEAST_ITEMS = 100, 31, 0.05, 20
ALLOWED = 0.01
"""Of mean NDCG@10 over the folds, in which their errors are about .02 each."""


def by_lambdarank(train: World, test: World) -> npt.NDArray[np.float64]:
    """Scores by LightGBM's own objective, of as many trees of as many leaves."""
    plan = {
        "objective": "lambdarank", "num_leaves": LEAVES, "verbosity": -1,
        "learning_rate": LEARNING_RATE, "min_data_in_leaf": LEAST_ITEMS,
        "lambdarank_truncation_level": 10, "num_threads": 1, "deterministic": True,
    }  # fmt: skip
    sizes = np.diff(train.offsets)
    dataset = lightgbm.Dataset(train.features, label=train.labels, group=sizes)
    booster = lightgbm.train(plan, dataset, ROUNDS)
    return np.asarray(booster.predict(test.features), np.float64)


def by_loss(loss: str, train: World, test: World) -> npt.NDArray[np.float64]:
    """Scores by one of ours, of all rounds: queries that stop it are those it has."""
    gains = exponential_gains(3)
    queries = labelled_queries(train.features, train.labels, train.offsets, gains=gains)
    plan = BoostingPlan(
        rounds=ROUNDS, patience=ROUNDS, leaves=LEAVES, learning_rate=LEARNING_RATE,
        least_items=LEAST_ITEMS, loss=loss,
    )  # fmt: skip
    found = boosted(lambda x: np.zeros(len(x)), [queries], [queries], plan)
    return TreeScorer(forest_of(found.trees)).scores(test.features)


@pytest.mark.skipif(not mq2008.is_there(), reason=mq2008.ABSENT)
def test_trees_by_our_losses_are_as_good_as_lambdarank() -> None:
    """On average over the folds of MQ2008, at equal rounds, leaves and rates."""
    found: dict[str, list[float]] = {}
    for fold in range(1, 6):
        train, test = (mq2008.split(fold, name) for name in ("train", "test"))
        scores = {
            "lambdarank": by_lambdarank(train, test),
            **{
                loss: by_loss(loss, train, test)
                for loss in ("truncated-lambda", "lambda-rank")
            },
        }
        for name, each in scores.items():
            found.setdefault(name, []).append(mq2008.ndcg_at_10(test, each))
    theirs, truncated, ranked = (float(np.mean(each)) for each in found.values())

    assert theirs > 0.65
    assert truncated > theirs - ALLOWED
    assert ranked > theirs - ALLOWED
