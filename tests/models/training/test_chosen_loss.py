"""Of several losses held-out queries keep the one whose ranker is worth most."""

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.rankers.registry import LinearRanker
from models.training.chosen_loss import train_by_chosen_loss, worths_by_query
from models.training.ranker_training import (
    Epoch,
    TrainingDiverged,
    TrainingPlan,
    mean_worth,
    train_ranker,
)
from tests.models.training.chunks import cut, queries

TRUTH = np.array([1.0, -2.0, 0.0, 0.5, 1.5])
LOSSES = ["arp-linear", "truncated-lambda", "dcg-logistic"]
PLAN = TrainingPlan(cutoff=3, epochs=4)
RANKER = LinearRanker(5)


def sides():
    """Training and held-out queries, in chunks."""
    rng = np.random.default_rng(0)
    one, other = (queries(n, TRUTH, rng, noise=0.5) for n in (120, 60))
    return cut(one, 50), cut(other, 20)


def test_the_best_of_those_trained_alone_is_kept() -> None:
    """To the bit, with what each was worth and how far it is behind."""
    training, held_out = sides()
    start = np.zeros(5)
    told: list[Epoch] = []
    found = train_by_chosen_loss(
        RANKER, start, training, held_out, PLAN, LOSSES, on_epoch=told.append
    )
    alone = {
        loss: train_ranker(RANKER, start, training, held_out, PLAN.by(loss))
        for loss in LOSSES
    }
    worth = [
        mean_worth(each.weights, held_out, discounts(3)) for each in alone.values()
    ]

    assert found.loss == LOSSES[int(np.argmax(worth))]
    assert found.trained.weights.tobytes() == alone[found.loss].weights.tobytes()
    assert found.selection.names == tuple(LOSSES)
    assert found.selection.values == pytest.approx(worth)
    assert found.selection.behind == pytest.approx(max(worth) - np.array(worth))
    assert found.best_epochs == {loss: x.best_epoch for loss, x in alone.items()}
    assert told == [epoch for each in alone.values() for epoch in each.epochs]


def test_queries_of_their_own_may_choose() -> None:
    """Those of the opposite truth keep whichever learned least."""
    training, held_out = sides()
    judged = cut(queries(80, -TRUTH, np.random.default_rng(2)), 30)
    found = train_by_chosen_loss(
        RANKER, np.ones(5), training, held_out, PLAN, LOSSES, judged=judged
    )
    worths = {
        loss: mean_worth(
            train_ranker(RANKER, np.ones(5), training, held_out, PLAN.by(loss)).weights,
            judged,
            discounts(3),
        )
        for loss in LOSSES
    }

    assert found.loss == max(worths, key=lambda loss: worths[loss])


def test_what_ranks_are_worth_chooses_and_is_climbed() -> None:
    """Of a second rank that alone counts, by each of the trainings too."""
    training, held_out = sides()
    worths = np.array([-1.0, 0.0])
    losses = ["truncated-lambda", "policy-gradient"]
    plan = TrainingPlan(cutoff=2, epochs=4, learning_rate=0.1)
    found = train_by_chosen_loss(
        RANKER, np.ones(5), training, held_out, plan, losses, worths=worths
    )
    alone = [
        train_ranker(
            RANKER, np.ones(5), training, held_out, plan.by(loss), worths=worths
        )
        for loss in losses
    ]
    worth = [mean_worth(each.weights, held_out, worths) for each in alone]

    assert found.selection.values == pytest.approx(worth)
    assert found.loss == losses[int(np.argmax(worth))] == "policy-gradient"
    assert found.trained.weights.tobytes() == alone[1].weights.tobytes()


def test_worths_of_queries_are_those_of_their_mean() -> None:
    """Chunk after chunk."""
    _, held_out = sides()
    weights = np.random.default_rng(3).standard_normal(5)
    found = worths_by_query(RANKER, weights, held_out, discounts(3))
    shares = np.concatenate([chunk.weights for chunk in held_out])

    assert len(found) == 60
    assert found @ shares == pytest.approx(mean_worth(weights, held_out, discounts(3)))


def test_a_loss_that_diverges_is_left_out() -> None:
    """And where all do it is said how to go on."""
    training, held_out = sides()
    # Squares of slopes by such values leave all numbers, but for the flat ones of DCG.
    huge = [chunk._replace(values=chunk.values * 2e156) for chunk in training]
    plan = TrainingPlan(cutoff=3, epochs=1)
    losses = ["arp-linear", "dcg-at-k-logistic"]
    with pytest.raises(TrainingDiverged):
        train_ranker(RANKER, np.zeros(5), huge, held_out, plan.by("arp-linear"))
    found = train_by_chosen_loss(RANKER, np.zeros(5), huge, held_out, plan, losses)
    assert found.loss == "dcg-at-k-logistic"
    assert found.selection.names == ("dcg-at-k-logistic",)
    with pytest.raises(TrainingDiverged, match="learning_rate"):
        train_by_chosen_loss(
            RANKER, np.zeros(5), huge, held_out, plan, ["arp-linear", "arp-logistic"]
        )


@pytest.mark.parametrize("losses", [[], ["arp-linear", "arp-linear"]])
def test_losses_must_be_apart(losses: list[str]) -> None:
    """And some."""
    training, held_out = sides()
    with pytest.raises(ValueError, match="losses must be names, each once"):
        train_by_chosen_loss(RANKER, np.zeros(5), training, held_out, PLAN, losses)
