"""A ranker trained by a loss, in minibatches over queries.

Each epoch takes the chunks in a seeded order, and the queries of each in one of its
own; a batch lies in one chunk. What is returned are the weights of the epoch that the
held-out queries judge best, of which the first, number 0, is the start: training never
gives less than what it began with, by that estimate. It judges rankings, not the loss:
losses are of different scales, and some bound what they stand for loosely.

Steps are those of Adam, about a learning rate for each weight: as long for values that
are small everywhere, as the click rates of some sites are, no longer for a query that
has most of all impressions, and short from the first one on, so that a good start is
not lost in it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from models.arrays import Floats
from models.losses.discounts import discounts
from models.losses.loss_value import NO_PARENTS
from models.losses.proximal import RATIO
from models.losses.registry import PARENT, compiled_loss, loss_of
from models.optimisers.optimiser import OptimiserConfig, optimiser_of
from models.rankers.ranker import Ranker
from models.rankers.registry import LinearRanker
from models.training import training_kernel as kernel
from models.training.early_stopping import EarlyStopping
from models.training.query_chunk import ChunkSource, QueryChunk
from models.training.ranker_scores import mean_deviation

OPTIMISER = "adam"

EXPECTED = ("policy-gradient", "proximal")
"""Losses that ranks are worth as much to as to held-out queries."""


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
        Of the order of queries, and of what a loss draws.
    loss
        One of `models.losses.registry.LOSSES`.
    proximal_ratio
        Of the loss "proximal" alone, finite and above 1: see `models.losses.proximal`.

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
    loss: str = "truncated-lambda"
    proximal_ratio: float = RATIO

    def __post_init__(self) -> None:
        loss_of(self.loss)
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
        if not 1.0 < self.proximal_ratio < np.inf:
            raise ValueError(
                f"proximal_ratio must be finite and above 1; got {self.proximal_ratio}"
            )

    def by(self, loss: str) -> "TrainingPlan":
        """The same by another loss."""
        return replace(self, loss=loss)


class Epoch(NamedTuple):
    """What one pass over the training queries gave.

    Parameters
    ----------
    number
        From 1; 0 is the start, before any step.
    loss
        Mean by weight over training queries, each at the weights that it met.
    held_out_dcg
        Mean by weight over held-out queries, of estimated values; see `mean_worth`. It
        is DCG unless ranks are worth something else.
    """

    number: int
    loss: float
    held_out_dcg: float


class Trained(NamedTuple):
    """What a training gave.

    Parameters
    ----------
    weights : [n_parameters]
        Of the best epoch; as the start was where it is that.
    best_epoch
        Its number, 0 where nothing was better than the start.
    epochs
        All of them, in their order, from the start on.
    """

    weights: Floats
    best_epoch: int
    epochs: list[Epoch]


def train_ranker(  # noqa: PLR0913  all that a training depends on
    ranker: Ranker,
    start: Floats,
    training: ChunkSource,
    held_out: ChunkSource,
    plan: TrainingPlan,
    *,
    worths: Floats | None = None,
    on_epoch: Callable[[Epoch], object] | None = None,
) -> Trained:
    """Train a ranker from where it starts.

    Training begins with scores whose standard deviation is 1, so that how far the start
    explores does not count.

    Parameters
    ----------
    start : [n_parameters]
        Parameters of the parent.
    training, held_out
        Queries apart; equal chunks give equal bits.
    worths : [n_ranks]
        Of a rank, for each unit of an item's value: what held-out queries judge by,
        and `EXPECTED` losses climb, of the latter the first `plan.cutoff` ranks. Those
        of DCG within the cutoff if not given.
    on_epoch
        Is told of each epoch when it has ended; what it raises ends the training.

    Raises
    ------
    TrainingDiverged
        Where a number that training makes is not finite.
    ValueError
        Where a split has no query with a value to learn from, a known value is not
        finite, parameters and features do not agree with the ranker, or the start is
        not finite.
    """
    worths = discounts(plan.cutoff) if worths is None else worths
    run = _Training(ranker, start, training, held_out, plan, worths)
    run.stretch()
    begun = run.begin()
    stopping = EarlyStopping(
        begun.held_out_dcg, patience=plan.patience, least_gain=plan.least_gain
    )
    best_weights = np.array(start, np.float64)
    _tell(on_epoch, begun)
    while len(run.epochs) <= plan.epochs and not stopping.is_over:
        epoch = run.next()
        _tell(on_epoch, epoch)
        if stopping.take(epoch.held_out_dcg):
            best_weights = run.parameters.copy()
    return Trained(best_weights, stopping.best_number, run.epochs)


def mean_worth(
    parameters: Floats,
    chunks: ChunkSource,
    worths: Floats,
    ranker: Ranker | None = None,
) -> float:
    """Estimated worth of rankings: mean by weight over queries, of values as gains.

    See `models.losses.ranking_worth` for items of equal scores and unknown values.

    Parameters
    ----------
    parameters : [n_parameters]
    worths : [n_ranks]
        Of a rank, for each unit of value; ranks beyond are worth nothing.
    ranker
        A linear one if not given.
    """
    shape = (ranker or LinearRanker(len(parameters))).shape
    total = 0.0
    for chunk in _each(chunks):
        room = kernel.buffers(_longest(chunk), shape, 0)
        total += kernel.sum_of_worth(chunk, parameters, shape, worths, room)
    return float(total)


class _Training:
    """A training under way.

    Attributes
    ----------
    parameters : [n_parameters]
        As they are now.
    epochs
        So far, from the start on.
    """

    def __init__(
        self,
        ranker: Ranker,
        start: Floats,
        training: ChunkSource,
        held_out: ChunkSource,
        plan: TrainingPlan,
        worths: Floats,
    ) -> None:
        self.parameters = np.array(start, np.float64)
        self.epochs: list[Epoch] = []
        if len(start) != ranker.n_parameters:
            raise ValueError(
                f"the start must have the {ranker.n_parameters} parameters of the "
                f"ranker; got {len(start)}"
            )
        if not np.isfinite(self.parameters).all():
            raise ValueError("the start must be finite; got weights that are not")
        self._ranker, self._shape = ranker, ranker.shape
        self._training, self._held_out, self._plan = training, held_out, plan
        self._worths = np.ascontiguousarray(worths, np.float64)
        n_features = ranker.sizes[0]
        _check("held-out", held_out, n_features)
        self._n_queries, longest = _check("training", training, n_features)
        self._has_parent = PARENT in loss_of(plan.loss).needs
        self._loss = compiled_loss(
            plan.loss,
            plan.cutoff,
            longest,
            worths=worths if plan.loss in EXPECTED else None,
            ratio=plan.proximal_ratio if self._has_parent else None,
        )
        self._parents: list[Floats] = []
        self._buffers = kernel.buffers(longest, self._shape, len(start))
        config = OptimiserConfig(OPTIMISER, plan.learning_rate)
        self._optimiser = optimiser_of(config, len(start))
        self._rng = np.random.default_rng(plan.seed)

    def stretch(self) -> None:
        """Bring scores to a standard deviation of 1, where they differ at all."""
        deviation = mean_deviation(self.parameters, self._training, self._ranker)
        self.parameters[self._ranker.proportional] /= deviation or 1.0

    def begin(self) -> Epoch:
        """The start as an epoch."""
        loss = 0.0
        for chunk in _each(self._training):
            self._parents.append(self._weights_in(chunk))
            loss += kernel.sum_of_losses(
                chunk,
                self.parameters,
                self._shape,
                self._loss,
                self._buffers,
                self._rng,
                self._parents[-1],
            )
        return self._ended(loss)

    def _weights_in(self, chunk: QueryChunk) -> Floats:
        """Of items under the policy of now, [n_items], where the loss asks for them."""
        if not self._has_parent:
            return NO_PARENTS
        found = np.empty(len(chunk.values))
        kernel.fill_parents(
            chunk, self.parameters, self._shape, self._loss.worths, self._buffers, found
        )
        return found

    def next(self) -> Epoch:
        """One more pass."""
        loss = 0.0
        for number in self._rng.permutation(len(self._training)).tolist():
            chunk = self._training[number]
            loss += kernel.pass_over(
                chunk,
                self._rng.permutation(chunk.n_queries),
                self.parameters,
                self._shape,
                self._loss,
                kernel.Steps(self._plan.batch, self._n_queries),
                self._optimiser,
                self._buffers,
                self._rng,
                self._parents[number],
            )
        return self._ended(loss)

    def _ended(self, loss: float) -> Epoch:
        number = len(self.epochs)
        epoch = Epoch(
            number,
            float(loss),
            mean_worth(self.parameters, self._held_out, self._worths, self._ranker),
        )
        if not np.isfinite([loss, epoch.held_out_dcg, *self.parameters]).all():
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
                f"features must be {n_features}, those of the ranker; got "
                f"{chunk.features.shape[1]} in the {split} queries"
            )
        if not np.isfinite(chunk.values[chunk.is_kept]).all():
            raise ValueError(
                f"values of the {split} queries must be finite where they are known; "
                "got others: leave those items out"
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
