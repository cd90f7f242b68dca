"""What every online learner offers: interactions in, weights and state out."""

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

State = dict[str, bytes | int | float]
"""All that a learner is; written and read back it gives the same bits."""

NOTHING = np.zeros((0, 0))
NOBODY = np.zeros(0, np.int64)


class TrainingExample(NamedTuple):
    """One closed impression, as learners read it.

    A learner uses what it needs; what an impression did not log is empty.

    Parameters
    ----------
    scores : [n]
        Logged scores of all candidates.
    shown : [k]
        Rows of the shown ones, in displayed order.
    clicks : [k]
    features : [k, n_features]
        Of the shown ones, in displayed order, normalised as they were scored.
    seed
        Of the draws that made the list.
    ranks : [k, n_rankers]
        Where every ranker of a multileaved list has the shown documents, from 1;
        the first is the ranker that learns.
    teams : [k]
        Which ranker a multileaved document counts for; -1 for none.
    candidates : [n, n_features]
        Features of all candidates.
    """

    scores: npt.NDArray[np.floating]
    shown: npt.NDArray[np.integer]
    clicks: npt.NDArray[np.bool_]
    features: npt.NDArray[np.floating]
    seed: int = 0
    ranks: npt.NDArray[np.integer] = NOBODY.reshape(0, 0)
    teams: npt.NDArray[np.integer] = NOBODY
    candidates: npt.NDArray[np.floating] = NOTHING


class Learner(Protocol):
    """A ranker's parameters that move with interactions, in the order of their log."""

    policies: frozenset[str]
    """Logging policies that it can learn from."""

    needs_candidates: ClassVar[bool]
    """Whether it must know the features of what was not shown."""

    @property
    def updates(self) -> int:
        """Interactions that moved the parameters."""

    def learn(self, example: TrainingExample) -> bool:
        """Fold one interaction; returns whether the parameters moved.

        Raises
        ------
        ValueError
            Where shapes or rows contradict each other.
        """

    def learn_all(self, examples: Sequence[TrainingExample]) -> int:
        """Fold consecutive interactions; the same as one after another by `learn`.

        Returns
        -------
        int
            How many contradict themselves, or lack what this learner needs, and so
            were left out.
        """

    def weights(self) -> npt.NDArray[np.float32]:
        """What rankers serve with, always finite."""

    def state(self) -> State:
        """What `restore` takes."""

    def restore(self, state: Mapping[str, bytes | int | float]) -> None:
        """Take back a state."""
