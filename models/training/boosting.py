"""Trees that are boosted down a loss of rankings, to the best round by held-out DCG.

In each round a tree is grown by slopes and curvatures of the loss by all scores, as
ranks are held: a Newton step, of which each leaf takes its share. As linear training
does, it stops where held-out queries gain no more, by estimated values and not by the
loss, and keeps the best round; number 0 is the start. A round whose draw of queries or
features has no split adds no tree, and counts as one that gained nothing; where nothing
is drawn, no later round would have a split either, and boosting ends.

Trees are added to the start's scores. These are first stretched to where the loss of
the training queries is least: what was served says in which order items go, and how far
it explored says nothing of how sure it was. Positive factors keep ranks, so that the
loss is convex in them.

Items of unknown value have ranks, and their scores change with the others. No tree is
grown by them.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from models.arrays import Flags, Floats, Integers
from models.losses.discounts import discounts
from models.losses.loss_value import NEVER_DRAWN, NO_PARENTS
from models.losses.pair_kernel import room_for
from models.losses.ranking_worth import query_worths
from models.losses.registry import compiled_loss
from models.training.boosting_kernel import fill_slopes
from models.training.boosting_plan import BoostingPlan
from models.training.early_stopping import EarlyStopping
from models.training.grown_trees import NO_TREES, GrownTrees
from models.training.query_chunk import ChunkSource
from models.training.ranker_training import Epoch, TrainingDiverged

START_SCALES = 2.0**-10, 2.0**10
"""Between them the start is stretched; a start that is of no use, hardly at all."""

N_HALVINGS = 20


class Boosted(NamedTuple):
    """What boosting gave.

    Parameters
    ----------
    trees
        Those up to the best round.
    start_scale
        What the start's scores are multiplied by before trees are added; 0 where they
        are added to nothing.
    best_epoch
        The best round, 0 where nothing was better than the start.
    epochs
        All rounds, in their order, from the start on.
    """

    trees: GrownTrees
    start_scale: float
    best_epoch: int
    epochs: list[Epoch]


def boosted(
    start: Callable[[np.ndarray], Floats],
    training: ChunkSource,
    held_out: ChunkSource,
    plan: BoostingPlan,
    *,
    is_anew: bool = False,
    on_epoch: Callable[[Epoch], object] = lambda _: None,
) -> Boosted:
    """Grow trees beside what scores items at the start.

    Parameters
    ----------
    start
        Gives scores of items by features [n_items, n_features], [n_items].
    training, held_out
        Queries apart; equal chunks give equal bits.
    is_anew
        Whether trees stand alone; the start is then only what they must be better than.
    on_epoch
        Is told of each round when it has ended; what it raises ends the training.

    Raises
    ------
    TrainingDiverged
        Where a number that training makes is not finite.
    ValueError
        Where a split has no query with a value to learn from.
    ModuleNotFoundError
        Where LightGBM is not installed.
    """
    # Few need it: the base installation has none.
    from models.training.lightgbm_rounds import (  # noqa: PLC0415
        LightgbmRounds,
        NothingSplits,
        Part,
    )

    judge = _Judge(held_out, start, discounts(plan.cutoff))
    slopes = _Slopes(training, start, plan)
    scale = slopes.stretch()
    epochs = [judge.epoch(0, slopes.take(), judge.scores)]
    stopping = EarlyStopping(
        epochs[0].held_out_dcg, patience=plan.patience, least_gain=plan.least_gain
    )
    on_epoch(epochs[0])
    if is_anew:
        scale = 0.0
        slopes.scores[:] = 0.0
        slopes.take()
        stopping.gains_from(judge.worth(0.0 * judge.scores))
    unit = slopes.unit()
    if not unit:
        return Boosted(NO_TREES, scale, 0, epochs)
    is_known = slopes.items.is_kept
    others = [Part(training, ~is_known, slopes.scores[~is_known])] * (
        not is_known.all()
    )
    everywhere = np.ones(len(judge.scores), np.bool_)
    try:
        rounds = LightgbmRounds(
            plan,
            Part(training, is_known, slopes.scores[is_known]),
            [*others, Part(held_out, everywhere, scale * judge.scores)],
        )
    except NothingSplits:
        return Boosted(NO_TREES, scale, 0, epochs)
    rng = np.random.default_rng(plan.seed)
    is_drawn = plan.share_of_queries < 1.0 or plan.share_of_features < 1.0
    n_trees = [0]
    while len(epochs) <= plan.rounds and not stopping.is_over:
        share = slopes.drawn(plan.share_of_queries, rng) / unit
        steps = ((share * x)[is_known] for x in (slopes.slopes, slopes.curvatures))
        if not rounds.step(*steps) and not is_drawn:
            break
        n_trees.append(rounds.n_trees)
        slopes.scores[is_known] = rounds.scores()
        if others:
            slopes.scores[~is_known] = rounds.scores_of(0)
        loss = slopes.take()
        epoch = judge.epoch(len(epochs), loss, rounds.scores_of(len(others)))
        epochs.append(epoch)
        stopping.take(epoch.held_out_dcg)
        on_epoch(epoch)
    best = stopping.best_number
    trees = rounds.trees(n_trees[best]) if best else NO_TREES
    return Boosted(trees, scale, best, epochs)


class _Items(NamedTuple):
    """Items of all queries of a split, without their features.

    `offsets` [n_queries + 1], `weights` [n_queries]; all others [n_items].
    """

    offsets: Integers
    values: Floats
    is_kept: Flags
    weights: Floats
    scores: Floats


def _items(
    split: str, chunks: ChunkSource, start: Callable[[np.ndarray], Floats]
) -> _Items:
    read, sizes = [], []
    for number in range(len(chunks)):
        chunk = chunks[number]
        sizes.append(np.diff(chunk.offsets))
        read.append((chunk.values, chunk.is_kept, chunk.weights, start(chunk.features)))
    if not any(is_kept.any() for _, is_kept, _, _ in read):
        raise ValueError(
            f"the {split} queries must have items of known value; got "
            f"{sum(map(len, sizes))} queries with none: wait for more impressions, or "
            "change the share of held-out queries"
        )
    values, is_kept, weights, scores = map(np.concatenate, zip(*read, strict=True))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate(sizes))]).astype(np.int64)
    return _Items(offsets, values, is_kept, weights, scores.astype(np.float64))


class _Slopes:
    """Slopes and curvatures of the training queries, as their scores change.

    Attributes
    ----------
    scores, slopes, curvatures : [n_items]
        Of all items; those of unknown ones are 0.
    """

    def __init__(
        self,
        training: ChunkSource,
        start: Callable[[np.ndarray], Floats],
        plan: BoostingPlan,
    ) -> None:
        self.items = _items("training", training, start)
        self.scores = self.items.scores
        self.slopes, self.curvatures = np.zeros((2, len(self.scores)))
        longest = int(np.diff(self.items.offsets).max())
        self._loss = compiled_loss(plan.loss, plan.cutoff, longest)
        self._room = room_for(longest)

    def take(self) -> float:
        """Fill slopes and curvatures by the scores of now; gives the mean loss."""
        return self._filled(self.scores)

    def _filled(self, scores: Floats) -> float:
        items = self.items
        loss = fill_slopes(
            scores, items.values, items.is_kept, items.offsets, items.weights,
            self._loss, self._room, NEVER_DRAWN, NO_PARENTS, self.slopes,
            self.curvatures,
        )  # fmt: skip
        return float(loss)

    def stretch(self) -> float:
        """Multiply scores by what makes the loss least; gives that."""
        if not self.scores.any():
            return 1.0
        low, high = START_SCALES
        for _ in range(N_HALVINGS):
            scale = float(np.sqrt(low * high))
            self._filled(scale * self.scores)
            # The slope of the loss by the scale.
            is_beyond = float(self.slopes @ self.scores) > 0.0
            low, high = (low, scale) if is_beyond else (scale, high)
        self.scores *= low
        return low

    def drawn(self, share: float, rng: np.random.Generator) -> Floats:
        """1 of items of queries that a tree is grown by, 0 of others, [n_items]."""
        is_drawn = drawn_queries(len(self.items.weights), share, rng=rng)
        return np.repeat(is_drawn.astype(np.float64), np.diff(self.items.offsets))

    def unit(self) -> float:
        """The mean curvature of an item of known value, by which steps are measured."""
        return float(self.curvatures.sum() / np.count_nonzero(self.items.is_kept))


def drawn_queries(n_queries: int, share: float, *, rng: np.random.Generator) -> Flags:
    """Which queries a tree is grown by, at least one, [n_queries].

    Examples
    --------
    >>> drawn_queries(4, 0.5, rng=np.random.default_rng(1)).sum()
    np.int64(2)
    """
    is_drawn = np.ones(n_queries, np.bool_)
    if share < 1.0:
        n_left = n_queries - max(1, round(share * n_queries))
        is_drawn[rng.permutation(n_queries)[:n_left]] = False
    return is_drawn


class _Judge:
    """Held-out queries; `scores` [n_items] are those of the start."""

    def __init__(
        self,
        held_out: ChunkSource,
        start: Callable[[np.ndarray], Floats],
        worths: Floats,
    ) -> None:
        self._items = _items("held-out", held_out, start)
        self.scores = self._items.scores
        self._worths = np.ascontiguousarray(worths, np.float64)

    def epoch(self, number: int, loss: float, scores: Floats) -> Epoch:
        """What a round gave.

        Raises
        ------
        TrainingDiverged
        """
        if not np.isfinite(loss) or not np.isfinite(scores).all():
            raise TrainingDiverged(
                f"training must stay finite; got a loss of {loss:g} in round {number}: "
                "lower learning_rate, or raise regularisation"
            )
        return Epoch(number, loss, self.worth(scores))

    def worth(self, scores: Floats) -> float:
        """Mean by weight over queries, of rankings by scores [n_items]."""
        items = self._items
        worth = query_worths(
            scores, items.values, items.is_kept, items.offsets, self._worths
        )
        return float((items.weights * worth).sum())
