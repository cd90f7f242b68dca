"""What is asked of a log: by which estimator, under which curve, of whose clicks."""

from collections.abc import Callable
from typing import NamedTuple

from models.estimators.bias_curve import BiasCurve
from models.estimators.choice import Choice
from models.estimators.policy_reward import RankWeights
from streams.estimation.curve_replicates import CurveReplicates
from streams.statistics.logged_queries import CELLS_AT_ONCE

LOGGED = "logged"
"""The name of what the log shows: its policies, mixed as they were."""


class Question(NamedTuple):
    """What is asked of a log.

    Parameters
    ----------
    choice
        The estimator, and what becomes of lists of unknown policies.
    curve
        Of bias, and its fits without each group.
    weights_of
        What ranks are worth, given the curve.
    n_groups
        `statistics.groups` of the statistics.
    groups
        Whose clicks values are made of.
    base
        Name of the policy that others are compared with.
    n_ranks
        Ranks that policies show at most; 0: as many as lists of the set have.
    cells_at_once
        See `streams.statistics.logged_queries`.
    has_classes
        Whether items of one class count as one, over all queries; see
        `models.estimators.item_classes`.
    """

    choice: Choice
    curve: CurveReplicates
    weights_of: Callable[[BiasCurve], RankWeights]
    n_groups: int
    groups: tuple[int, ...]
    base: str = LOGGED
    n_ranks: int = 0
    cells_at_once: int = CELLS_AT_ONCE
    has_classes: bool = False

    @property
    def estimator(self) -> str:
        """A name of `models.estimators.registry`."""
        return self.choice.estimator
