"""Counterfactual learning with interventions: gather, train, deploy, and gather on.

Each intervention trains anew from the production ranker, on all that was gathered, and
what comes of it shows lists from then on. Without any the production ranker shows all
of them; with one after each list the loop would be online.

References
----------
Oosterhuis & de Rijke (WSDM 2021), algorithm 1.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from models.rankers.ranker import Ranker
from rankstream.lab.closed_loops.policy_log import PolicyLog
from rankstream.lab.closed_loops.policy_training import (
    PolicyTrainer,
    TrainedPolicy,
    ValuedQueries,
    scores_of,
)
from rankstream.lab.closed_loops.world import Floats, Integers, World


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
