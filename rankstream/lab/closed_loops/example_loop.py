"""Learners that have no compiled loop, with simulated users, one at a time.

Lists are drawn from the ranker's Plackett-Luce model, as COLTR and PL-Rank have them.
"""

from typing import Any

import numpy as np

from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import click_on
from models.learners.learner import TrainingExample
from models.learners.parameters import ExampleLearner
from models.plackett_luce.list_sampler import BLOCK, sample_list
from rankstream.lab.closed_loops.ranker_loop import RankerLoop
from rankstream.lab.closed_loops.world import Floats, Integers, World, any_query

SEEDS = 2**62
"""Below it lie the seeds of impressions."""


class ExampleLoop(RankerLoop):
    """A learner that lives with its users, by the verbs that a pipeline uses too.

    Parameters
    ----------
    learner
        At its beginning; it moves.
    world
        Its documents.
    users
        Who clicks.
    cutoff
        Documents shown, at most.
    """

    def __init__(
        self,
        learner: ExampleLearner[Any],
        world: World,
        users: ClickModel,
        *,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        super().__init__(learner.config, world, users, cutoff=cutoff, rng=rng)
        self._learner = learner
        self.parameters = learner.parameters()

    def begin_at(self, parameters: Floats) -> None:
        """Learn on from `parameters` [n_parameters]."""
        state = self._learner.state()
        begun = np.asarray(parameters, "<f8").tobytes()
        self._learner.restore({**state, "parameters": begun})
        self.parameters = self._learner.parameters()

    def _live(self, shown: Integers) -> int:
        moved = [self._live_once(row) for row in shown]
        self.parameters = self._learner.parameters()
        return sum(moved)

    def _live_once(self, row: Integers) -> bool:
        """Fill a row of the lists shown; returns whether the parameters moved."""
        query = any_query(self._world.offsets, self._rng)
        first, last = self._world.offsets[query : query + 2]
        features = self._world.features[first:last].astype(np.float64)
        scores = self._learner.ranker.score(self._learner.parameters(), features)
        row[0] = query
        shown = row[1 : len(scores) + 1]
        blocks = np.empty((len(scores) + BLOCK - 1) // BLOCK)
        sample_list(scores, np.empty(len(scores)), blocks, shown, self._rng)
        clicks = np.empty(len(shown), np.bool_)
        click_on(self._world.labels[first:last], shown, self._users, clicks, self._rng)
        return self._learner.learn(
            TrainingExample(
                scores,
                shown,
                clicks,
                features[shown],
                seed=int(self._rng.integers(SEEDS)),
                candidates=features,
            )
        )
