"""Rankers of MQ2008 trained from few clicks, and what their users lose.

A ranker in production, trained by the labels of 40 % of the queries, draws 1,000 lists
of 10; users look at rank k with probability 1 / k, and click what they look at with a
probability that rises with its label. Values are clicks over the looks that the policy
was expected to give, and a ranker is trained from them where the one in production
stands. Two lists a query say little, so that some trainings do harm.
"""

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from models.losses.gains import exponential_gains
from models.rankers.registry import LinearRanker
from models.training.bounded_step import bounded_step
from models.training.exploration import explored
from models.training.labelled_queries import labelled_queries
from models.training.largest_loss import LEAST_WEIGHT, Falls
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import TrainingPlan, train_ranker
from rankstream.lab.closed_loops.world import World
from streams.native.placing import placements_of_scores
from tests.mq2008 import split

Floats = npt.NDArray[np.float64]

CUTOFF = 10
THETA = 1.0 / np.arange(1.0, CUTOFF + 1.0)
CLICKED = np.array([0.05, 0.3, 0.8])
"""Of what users look at, by label."""

N_LISTS = 1_000
LABELLED = 0.4
TEMPERATURE = 0.5
HELD_OUT = 0.2
"""Share of the queries that tell where to stop."""

BATCH, LEARNING_RATE = 4, 0.1
"""What `rankstream train` chooses for few queries."""

BOUND = 0.01
"""About 2 % of the clicks of a list."""

ARMS = {
    "`truncated-lambda`": ("truncated-lambda", np.inf),
    "the same, `largest_loss = 0.05`": ("truncated-lambda", 0.05),
    "the same, `largest_loss = 0.01`": ("truncated-lambda", BOUND),
    "`proximal`": ("proximal", np.inf),
    "`proximal`, `largest_loss = 0.01`": ("proximal", BOUND),
}
"""Name -> loss, and the largest loss that is allowed."""

PLAIN, PROXIMAL = "`truncated-lambda`", "`proximal`"


class Found(NamedTuple):
    """What became of one training.

    Parameters
    ----------
    largest_loss, least_ratio
        See `models.training.largest_loss.Fall`, over queries by their lists.
    lost
        What its users lose, in clicks a list: below 0 where they gain.
    step
        How far it went.
    least_unclicked
        The least ratio among items that nobody clicked.
    """

    largest_loss: float
    least_ratio: float
    lost: float
    step: float
    least_unclicked: float


@cache
def world(n_queries: int | None = None) -> World:
    """Of the training split of fold 1, or its first queries."""
    whole = split(1, "train")
    end = len(whole.offsets) - 1 if n_queries is None else n_queries
    n = whole.offsets[end]
    return World(whole.features[:n], whole.labels[:n], whole.offsets[: end + 1])


def few(of: World, queries: npt.NDArray[np.int64]) -> QueryChunk:
    """Some queries with gains of their labels."""
    spans = [slice(of.offsets[q], of.offsets[q + 1]) for q in queries.tolist()]
    offsets = np.cumsum([0, *(span.stop - span.start for span in spans)])
    return labelled_queries(
        np.concatenate([of.features[span] for span in spans]),
        np.concatenate([of.labels[span] for span in spans]),
        offsets,
        gains=exponential_gains(3),
    )


def in_production(of: World, rng: np.random.Generator) -> Floats:
    """A ranker of labelled queries, as it is served; as many tell where to stop."""
    n_labelled = int(LABELLED * (len(of.offsets) - 1))
    queries = rng.choice(len(of.offsets) - 1, 2 * n_labelled, replace=False)
    training, held_out = (
        few(of, side) for side in (queries[:n_labelled], queries[n_labelled:])
    )
    n = of.features.shape[1]
    found = train_ranker(
        LinearRanker(n), np.zeros(n), [training], [held_out], TrainingPlan(CUTOFF)
    )
    return explored(
        found.weights, [training], temperature=TEMPERATURE, floor=0.0, cutoff=CUTOFF,
        placements=placements_of_scores,
    ).weights  # fmt: skip


