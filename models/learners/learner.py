"""What every online learner offers: interactions in, weights and state out."""

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import numpy.typing as npt

State = dict[str, bytes | int | float]
"""All that a learner is; written and read back it gives the same bits."""


class Learner(Protocol):
    """A ranker's parameters that move with interactions, in the order of their log."""

    @property
    def updates(self) -> int:
        """Interactions that moved the parameters."""

    def learn(
        self,
        scores: npt.NDArray[np.floating],
        shown: npt.NDArray[np.integer],
        clicks: npt.NDArray[np.bool_],
        features: npt.NDArray[np.floating],
    ) -> bool:
        """Fold one interaction.

        Parameters
        ----------
        scores : [n]
            Logged scores of all candidates.
        shown : [k]
            Rows of the shown ones, in displayed order.
        clicks : [k]
        features : [k, n_features]
            Of the shown ones, in displayed order.

        Returns
        -------
        bool
            Whether the parameters moved.
        """

    def weights(self) -> npt.NDArray[np.float32]:
        """What rankers serve with, always finite."""

    def state(self) -> State:
        """What `restore` takes."""

    def restore(self, state: Mapping[str, bytes | int | float]) -> None:
        """Take back a state."""
