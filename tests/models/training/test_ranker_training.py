"""Any ranker is trained by any loss; the linear one by the default keeps its bits."""

import hashlib
import itertools

import numpy as np
import pytest

from models.losses.discounts import discounts
from models.losses.loss_value import NO_PARENTS
from models.losses.ranking_worth import position_worths
from models.losses.registry import LOSSES, compiled_loss, loss_of
from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.rankers.ranker import Ranker
from models.rankers.registry import KINDS, LinearRanker, ranker_of
from models.training.query_chunk import QueryChunk
from models.training.ranker_scores import mean_deviation
from models.training.ranker_training import (
    TrainingPlan,
    mean_worth,
    train_ranker,
)
from models.training.training_kernel import Steps, buffers, pass_over
from tests.models.training.chunks import cut, queries, train

TRUTH = np.array([1.0, -2.0, 0.0, 0.5, 1.5])
NETWORKS = sorted({*KINDS} - {"linear"})
SEED = np.random.default_rng


def network(kind: str, *hidden: int, seed: int = 0):
    """A ranker and parameters that are not small."""
    ranker = ranker_of(kind, 5, hidden)
    return ranker, SEED(seed).standard_normal(ranker.n_parameters)


def sides(seed: int = 0, *, noise: float = 0.3):
    """Training and held-out queries of the truth, in chunks."""
    rng = SEED(seed)
    one, other = (queries(n, TRUTH, rng, noise=noise) for n in (300, 120))
    return cut(one, 100), cut(other, 50)


