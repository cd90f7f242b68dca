"""Counterfactual learning with interventions: gather, train, deploy, and gather on.

Each intervention trains anew from the production ranker, on all that was gathered, and
what comes of it shows lists from then on. Without any the production ranker shows all
of them; with one after each list the loop would be online.

The production ranker is trained on the labels of a few queries, and made as sure of
itself as is asked for: scores times a factor at which the document that is first most
often is first with a given probability, as a mean over queries. A sure ranker explores
little, so that what it hides is learned late; one that is not, explores by itself.

References
----------
Oosterhuis & de Rijke (WSDM 2021), algorithm 1; Joachims, Swaminathan & Schnabel (WSDM
2017) for a ranker of 1 % of the queries.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.arrays import Floats, Integers
from models.rankers.ranker import Ranker
from rankstream.lab.closed_loops.policy_log import PolicyLog
from rankstream.lab.closed_loops.policy_training import (
    PolicyTrainer,
    TrainedPolicy,
    ValuedQueries,
    scores_of,
)
from rankstream.lab.closed_loops.world import World

SHARE = 0.01
"""Of the queries, whose labels the ranker is trained on, and one more."""

DOUBLINGS = 60


class Learning(NamedTuple):
    """What is learned from a log, and from where.

    Parameters
    ----------
    ranker
        Whose parameters are trained.
    trainer
        Trains them.
    production : [n_parameters]
        Shows the first lists, and every training starts from it.
    estimator
        One of `rankstream.lab.closed_loops.policy_log.ESTIMATORS`.
    """

    ranker: Ranker
    trainer: PolicyTrainer
    production: Floats
    estimator: str


class InterventionLoop:
    """A ranker among its users, replaced from time to time.

    Parameters
    ----------
    log
        With nothing in it yet.
    n_training
        How many of its queries, the first ones, are for training; the others say when
        training ends.
    interventions
        Lists after which the policy is replaced.
    user_rng, training_rng
        Of users and their lists, and of training: apart, so that a training more or
        less changes nothing of what users do.

    Raises
    ------
    ValueError
        Where training queries are none or all.
    """

    def __init__(
        self,
        log: PolicyLog,
        n_training: int,
        learning: Learning,
        interventions: Sequence[int] = (),
        *,
        user_rng: np.random.Generator,
        training_rng: np.random.Generator,
    ) -> None:
        n_queries = len(log.world.offsets) - 1
        if not 1 <= n_training < n_queries:
            raise ValueError(
                f"training queries must be some and not all of {n_queries}; got "
                f"{n_training}"
            )
        self._log, self._learning, self._n_training = log, learning, n_training
        self._waiting = sorted(interventions)
        self._user_rng, self._training_rng = user_rng, training_rng
        self._parts = split_world(log.world, n_training)
        self.deployed = np.array(learning.production, np.float64)
        self.lived = 0
        self._deploy()

    def run(self, n_lists: int) -> None:
        """Show so many lists more, with the interventions that fall due."""
        end = self.lived + n_lists
        while self._waiting and self._waiting[0] <= end:
            self._gather(self._waiting.pop(0) - self.lived)
            self.deployed = self.train().parameters
            self._deploy()
        self._gather(end - self.lived)

    def train(self) -> TrainedPolicy:
        """What all lists so far teach.

        Raises
        ------
        ValueError
            Before the first list of a training query.
        """
        lists = self._log.lists.astype(np.float64)
        n_lists = int(lists[: self._n_training].sum())
        clipped = self._log.training_values(self._learning.estimator, n_lists)
        values = self._log.values(self._learning.estimator)
        n_documents = len(self._parts[0].labels)
        training = ValuedQueries(
            self._parts[0],
            clipped[:n_documents],
            lists[: self._n_training] / max(n_lists, 1),
        )
        held_out = ValuedQueries(
            self._parts[1],
            values[n_documents:],
            lists[self._n_training :] / max(lists[self._n_training :].sum(), 1.0),
        )
        return self._learning.trainer.train(
            self._learning.production, training, held_out, rng=self._training_rng
        )

    def _deploy(self) -> None:
        ranker = self._learning.ranker
        self._log.deploy(scores_of(ranker, self.deployed, self._log.world))

    def _gather(self, n_lists: int) -> None:
        if n_lists > 0:
            self._log.gather(n_lists, rng=self._user_rng)
            self.lived += n_lists


def split_world(world: World, n_first: int) -> tuple[World, World]:
    """The first queries of a world, and the others, as worlds."""
    at = int(world.offsets[n_first])
    offsets: Integers = world.offsets
    return (
        World(world.features[:at], world.labels[:at], offsets[: n_first + 1]),
        World(world.features[at:], world.labels[at:], offsets[n_first:] - at),
    )


def spread_over(n_interventions: int, first: int, last: int) -> list[int]:
    """Lists after which policies are replaced, evenly on the scale of logarithms.

    From `first` on, and before `last`; fewer where two would fall together.

    Examples
    --------
    >>> spread_over(3, 100, 100_000)
    [100, 1000, 10000]
    """
    steps = np.arange(n_interventions) / max(n_interventions, 1)
    found = first * (last / first) ** steps
    return sorted({round(at) for at in found.tolist()})


def production_ranker(
    ranker: Ranker,
    trainer: PolicyTrainer,
    world: World,
    relevance: Floats,
    *,
    rng: np.random.Generator,
) -> Floats:
    """Train a ranker from scratch on the labels of a few queries, [n_parameters].

    Queries without a relevant document say nothing and are not drawn. The ranker is
    stopped by the queries that it is trained on, as in the published code.

    Parameters
    ----------
    relevance : [n_grades]
        P(relevant) by grade.

    Raises
    ------
    ValueError
        Where no query has a relevant document.
    """
    values = np.asarray(relevance, np.float64)[world.labels]
    told = np.flatnonzero(np.add.reduceat(values, world.offsets[:-1]) > 0.0)
    if not len(told):
        raise ValueError(
            "some query must have a relevant document; got "
            f"{len(world.offsets) - 1} without"
        )
    n_queries = int(SHARE * (len(world.offsets) - 1)) + 1
    part, rows = queries_of(world, rng.permutation(told)[:n_queries])
    n = len(part.offsets) - 1
    few = ValuedQueries(part, values[rows], np.full(n, 1.0 / n))
    start = ranker.initial_parameters(rng=rng)
    return trainer.train(start, few, few, rng=rng).parameters


def queries_of(world: World, queries: Integers) -> tuple[World, Integers]:
    """`queries` [n_drawn] of a world as a world, and where their documents were."""
    spans = [np.arange(*world.offsets[query : query + 2]) for query in queries]
    rows = np.concatenate(spans)
    offsets = np.concatenate([[0], np.cumsum([len(span) for span in spans])])
    return World(world.features[rows], world.labels[rows], offsets), rows


def chance_of_first(scores: Floats, offsets: Integers) -> float:
    """Mean over queries of the chance of the document that is first most often.

    `scores` [n_documents], `offsets` [n_queries + 1].
    """
    top = np.maximum.reduceat(scores, offsets[:-1])
    odds = np.exp(scores - np.repeat(top, np.diff(offsets)))
    return float((1.0 / np.add.reduceat(odds, offsets[:-1])).mean())


def sharpened(
    ranker: Ranker, parameters: Floats, world: World, chance: float
) -> Floats:
    """The order of `parameters` [n_parameters] with `chance_of_first` as asked for.

    The weights of the last layer are multiplied, and scores with them.

    Raises
    ------
    ValueError
        Where no factor gives that chance, as where all documents score alike.
    """
    scores = scores_of(ranker, parameters, world)

    def found(factor: float) -> float:
        return chance_of_first(factor * scores, world.offsets)

    low, high = 0.0, 1.0
    for _ in range(DOUBLINGS):
        if found(high) >= chance:
            break
        high *= 2.0
    if not found(low) <= chance <= found(high):
        raise ValueError(
            "the chance of the first document must be one that scores of this order "
            f"can give, {found(low):.3f} to {found(high):.3f}; got {chance}"
        )
    for _ in range(DOUBLINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if found(middle) < chance else (low, middle)
    result = np.array(parameters, np.float64)
    result[-ranker.sizes[-2] :] *= high
    return result
