"""Policies trained from estimated relevance: a gradient a query, and early stopping.

    reward = sum over queries of weight * sum over documents and ranks of
             P(document at rank) * rank_weights[rank] * value(document)

The gradient of the reward under Plackett-Luce is taken from drawn lists (PL-Rank-3);
or the truncated LambdaLoss orders documents instead. Whichever it is, the epoch is
kept whose policy has the largest reward on held-out queries, where it is exact but for
the values. Epoch 0 is the start.

References
----------
Oosterhuis & de Rijke (WSDM 2021), section 7: the gradient, one query a step, early
stopping by estimates that are not clipped; Oosterhuis (SIGIR 2022), PL-Rank-3.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.kernels.compilation import compiled
from models.losses.discounts import pair_discounts
from models.losses.pair_kernel import (
    NO_RANKS,
    PairWeights,
    Room,
    add_pair_loss,
    room_for,
)
from models.optimisers.kernel import Optimiser, step
from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.plackett_luce.list_gradient import add_sampled_gradients
from models.plackett_luce.placement import placement_batch
from models.rankers.layers import Shape, add_gradient, n_activations, score_rows
from models.rankers.ranker import Ranker
from models.training.exploration import Placements
from rankstream.lab.closed_loops.world import World, WorldPlacements

POLICY_GRADIENT, LAMBDA_LOSS = "policy-gradient", "truncated-lambda"


class ValuedQueries(NamedTuple):
    """Queries, and what is known of their documents.

    Parameters
    ----------
    world
        Labels are not looked at.
    values : [n_documents]
        Estimated relevance; NaN where there is none.
    weights : [n_queries]
        Shares of lists, not negative.
    """

    world: World
    values: Floats
    weights: Floats


@dataclass(frozen=True)
class PolicyPlan:
    """How policies are trained.

    Parameters
    ----------
    loss
        "policy-gradient" or "truncated-lambda".
    epochs
        At most so many passes, at least 1.
    optimiser, learning_rate
        Of the steps, one a query.
    n_samples
        Lists that a gradient is taken from, at least 1.
    least_gain
        What is a gain on held-out queries, as a share of the best reward so far.
    patience
        Epochs without a gain after which training stops, at least 1.
    """

    loss: str = POLICY_GRADIENT
    epochs: int = 50
    optimiser: str = "sgd"
    learning_rate: float = 0.01
    n_samples: int = 10
    least_gain: float = 1e-3
    patience: int = 2

    def __post_init__(self) -> None:
        if self.loss not in (POLICY_GRADIENT, LAMBDA_LOSS):
            raise ValueError(
                f"loss must be {POLICY_GRADIENT} or {LAMBDA_LOSS}; got {self.loss!r}"
            )
        for name in ("epochs", "n_samples", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1; got {getattr(self, name)}"
                )


class TrainedPolicy(NamedTuple):
    """What a training gave.

    Parameters
    ----------
    parameters : [n_parameters]
        Of the best epoch.
    best_epoch
        Its number, 0 where nothing was better than the start.
    rewards
        On held-out queries, by epoch from the start on.
    """

    parameters: Floats
    best_epoch: int
    rewards: list[float]


def scores_of(ranker: Ranker, parameters: Floats, world: World) -> Floats:
    """Scores of all documents of a world, [n_documents]; `parameters` [n_parameters].

    Features stay as they lie.
    """
    scores = np.empty(len(world.labels))
    fill_world_scores(parameters, ranker.shape, world, scores)
    return scores


class PolicyTrainer:
    """Trains policies of one ranker for one metric.

    Parameters
    ----------
    rank_weights : [cutoff]
        What a relevant document at a rank gives, not negative.
    placements
        Computes probabilities of ranks.
    """

    def __init__(
        self,
        ranker: Ranker,
        rank_weights: Floats,
        plan: PolicyPlan,
        *,
        placements: Placements = placement_batch,
    ) -> None:
        self._ranker, self._plan = ranker, plan
        self._rank_weights = np.array(rank_weights, np.float64)
        self._placements = placements

    def train(
        self,
        start: Floats,
        training: ValuedQueries,
        held_out: ValuedQueries,
        *,
        rng: np.random.Generator,
    ) -> TrainedPolicy:
        """Train from where it starts, `start` [n_parameters]."""
        plan = self._plan
        config = OptimiserConfig(plan.optimiser, plan.learning_rate)
        parameters = np.array(start, np.float64)
        optimiser = optimiser_of(config, len(parameters))
        judge = self._judge(held_out)
        best, best_epoch, since = parameters.copy(), 0, 0
        rewards = [judge.reward(parameters)]
        mark = top = rewards[0]
        arrays = _arrays_of(training, self._rank_weights, plan)
        for epoch in range(1, plan.epochs + 1):
            order = rng.permutation(len(training.weights))
            if not pass_over(
                training.world, arrays, order, parameters, self._ranker.shape,
                optimiser, rng,
            ):  # fmt: skip
                break
            rewards.append(judge.reward(parameters))
            if rewards[-1] > top:
                top, best, best_epoch = rewards[-1], parameters.copy(), epoch
            if rewards[-1] - mark > plan.least_gain * abs(mark):
                mark, since = rewards[-1], 0
            else:
                since += 1
            if since >= plan.patience:
                break
        return TrainedPolicy(best, best_epoch, rewards)

    def _judge(self, queries: ValuedQueries) -> "_RewardJudge":
        return _RewardJudge(self._ranker, queries, self._rank_weights, self._placements)


class _RewardJudge:
    """Rewards of policies on some queries."""

    def __init__(
        self,
        ranker: Ranker,
        queries: ValuedQueries,
        rank_weights: Floats,
        placements: Placements,
    ) -> None:
        self._ranker, self._world = ranker, queries.world
        self._rank_weights = rank_weights
        offsets = queries.world.offsets
        self._placed = WorldPlacements(offsets, len(rank_weights), placements)
        shares = np.repeat(queries.weights, np.diff(offsets))
        self._gains = np.nan_to_num(queries.values) * shares

    def reward(self, parameters: Floats) -> float:
        scores = scores_of(self._ranker, parameters, self._world)
        if not np.isfinite(scores).all():
            return -np.inf
        return float(self._gains @ (self._placed.of(scores) @ self._rank_weights))


class Arrays(NamedTuple):
    """What the kernel reads beside documents.

    Parameters
    ----------
    values : [n_documents]
        0 where there is none.
    is_kept : [n_documents]
        Whether there is one.
    weights : [n_queries]
        Shares over their mean.
    rank_weights : [cutoff]
    pairs
        Of LambdaLoss, as many as the longest query has documents.
    room
        Where LambdaLoss works.
    n_samples
        Of a gradient; 0 for LambdaLoss.
    """

    values: Floats
    is_kept: np.ndarray[tuple[int], np.dtype[np.bool_]]
    weights: Floats
    rank_weights: Floats
    pairs: PairWeights
    room: Room
    n_samples: int


def _arrays_of(
    queries: ValuedQueries, rank_weights: Floats, plan: PolicyPlan
) -> Arrays:
    mean = queries.weights.mean() or 1.0
    gaps = pair_discounts(int(np.diff(queries.world.offsets).max()))
    return Arrays(
        np.nan_to_num(queries.values),
        np.isfinite(queries.values),
        queries.weights / mean,
        rank_weights,
        PairWeights(gaps, NO_RANKS),
        room_for(len(gaps)),
        plan.n_samples if plan.loss == POLICY_GRADIENT else 0,
    )


@compiled
def fill_world_scores(
    parameters: Floats, shape: Shape, world: World, scores: Floats
) -> None:
    """Fill `scores` [n_documents]; `parameters` [n_parameters]."""
    activations = np.empty((1, n_activations(shape)))
    for d in range(scores.shape[0]):
        score_rows(
            parameters, shape, world.features[d : d + 1], scores[d : d + 1], activations
        )


@compiled
def pass_over(  # noqa: PLR0913  a kernel takes plain arrays
    world: World,
    arrays: Arrays,
    order: Integers,
    parameters: Floats,
    shape: Shape,
    optimiser: Optimiser,
    rng: np.random.Generator,
) -> bool:
    """One step for each query; False where one led to what could not be served.

    Parameters
    ----------
    order : [n_queries]
        In which queries are taken.
    parameters : [n_parameters]
        Are moved.
    """
    largest = arrays.pairs.gaps.shape[0]
    all_scores, all_slopes = np.empty(largest), np.empty(largest)
    activations = np.empty((largest, n_activations(shape)))
    gradient = np.empty(parameters.shape[0])
    for query in order:
        first, last = world.offsets[query], world.offsets[query + 1]
        n = last - first
        weight = arrays.weights[query]
        if weight == 0.0 or n < 2:
            continue
        features = world.features[first:last]
        scores, slopes = all_scores[:n], all_slopes[:n]
        score_rows(parameters, shape, features, scores, activations)
        slopes[:] = 0.0
        cutoff = min(n, arrays.rank_weights.shape[0])
        values = arrays.values[first:last]
        if arrays.n_samples > 0:
            weights = arrays.rank_weights[:cutoff]
            add_sampled_gradients(
                scores, values, weights, arrays.n_samples, slopes, rng
            )
            slopes *= weight / arrays.n_samples
        else:
            is_kept = arrays.is_kept[first:last]
            add_pair_loss(
                scores, values, is_kept, cutoff, arrays.pairs, arrays.room, slopes,
                slopes[:0],
            )  # fmt: skip
            # A loss falls where rewards rise.
            slopes *= -weight
        gradient[:] = 0.0
        add_gradient(gradient, slopes, parameters, shape, features, activations)
        if not step(parameters, gradient, optimiser):
            return False
    return True
