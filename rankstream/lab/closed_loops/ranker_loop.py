"""What closed loops have in common, and learners that have no compiled one."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from models.arrays import Floats, Integers
from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import click_on, users_of
from models.learners.learner import TrainingExample
from models.learners.parameters import ExampleLearner, LearnerConfig
from models.optimisers.optimiser import optimiser_of
from models.plackett_luce.list_sampler import BLOCK, sample_list
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.world import (
    World,
    any_query,
    checked_cutoff,
    checked_world,
)

SEEDS = 2**62
"""Below it lie the seeds of impressions."""


class RankerLoop(ABC):
    """A ranker that lives with its users.

    Parameters
    ----------
    world
        Its documents.
    users
        Who clicks.
    cutoff
        Documents shown, at most.
    """

    def __init__(
        self,
        config: LearnerConfig,
        world: World,
        users: ClickModel,
        *,
        cutoff: int = 10,
        rng: np.random.Generator,
    ) -> None:
        self._users = users_of(users)
        self._world = checked_world(world, n_grades=len(self._users.click))
        self._cutoff = checked_cutoff(cutoff)
        ranker = ranker_of(config.kind, config.n_features, config.hidden)
        self.parameters = ranker.initial_parameters(
            rng=np.random.default_rng(config.seed)
        )
        self.updates = 0
        self._shape = ranker.shape
        self._optimiser = optimiser_of(config.step_config(), ranker.n_parameters)
        self._rng = rng

    def begin_at(self, parameters: Floats) -> None:
        """Learn on from `parameters` [n_parameters]."""
        self.parameters[:] = parameters

    def run(self, n_impressions: int) -> Integers:
        """Live through impressions; see `rankstream.lab.closed_loops.world.Loop`."""
        shown = np.full((n_impressions, 1 + self._cutoff), -1, np.int64)
        self.updates += self._live(shown)
        return shown

    @abstractmethod
    def _live(self, shown: Integers) -> int:
        """Fill `shown` while parameters move; returns the number of updates."""


class ExampleLoop(RankerLoop):
    """A learner that lives with its users, by the verbs that a pipeline uses too.

    Lists are drawn one at a time from the ranker's Plackett-Luce model, as COLTR and
    PL-Rank have them.

    Parameters
    ----------
    learner
        At its beginning; it moves. All else as in `RankerLoop`.
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
