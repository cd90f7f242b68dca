"""A linear ranker finds a planted truth, and is never worse than where it began."""

import itertools

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.losses.lambda_loss import truncated_lambda
from models.losses.loss_value import NO_PARENTS
from models.losses.registry import DEFAULT, compiled_loss
from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.rankers.item_scores import fill_scores
from models.rankers.registry import LinearRanker
from models.training.query_chunk import QueryChunk
from models.training.ranker_scores import mean_deviation
from models.training.ranker_training import (
    Epoch,
    TrainingDiverged,
    TrainingPlan,
    mean_worth,
)
from models.training.training_kernel import Steps, buffers, pass_over
from tests.models.training.chunks import cut, queries, train

TRUTH = np.array([1.0, -2.0, 0.0, 0.5, 1.5])


def both(*, noise: float = 0.0, seed: int = 0, scale: float = 1.0):
    """Training and held-out queries of the truth, in chunks."""
    rng = np.random.default_rng(seed)
    training = queries(400, TRUTH, rng, noise=noise)
    held_out = queries(150, TRUTH, rng, noise=noise)
    return [
        cut(one._replace(values=one.values * scale), one.n_queries // 3)
        for one in (training, held_out)
    ]


@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_a_planted_truth_is_found(scale: float) -> None:
    """By noisy values, whatever the scale of values is."""
    training, held_out = both(noise=0.3, scale=scale)
    found = train(np.zeros(5), training, held_out, TrainingPlan())
    alike = found.weights @ TRUTH / np.linalg.norm(found.weights)

    assert alike / np.linalg.norm(TRUTH) > 0.97
    assert found.epochs[found.best_epoch].held_out_dcg > (
        1.2 * found.epochs[0].held_out_dcg
    )


def test_loss_of_the_start_is_the_mean_by_weight() -> None:
    """Epoch 0, before any step, query after query."""
    training, held_out = both()
    start = np.random.default_rng(1).standard_normal(5)
    start /= mean_deviation(start, training)
    found = train(start, training, held_out, TrainingPlan(cutoff=3, epochs=1))
    expected = 0.0
    for chunk in training:
        for i, (begin, end) in enumerate(itertools.pairwise(chunk.offsets)):
            span = slice(begin, end)
            loss = truncated_lambda(
                chunk.features[span].astype(float) @ start,
                chunk.values[span],
                chunk.is_kept[span],
                3,
            ).value
            expected += chunk.weights[i] * loss

    assert found.epochs[0].number == 0
    assert found.epochs[0].loss == pytest.approx(expected, rel=1e-9)


def test_one_batch_of_all_steps_down_the_slope_of_the_mean_loss() -> None:
    """Adam's first step is the learning rate, against the sign of each slope."""
    training, held_out = both()
    start = np.random.default_rng(1).standard_normal(5)
    # One chunk, with all of its queries in one batch, so that ranks are the start's.
    training = cut(queries(30, TRUTH, np.random.default_rng(4), noise=0.5))
    start /= mean_deviation(start, training)
    plan = TrainingPlan(cutoff=3, epochs=1, batch=30, learning_rate=1e-7)
    seen = train(start, training, held_out, plan)
    slope = np.zeros(5)
    chunk = training[0]
    for i, (begin, end) in enumerate(itertools.pairwise(chunk.offsets)):
        features = chunk.features[begin:end].astype(float)
        of_scores = truncated_lambda(
            features @ start, chunk.values[begin:end], chunk.is_kept[begin:end], 3
        ).gradient
        slope += chunk.weights[i] * of_scores @ features
    # What was tried may not be what was kept: the step is there if it was better.
    moved = seen.weights - start

    assert seen.epochs[1].loss == pytest.approx(seen.epochs[0].loss, rel=1e-9)
    assert seen.best_epoch in {0, 1}
    assert (moved == 0.0).all() or moved == pytest.approx(-1e-7 * np.sign(slope))


def test_weights_of_queries_decide_whom_training_follows() -> None:
    """Two kinds of queries of opposite truths: the heavy one wins."""
    rng = np.random.default_rng(3)
    one, other = (queries(200, truth, rng) for truth in (TRUTH, -TRUTH))
    for heavy, sign in ((0.8, 1.0), (0.2, -1.0)):
        chunks = [
            one._replace(weights=one.weights * heavy),
            other._replace(weights=other.weights * (1.0 - heavy)),
        ]
        found = train(np.zeros(5), chunks, chunks, TrainingPlan(epochs=10))

        assert sign * (found.weights @ TRUTH) > 0.0


def test_the_best_epoch_is_kept() -> None:
    """Where later ones are worse by held-out queries, which follow another truth."""
    training, _ = both()
    held_out = cut(queries(100, TRUTH * [1, 1, 1, 1, -1], np.random.default_rng(5)))
    told: list[Epoch] = []
    plan = TrainingPlan(patience=4, learning_rate=0.05)
    found = train(np.zeros(5), training, held_out, plan, on_epoch=told.append)
    best = max(found.epochs, key=lambda epoch: epoch.held_out_dcg)

    assert found.best_epoch == best.number
    assert mean_worth(found.weights, held_out, discounts(10)) == best.held_out_dcg
    assert len(found.epochs) - 1 - found.best_epoch <= 4
    assert [epoch.number for epoch in told] == list(range(len(found.epochs)))
    assert told == found.epochs


def test_a_start_that_nothing_betters_is_given_back() -> None:
    """Held-out queries of the opposite truth: epoch 0, after `patience` more."""
    training, _ = both()
    held_out = cut(queries(100, -TRUTH, np.random.default_rng(5)))
    start = -TRUTH
    found = train(start, training, held_out, TrainingPlan(patience=3))

    assert found.best_epoch == 0
    assert found.weights is not start
    assert (found.weights == start).all()
    assert len(found.epochs) == 4


def test_a_gain_renews_the_patience() -> None:
    """Small steps towards the truth gain each time, if ever less is asked for."""
    training, held_out = both()
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    plans = [
        TrainingPlan(
            epochs=6, patience=1, batch=400, learning_rate=0.02, least_gain=gain
        )
        for gain in (1e-6, 0.5)
    ]
    patient, demanding = (train(start, training, held_out, plan) for plan in plans)

    assert len(patient.epochs) == 7
    assert len(demanding.epochs) == 2
    # Too small a gain ends the training, and is kept all the same.
    assert demanding.best_epoch == 1


def test_equal_chunks_give_equal_bits() -> None:
    """And another seed does not; the start is left as it was."""
    training, held_out = both(noise=0.3)
    start = np.zeros(5)
    plans = [TrainingPlan(epochs=4, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (train(start, training, held_out, plan) for plan in plans)

    assert one.weights.tobytes() == same.weights.tobytes()
    assert one.epochs == same.epochs
    assert one.weights.tobytes() != other.weights.tobytes()
    assert not start.any()


def test_chunks_come_in_an_order_of_their_own() -> None:
    """By the seed, also where each has but one query."""
    chunk = queries(12, TRUTH, np.random.default_rng(7), noise=0.5)
    single = cut(chunk, *range(1, 12))
    plans = [TrainingPlan(epochs=1, batch=1, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (train(np.zeros(5), single, single, plan) for plan in plans)

    assert one.epochs == same.epochs
    assert one.epochs[1].loss != other.epochs[1].loss


def test_queries_of_a_chunk_come_in_an_order_of_their_own() -> None:
    """By the seed, and in each epoch another one."""
    chunk = queries(12, TRUTH, np.random.default_rng(7), noise=0.5)
    plans = [TrainingPlan(epochs=2, batch=1, seed=seed) for seed in (1, 1, 2)]
    one, same, other = (train(np.zeros(5), [chunk], [chunk], plan) for plan in plans)

    assert one.epochs == same.epochs
    assert one.epochs[1].loss != other.epochs[1].loss


def test_what_is_no_better_does_not_replace_the_start() -> None:
    """Held-out queries that any order suits: equal values everywhere."""
    training, held_out = both()
    level = [one._replace(values=np.ones_like(one.values)) for one in held_out]
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    # No scores are equal, so that nothing of a rank is shared.
    found = train(start, training, level, TrainingPlan(patience=2))

    assert len({epoch.held_out_dcg for epoch in found.epochs}) == 1
    assert len(found.epochs) == 3
    assert found.best_epoch == 0
    assert (found.weights == start).all()


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_gain_is_a_share_of_the_best_so_far(sign: float) -> None:
    """Of its size, whatever its sign and the scale of values are."""
    training, held_out = both()
    start = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    # Values that are all below 0 are in the same order.
    moved = [
        one._replace(values=one.values - (0.0 if sign > 0.0 else 2.0))
        for one in held_out
    ]
    plan = TrainingPlan(
        epochs=30, patience=1, batch=40, learning_rate=0.02, least_gain=0.002
    )
    lengths = set()
    for scale in (1.0, 2.0**-10):
        scaled = [one._replace(values=one.values * scale) for one in moved]
        found = train(start, training, scaled, plan)
        lengths.add(len(found.epochs))
        dcg = [epoch.held_out_dcg for epoch in found.epochs]
        gains = np.diff(dcg) / np.abs(dcg[:-1])
        assert np.sign(dcg[0]) == sign
        assert (gains[:-1] > plan.least_gain).all()
        assert gains[-1] <= plan.least_gain

    assert len(lengths) == 1
    assert 2 < lengths.pop() < 31


@pytest.mark.parametrize(("batch", "scale"), [(30, 1.0), (15, 2.0), (60, 0.5)])
def test_a_step_is_down_the_mean_slope_of_a_full_batch(
    batch: int, scale: float
) -> None:
    """A query counts by its weight over the mean one; what lacks in a batch is 0."""
    chunk = queries(30, TRUTH, np.random.default_rng(4), noise=0.5)
    start = np.random.default_rng(1).standard_normal(5)
    slope, first = np.zeros(5), np.arange(min(batch, 30))
    for i in first.tolist():
        span = slice(chunk.offsets[i], chunk.offsets[i + 1])
        features = chunk.features[span].astype(float)
        values, is_kept = chunk.values[span], chunk.is_kept[span]
        found = truncated_lambda(features @ start, values, is_kept, 3)
        slope += chunk.weights[i] * found.gradient @ features
    optimiser = optimiser_of(OptimiserConfig("sgd", 1e-9), 5)
    weights = start.copy()
    longest, shape = int(np.diff(chunk.offsets).max()), LinearRanker(5).shape
    pass_over(
        chunk,
        first,
        weights,
        shape,
        compiled_loss(DEFAULT, 3, longest),
        Steps(batch, 30),
        optimiser,
        buffers(longest, shape, 5),
        np.random.default_rng(0),
        NO_PARENTS,
    )

    assert weights - start == pytest.approx(-1e-9 * scale * slope, rel=1e-4)


def test_how_far_the_start_explores_does_not_count() -> None:
    """Only its order does: what comes of it are the same bits."""
    training, held_out = both(noise=0.3)
    start = np.array([1.0, 1.0, 1.0, 0.0, 1.0])
    one, sharper = (
        train(start * size, training, held_out, TrainingPlan(epochs=4))
        for size in (1.0, 64.0)
    )

    assert one.best_epoch > 0
    assert one.weights.tobytes() == sharper.weights.tobytes()
    assert one.epochs == sharper.epochs


def test_items_without_a_value_are_in_no_pair() -> None:
    """What stands where they have none changes nothing."""
    training, held_out = both(noise=0.3)
    rng = np.random.default_rng(6)
    kept = [rng.random(len(chunk.values)) < 0.7 for chunk in training]
    found = []
    for wrong in (0.0, 100.0):
        chunks = [
            chunk._replace(
                is_kept=is_kept, values=np.where(is_kept, chunk.values, wrong)
            )
            for chunk, is_kept in zip(training, kept, strict=True)
        ]
        found.append(train(np.zeros(5), chunks, held_out, TrainingPlan(epochs=3)))

    assert found[0].weights.tobytes() == found[1].weights.tobytes()
    assert found[0].epochs == found[1].epochs


def test_equal_scores_share_their_discounts() -> None:
    """DCG is the mean over the orders that scores leave open."""
    features = np.array([[1.0], [0.0], [0.0], [0.0]], np.float32)
    values = np.array([2.0, 4.0, 1.0, 7.0])
    kept = np.array([True, True, True, False])
    chunk = QueryChunk(np.array([0, 4]), features, values, kept, np.ones(1))
    gains = np.where(kept, values, 0.0)
    discount = [1.0, 1.0 / np.log2(3.0), 0.0, 0.0]
    orders = [(0, *rest) for rest in itertools.permutations((1, 2, 3))]
    expected = np.mean([gains[list(order)] @ discount for order in orders])

    assert mean_worth(np.ones(1), [chunk], discounts(2)) == pytest.approx(expected)


@pytest.mark.parametrize("n_features", [1, 7, 8, 9, 136])
def test_scores_are_products(n_features: int) -> None:
    """Of any number of features."""
    rng = np.random.default_rng(n_features)
    features = rng.standard_normal((6, n_features)).astype(np.float32)
    weights, scores = rng.standard_normal(n_features), np.empty(6)
    fill_scores(
        features, weights, LinearRanker(n_features).shape, scores, np.empty((6, 0))
    )

    assert scores == pytest.approx(features.astype(float) @ weights)


def test_what_cannot_be_trained_is_refused_in_words() -> None:
    """Splits without values, other features, wrong numbers, and divergence."""
    training, held_out = both()
    plan = TrainingPlan(epochs=2)
    nothing = [one._replace(is_kept=np.zeros_like(one.is_kept)) for one in held_out]
    with pytest.raises(ValueError, match="the held-out queries must have items"):
        train(np.zeros(5), training, nothing, plan)
    with pytest.raises(ValueError, match="the training queries must have items"):
        train(np.zeros(5), [], held_out, plan)
    with pytest.raises(ValueError, match=r"must be 4, those of the ranker; got 5"):
        train(np.zeros(4), training, held_out, plan)
    with pytest.raises(ValueError, match="start must be finite"):
        train(np.full(5, np.nan), training, held_out, plan)
    with pytest.raises(ValueError, match="batch must be at least 1; got 0"):
        TrainingPlan(batch=0)
    with pytest.raises(ValueError, match="learning_rate must be finite"):
        TrainingPlan(learning_rate=np.inf)
    with pytest.raises(ValueError, match="least_gain must be finite"):
        TrainingPlan(least_gain=-1.0)


@pytest.mark.parametrize("value", [1.0, 1e300])
def test_a_loss_that_diverges_ends_the_training(value: float) -> None:
    """A weight that no snapshot could hold is never given back."""
    training, held_out = both()
    wrong = [one._replace(values=one.values.copy()) for one in training]
    wrong[0].values[3] = value
    with pytest.raises(TrainingDiverged, match="lower learning_rate"):
        train(np.zeros(5), wrong, held_out, TrainingPlan(learning_rate=1e39))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_no_numbers_are_refused(value: float) -> None:
    """Where they are known; else they count nothing."""
    training, held_out = both()
    wrong = [one._replace(values=one.values.copy()) for one in training]
    wrong[0].values[3] = value
    with pytest.raises(ValueError, match="training queries must be finite where"):
        train(np.zeros(5), wrong, held_out, TrainingPlan(epochs=1))
    with pytest.raises(ValueError, match="held-out queries must be finite where"):
        train(np.zeros(5), training, wrong, TrainingPlan(epochs=1))
    wrong[0].is_kept[3] = False
    assert train(np.zeros(5), wrong, held_out, TrainingPlan(epochs=1)).best_epoch == 1