def looks_of(of: World, policy: Floats) -> list[Floats]:
    """Expected weight of each item of each query, [n_items]."""
    scores = LinearRanker(len(policy)).item_scores(policy, of.features)
    return [
        placements_of_scores(scores[None, a:b], min(CUTOFF, b - a))[0]
        @ THETA[: min(CUTOFF, b - a)]
        for a, b in itertools.pairwise(of.offsets.tolist())
    ]


def shown_lists(
    of: World, policy: Floats, n_shown: int, rng: np.random.Generator
) -> tuple[npt.NDArray[np.int64], Floats]:
    """Lists of each query, [n_queries], and clicks of each item, [n_items]."""
    scores = LinearRanker(len(policy)).item_scores(policy, of.features)
    n_lists = rng.multinomial(
        n_shown, np.full(len(of.offsets) - 1, 1.0 / (len(of.offsets) - 1))
    )
    clicks = np.zeros(len(scores))
    for n, (a, b) in zip(
        n_lists.tolist(), itertools.pairwise(of.offsets.tolist()), strict=True
    ):
        for _ in range(n):
            # The largest of scores with Gumbel noise are a Plackett-Luce draw.
            rows = a + np.argsort(-(scores[a:b] + rng.gumbel(size=b - a)))[:CUTOFF]
            chances = THETA[: len(rows)] * CLICKED[of.labels[rows]]
            clicks[rows] += rng.random(len(rows)) < chances
    return n_lists, clicks


def part(
    of: World, values: Floats, n_lists: npt.NDArray[np.int64], *, is_in: list[int]
) -> QueryChunk:
    """Some queries, with values of items."""
    spans = [slice(of.offsets[q], of.offsets[q + 1]) for q in is_in]
    offsets = np.cumsum([0, *(span.stop - span.start for span in spans)])
    found = np.concatenate([values[span] for span in spans])
    kept = np.isfinite(found)
    shares = n_lists[is_in].astype(float)
    return QueryChunk(
        offsets, np.concatenate([of.features[span] for span in spans]),
        np.where(kept, found, 0.0), kept, shares / shares.sum(),
    )  # fmt: skip


def run_of(seed: int, of: World, n_shown: int = N_LISTS) -> dict[str, Found]:
    """One log, and a training from it by each arm."""
    rng = np.random.default_rng(seed)
    parent = in_production(of, rng)
    n_lists, clicks = shown_lists(of, parent, n_shown, rng)
    looks = np.concatenate(
        [n * each for n, each in zip(n_lists, looks_of(of, parent), strict=True)]
    )
    # An item that was hardly looked at tells nothing.
    values = np.where(looks >= 0.1, clicks / np.maximum(looks, 0.1), np.nan)
    order = rng.permutation(len(n_lists)).tolist()
    cut = int(HELD_OUT * len(order))
    sides = [
        part(of, values, n_lists, is_in=[q for q in side if n_lists[q]])
        for side in (order[cut:], order[:cut])
    ]
    whole = part(of, values, n_lists, is_in=[*range(len(n_lists))])
    falls = Falls(parent, [whole], THETA, placements=placements_of_scores)
    fitted = {
        loss: trained_by(loss, parent, sides, seed)
        for loss in {loss for loss, _ in ARMS.values()}
    }
    found = {}
    for name, (loss, bound) in ARMS.items():
        weights, step, fall = bounded_step(parent, fitted[loss], falls, bound)
        before, after = (np.concatenate(looks_of(of, x)) for x in (parent, weights))
        liked = CLICKED[of.labels] * np.repeat(whole.weights, np.diff(of.offsets))
        is_left = (clicks == 0.0) & (before > LEAST_WEIGHT)
        found[name] = Found(
            *fall,
            float(liked @ (before - after)),
            step,
            float((after[is_left] / before[is_left]).min()),
        )
    return found


def trained_by(loss: str, parent: Floats, sides: list[QueryChunk], seed: int) -> Floats:
    """Weights as they would be served, without a bound."""
    training, held_out = sides
    plan = TrainingPlan(
        CUTOFF, loss=loss, seed=seed, batch=BATCH, learning_rate=LEARNING_RATE
    )
    found = train_ranker(
        LinearRanker(len(parent)), parent, [training], [held_out], plan, worths=THETA
    )
    return explored(
        found.weights, [training], temperature=TEMPERATURE, floor=0.0, cutoff=CUTOFF,
        placements=placements_of_scores,
    ).weights  # fmt: skip