def slope_of(
    ranker: Ranker, parameters, chunk: QueryChunk, loss: str, cutoff: int
) -> np.ndarray:
    """Of the mean loss by parameters, by the losses' own slopes and finite ones."""
    total = np.zeros(len(parameters))
    for i, (begin, end) in enumerate(itertools.pairwise(chunk.offsets)):
        features = chunk.features[begin:end].astype(float)
        scores = ranker.score(parameters, features)
        values, is_kept = chunk.values[begin:end], chunk.is_kept[begin:end]
        found = loss_of(loss).loss(scores, values, is_kept, cutoff).gradient
        by_parameter = np.empty((len(features), len(parameters)))
        for j in range(len(parameters)):
            moved = [parameters.copy(), parameters.copy()]
            moved[0][j] += 1e-6
            moved[1][j] -= 1e-6
            up, down = (ranker.score(each, features) for each in moved)
            by_parameter[:, j] = (up - down) / 2e-6
        total += chunk.weights[i] * found @ by_parameter
    return total


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", ["linear", "neural", "neural-tanh", "neural-relu"])
def test_a_step_is_down_the_slope_of_the_mean_loss(kind: str, loss: str) -> None:
    """Of every ranker by every loss, through all layers."""
    ranker, start = network(kind, *([] if kind == "linear" else [4, 3]))
    chunk = queries(12, TRUTH, SEED(4), noise=0.5)
    chunk = chunk._replace(is_kept=SEED(5).random(len(chunk.values)) < 0.9)
    longest = int(np.diff(chunk.offsets).max())
    parameters = start.copy()
    shape = ranker.shape
    pass_over(
        chunk,
        np.arange(12),
        parameters,
        shape,
        compiled_loss(loss, 3, longest),
        Steps(12, 12),
        optimiser_of(OptimiserConfig("sgd", 1e-9), ranker.n_parameters),
        buffers(longest, shape, ranker.n_parameters),
        SEED(0),
        NO_PARENTS,
    )

    expected = slope_of(ranker, start, chunk, loss, 3)
    assert np.abs(expected).max() > 1e-3
    assert (start - parameters) / 1e-9 == pytest.approx(expected, rel=1e-4, abs=2e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_finds_a_planted_truth(loss: str) -> None:
    """By noisy values; the epochs judge themselves by DCG whatever the loss."""
    training, held_out = sides()
    plan = TrainingPlan(epochs=15, loss=loss, learning_rate=0.03)
    found = train(np.zeros(5), training, held_out, plan)
    alike = found.weights @ TRUTH / np.linalg.norm(found.weights)

    assert alike / np.linalg.norm(TRUTH) > 0.92
    assert found.epochs[-1].loss < found.epochs[0].loss


@pytest.mark.parametrize("kind", NETWORKS)
def test_a_network_finds_what_no_linear_ranker_can(kind: str) -> None:
    """Values that fall with the distance of a feature from its middle."""
    rng = SEED(1)

    def bent(n: int) -> QueryChunk:
        chunk = queries(n, TRUTH, rng)
        return chunk._replace(values=1.0 - np.abs(2.0 * chunk.features[:, 0] - 1.0))

    training, held_out = [bent(300)], [bent(100)]
    plan = TrainingPlan(epochs=40, learning_rate=0.03, patience=40)
    ranker = ranker_of(kind, 5, [16])
    start = ranker.initial_parameters(rng=SEED(2))
    found = train_ranker(ranker, start, training, held_out, plan)
    linear = train(np.zeros(5), training, held_out, plan)
    best = [each.epochs[each.best_epoch].held_out_dcg for each in (found, linear)]
    perfect = mean_worth(
        np.ones(1),
        [chunk._replace(features=chunk.values[:, None].astype(np.float32))
         for chunk in held_out],
        discounts(10),
    )  # fmt: skip

    assert best[0] > 0.98 * perfect
    assert best[1] < 0.93 * perfect
    assert mean_worth(found.weights, held_out, discounts(10), ranker) == best[0]


@pytest.mark.parametrize("kind", ["neural", "neural-relu"])
def test_equal_chunks_give_a_network_equal_bits(kind: str) -> None:
    """And how far its start explores does not count."""
    training, held_out = sides()
    ranker, start = network(kind, 6)
    sharper = start.copy()
    sharper[ranker.proportional] *= 64.0
    plan = TrainingPlan(epochs=3)
    one, same, scaled = (
        train_ranker(ranker, begun, training, held_out, plan)
        for begun in (start, start, sharper)
    )

    assert one.best_epoch > 0
    assert one.weights.tobytes() == same.weights.tobytes() == scaled.weights.tobytes()
    assert one.epochs == same.epochs == scaled.epochs


def test_the_last_layer_stretches_scores() -> None:
    """All other parameters leave their spread as it is only by chance."""
    ranker, start = network("neural-tanh", 4, 3)
    training, _ = sides()
    before = mean_deviation(start, training, ranker)
    start[ranker.proportional] *= 3.0

    assert ranker.proportional == slice(-3, None)
    assert LinearRanker(5).proportional == slice(-5, None)
    assert mean_deviation(start, training, ranker) == pytest.approx(3.0 * before)


@pytest.mark.parametrize("kind", [*NETWORKS, "linear"])
def test_scores_are_those_of_the_ranker(kind: str) -> None:
    """Row by row."""
    ranker, start = network(kind, *([] if kind == "linear" else [4, 3]))
    features = SEED(3).standard_normal((7, 5)).astype(np.float32)

    assert ranker.item_scores(start, features) == pytest.approx(
        ranker.score(start, features.astype(float))
    )


def test_ranks_are_worth_what_is_asked_for() -> None:
    """Held-out queries judge by it, and the policy gradient climbs it."""
    training, held_out = sides(noise=0.0)
    worths = position_worths(12)
    plan = TrainingPlan(epochs=5, loss="arp-linear")
    found = train_ranker(
        LinearRanker(5), np.zeros(5), training, held_out, plan, worths=worths
    )
    expected = 0.0
    for chunk in held_out:
        scores = chunk.features @ found.weights
        for i, (begin, end) in enumerate(itertools.pairwise(chunk.offsets)):
            ranks = 1.0 + (-scores[begin:end]).argsort().argsort()
            expected -= chunk.weights[i] * (ranks @ chunk.values[begin:end])

    assert found.epochs[found.best_epoch].held_out_dcg == pytest.approx(expected)
    # Only the second rank is worth anything: the best item comes second.
    odd = TrainingPlan(cutoff=2, epochs=9, learning_rate=0.3, loss="policy-gradient")
    single = queries(200, np.array([1.0]), SEED(2))
    second = train_ranker(
        LinearRanker(1), np.ones(1), [single], [single], odd, worths=np.array([-1.0, 0])
    )
    assert second.weights[0] < 0.0 < second.best_epoch


DIGESTS = {
    "cut": "3f9fd303aa1ca3bc",
    "one": "87ca79a7c1be8451",
    "long": "1a682fe75ded550c",
}
"""Of weights and epochs as they were before there were other rankers and losses."""


@pytest.mark.parametrize("name", DIGESTS)
def test_the_linear_ranker_keeps_its_bits(name: str) -> None:
    """By the default loss, whatever else can be trained."""
    rng = SEED(11)
    truth = rng.standard_normal(13)
    one, other = (queries(n, truth, rng, noise=0.4) for n in (90, 40))
    known = rng.random(len(one.values)) < 0.8
    one = one._replace(is_kept=known)
    plans = {
        "cut": (cut(one, 30, 50), TrainingPlan(cutoff=3, epochs=6, seed=4)),
        "one": ([one], TrainingPlan(epochs=4, batch=7, learning_rate=0.05)),
        "long": (cut(one, 45), TrainingPlan(cutoff=1, epochs=12, patience=12)),
    }
    training, plan = plans[name]
    found = train(rng.standard_normal(13), training, [other], plan)
    told = np.array([each for epoch in found.epochs for each in epoch])
    # The loss itself takes the logarithms of the system, weights do not.
    digest = hashlib.sha256(found.weights.tobytes() + told[2::3].tobytes())

    assert digest.hexdigest()[:16] == DIGESTS[name]


def test_what_no_ranker_can_be_trained_from_is_refused_in_words() -> None:
    """Parameters of another ranker, and losses that are none."""
    training, held_out = sides()
    plan = TrainingPlan(epochs=1)
    with pytest.raises(ValueError, match="must have the 28 parameters of the ranker"):
        train_ranker(ranker_of("neural", 5, [4]), np.zeros(5), training, held_out, plan)
    with pytest.raises(ValueError, match="loss must be one of truncated-lambda, "):
        TrainingPlan(loss="hinge")


@pytest.mark.parametrize("loss", LOSSES)
def test_queries_that_tell_nothing_leave_the_start(loss: str) -> None:
    """One item, no value but 0, and more ranks than items: all of them are defined."""
    rng = SEED(3)
    sizes = np.array([1, 3, 1, 2])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    features = rng.random((7, 2)).astype(np.float32)
    chunk = QueryChunk(
        offsets, features, np.zeros(7), np.ones(7, bool), np.full(4, 0.25)
    )
    start = np.array([1.0, -1.0])
    plan = TrainingPlan(cutoff=30, epochs=2, loss=loss)
    found = train(start, [chunk], [chunk], plan)

    assert (found.weights == start).all()
    assert all(epoch.loss == 0.0 for epoch in found.epochs)
