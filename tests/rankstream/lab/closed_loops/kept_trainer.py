"""A trainer that tells what it was asked to train."""

import numpy as np

from models.arrays import Floats
from rankstream.lab.closed_loops.policy_training import (
    PolicyTrainer,
    TrainedPolicy,
    ValuedQueries,
)


class KeptTrainer(PolicyTrainer):
    """Trains, and keeps from where, from what, and by what it was stopped."""

    asked: tuple[Floats, ValuedQueries, ValuedQueries]

    def train(
        self,
        start: Floats,
        training: ValuedQueries,
        held_out: ValuedQueries,
        *,
        rng: np.random.Generator,
    ) -> TrainedPolicy:
        """As any trainer does."""
        self.asked = start, training, held_out
        return super().train(start, training, held_out, rng=rng)
