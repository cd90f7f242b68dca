"""How long trees are boosted, and what each may be like."""

from dataclasses import dataclass, replace

import numpy as np

from models.losses.compiled_loss import is_convex
from models.losses.registry import LOSSES, compiled_loss, loss_of


@dataclass(frozen=True)
class BoostingPlan:
    """How many trees are grown, and what each may be like.

    Parameters
    ----------
    cutoff
        Ranks that count, at least 1.
    rounds
        At most so many trees, at least 1.
    patience, least_gain, seed
        As `models.training.ranker_training.TrainingPlan`, of rounds.
    loss
        One of `models.losses.registry.LOSSES` that is convex as ranks are held.
    leaves
        Of a tree at most, at least 2.
    learning_rate
        What the leaves of each tree are multiplied by, in (0, 1].
    least_items
        Items of known value in a leaf, at least 1.
    share_of_features, share_of_queries
        Drawn anew for each tree, in (0, 1].
    regularisation
        Added to the curvature of each leaf, in units of that of the mean item at the
        start; at least 0.
    monotone : [n_features] or [0]
        1 where scores must rise with a feature, -1 where they must fall, else 0.
    is_zero_missing
        Whether a feature of 0 is one that is missing.

    Raises
    ------
    ValueError
        Where the loss has no curvature to step by, or a number is outside its range.
    """

    cutoff: int = 10
    rounds: int = 300
    patience: int = 30
    least_gain: float = 1e-4
    seed: int = 0
    loss: str = "truncated-lambda"
    leaves: int = 31
    learning_rate: float = 0.05
    least_items: int = 20
    share_of_features: float = 1.0
    share_of_queries: float = 1.0
    regularisation: float = 1.0
    monotone: tuple[int, ...] = ()
    is_zero_missing: bool = False

    def __post_init__(self) -> None:
        loss_of(self.loss)
        if not is_convex(compiled_loss(self.loss, 1, 1)):
            taken = [x for x in LOSSES if is_convex(compiled_loss(x, 1, 1))]
            raise ValueError(
                "the loss of trees must have a curvature of at least 0, as each step "
                f"is taken by it; got {self.loss!r}: take one of {', '.join(taken)}"
            )
        for name, least in (
            ("cutoff", 1), ("rounds", 1), ("patience", 1), ("least_gain", 0),
            ("leaves", 2), ("least_items", 1), ("regularisation", 0),
        ):  # fmt: skip
            if not least <= getattr(self, name) < np.inf:
                raise ValueError(
                    f"{name} must be finite and at least {least}; got "
                    f"{getattr(self, name)}"
                )
        for name in ("learning_rate", "share_of_features", "share_of_queries"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(
                    f"{name} must lie in (0, 1]; got {getattr(self, name)}"
                )

    def by(self, loss: str) -> "BoostingPlan":
        """The same by another loss."""
        return replace(self, loss=loss)
