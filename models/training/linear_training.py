"""A linear ranker trained by the truncated LambdaLoss, in minibatches over queries.

Each epoch takes the chunks in a seeded order, and the queries of each in one of its
own; a batch lies in one chunk. What is returned are the weights of the epoch that the
held-out queries judge best, of which the first, number 0, is the start: training never
gives less than what it began with, by that estimate.

Steps are those of Adam, about a learning rate for each weight: as long for values that
are small everywhere, as the click rates of some sites are, no longer for a query that
has most of all impressions, and short from the first one on, so that a good start is
not lost in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.training import training_kernel as kernel
from models.training.lambda_loss import discounts, pair_discounts
from models.training.linear_scores import mean_deviation
from models.training.query_chunk import ChunkSource, QueryChunk

Floats = npt.NDArray[np.float64]

OPTIMISER = "adam"


class TrainingDiverged(ValueError):
    """Loss, slopes or weights are no longer finite."""


@dataclass(frozen=True)
class TrainingPlan:
    """How long and how fast a ranker is trained.

    Parameters
    ----------
    cutoff
        Ranks that count, at least 1.
    epochs
        At most so many passes over the training queries, at least 1.
    batch
        Queries of a step, at least 1.
    learning_rate
        What a step moves a weight by at most, about; above 0. The default is for
        features within [0, 1].
    patience
        Epochs without a gain on held-out queries after which training stops, at
        least 1.
    least_gain
        What is a gain, as a share of the best so far, at least 0.
    seed
        Of the order of queries.

    Raises
    ------
    ValueError
        Where a number is outside its range.
    """

    cutoff: int = 10
    epochs: int = 50
    batch: int = 16
    learning_rate: float = 0.01
    patience: int = 5
    least_gain: float = 1e-4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("cutoff", "epochs", "batch", "patience"):
            if getattr(self, name) < 1:
                raise ValueError(
                    f"{name} must be at least 1; got {getattr(self, name)}"
                )
        if not 0.0 < self.learning_rate < np.inf:
            raise ValueError(
                f"learning_rate must be finite and above 0; got {self.learning_rate}"
            )
        if not 0.0 <= self.least_gain < np.inf:
            raise ValueError(
                f"least_gain must be finite and at least 0; got {self.least_gain}"
            )


class Epoch(NamedTuple):
    """What one pass over the training queries gave.

    Parameters
    ----------
    number
        From 1; 0 is the start, before any step.
    loss
        Mean by weight over training queries, each at the weights that it met.
    held_out_dcg
        Mean by weight over held-out queries, of estimated values; see `mean_dcg`.
    """

    number: int
    loss: float
    held_out_dcg: float


class Trained(NamedTuple):
    """What a training gave.

    Parameters
    ----------
    weights : [n_features]
        Of the best epoch; as the start was where it is that.
    best_epoch
        Its number, 0 where nothing was better than the start.
    epochs
        All of them, in their order, from the start on.
    """

    weights: Floats
    best_epoch: int
    epochs: list[Epoch]


def train(
    start: Floats,
    training: ChunkSource,
    held_out: ChunkSource,
    plan: TrainingPlan,
    *,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained:
    """Train a linear ranker from where it starts.

    Parameters
    ----------
    start : [n_features]
        Weights of the parent.
    training, held_out
        Queries apart; equal chunks give equal bits.
    on_epoch
        Is told of each epoch when it has ended; what it raises ends the training.

    Raises
    ------
    TrainingDiverged
        Where a number that training makes is not finite.
    ValueError
        Where a split has no query with a value to learn from, weights and features
        do not agree, or the start is not finite.
    """
    run = _Training(start, training, held_out, plan)
    best, mark, since = run.begin(), run.epochs[0].held_out_dcg, 0
    best_weights = np.array(start, np.float64)
    _tell(on_epoch, best)
    while len(run.epochs) <= plan.epochs and since < plan.patience:
        epoch = run.next()
        _tell(on_epoch, epoch)
        if epoch.held_out_dcg > best.held_out_dcg:
            best, best_weights = epoch, run.weights.copy()
        if epoch.held_out_dcg - mark > plan.least_gain * abs(mark):
            mark, since = epoch.held_out_dcg, 0
        else:
            since += 1
    return Trained(best_weights, best.number, run.epochs)


def mean_dcg(weights: Floats, chunks: ChunkSource, cutoff: int) -> float:
    """Estimated DCG of a ranker: mean by weight over queries, of values as gains.

    Items of equal scores share their ranks: each has the mean of their discounts. An
    item whose value is not known has its rank, and gains nothing: a ranker that shows
    what nobody knows is not the better for it.

    Parameters
    ----------
    weights : [n_features]
    cutoff
        Ranks that count.
    """
    falling = discounts(cutoff)
    total = 0.0
    for chunk in _each(chunks):
        room = kernel.buffers(_longest(chunk), len(weights))
        total += kernel.sum_of_dcg(chunk, weights, falling, room)
    return float(total)


class _Training:
    """A training under way.

    `weights` are where it is; `epochs` what it has done.
    """

    def __init__(
        self,
        start: Floats,
        training: ChunkSource,
        held_out: ChunkSource,
        plan: TrainingPlan,
    ) -> None:
        self.weights = np.array(start, np.float64)
        if not np.isfinite(self.weights).all():
            raise ValueError("weights of the start must be finite")
        self.epochs: list[Epoch] = []
        self._training, self._held_out, self._plan = training, held_out, plan
        n_features = len(self.weights)
        _check("held-out", held_out, n_features)
        self._n_queries, longest = _check("training", training, n_features)
        self._deltas = pair_discounts(longest)
        self._buffers = kernel.buffers(longest, n_features)
        config = OptimiserConfig(OPTIMISER, plan.learning_rate)
        self._optimiser = optimiser_of(config, n_features)
        self._rng = np.random.default_rng(plan.seed)
        self.weights /= mean_deviation(self.weights, training) or 1.0

    def begin(self) -> Epoch:
        """The start as an epoch."""
        loss = 0.0
        for chunk in _each(self._training):
            loss += kernel.sum_of_losses(
                chunk, self.weights, self._plan.cutoff, self._deltas, self._buffers
            )
        return self._ended(loss)

    def next(self) -> Epoch:
        """One more pass."""
        loss = 0.0
        for number in self._rng.permutation(len(self._training)).tolist():
            chunk = self._training[number]
            loss += kernel.pass_over(
                chunk,
                self._rng.permutation(chunk.n_queries),
                self.weights,
                kernel.Steps(self._plan.cutoff, self._plan.batch, self._n_queries),
                self._deltas,
                self._optimiser,
                self._buffers,
            )
        return self._ended(loss)

    def _ended(self, loss: float) -> Epoch:
        number = len(self.epochs)
        epoch = Epoch(
            number,
            float(loss),
            mean_dcg(self.weights, self._held_out, self._plan.cutoff),
        )
        if not np.isfinite([loss, epoch.held_out_dcg, *self.weights]).all():
            raise TrainingDiverged(
                f"training must stay finite; got a loss of {loss:g} in epoch {number}: "
                "lower learning_rate"
            )
        self.epochs.append(epoch)
        return epoch


def _tell(on_epoch: Callable[[Epoch], object] | None, epoch: Epoch) -> None:
    if on_epoch is not None:
        on_epoch(epoch)


def _each(chunks: ChunkSource) -> Iterator[QueryChunk]:
    for number in range(len(chunks)):
        yield chunks[number]


def _longest(chunk: QueryChunk) -> int:
    return int(np.diff(chunk.offsets).max(initial=0))


def _check(split: str, chunks: ChunkSource, n_features: int) -> tuple[int, int]:
    """Number of queries, and items of the longest, of a split that tells something."""
    n_queries, longest, n_kept = 0, 0, 0
    for chunk in _each(chunks):
        if chunk.features.shape[1] != n_features:
            raise ValueError(
                "features must be as many as weights of the start, "
                f"{n_features}; got {chunk.features.shape[1]} in the {split} queries"
            )
        n_queries += chunk.n_queries
        longest = max(longest, _longest(chunk))
        n_kept += int(np.count_nonzero(chunk.is_kept))
    if not n_kept:
        raise ValueError(
            f"the {split} queries must have items of known value; got "
            f"{n_queries} queries with none: wait for more impressions, or change the "
            "share of held-out queries"
        )
    return n_queries, longest
