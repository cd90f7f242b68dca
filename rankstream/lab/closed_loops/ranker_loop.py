"""What closed loops have in common: a world, users, and a ranker that moves."""

from abc import ABC, abstractmethod

import numpy as np

from models.click_models.click_model import ClickModel
from models.click_models.compiled_users import users_of
from models.learners.parameters import LearnerConfig
from models.optimisers.optimiser import optimiser_of
from models.rankers.registry import ranker_of
from rankstream.lab.closed_loops.world import (
    Floats,
    Integers,
    World,
    checked_cutoff,
    checked_world,
)


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
