"""Learners by the name that settings use; where a new one is entered."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from models.learners.learner import Learner
from models.learners.pdgd import PdgdConfig, PdgdLearner

__all__ = ["LEARNERS", "Learner", "LearnerSettings", "learner_of"]


class LearnerSettings(Protocol):
    """What settings say about a model that learns."""

    @property
    def features(self) -> int:
        """Features of a document."""

    @property
    def kind(self) -> str:
        """Of the ranker."""

    @property
    def hidden(self) -> Sequence[int]:
        """Units of its hidden layers."""

    @property
    def learner(self) -> str:
        """Name in `LEARNERS`."""

    @property
    def learning_rate(self) -> float:
        """Of the first update."""

    @property
    def decay(self) -> float:
        """Factor of the rate after each update."""

    @property
    def seed(self) -> int:
        """Of the initial parameters."""

    @property
    def options(self) -> dict[str, Any]:
        """What only this learner knows."""


def _common(settings: LearnerSettings, *own: str) -> dict[str, Any]:
    """What all learners take, and the options; `own` are those of this one."""
    known = {"optimiser", *own}
    if unknown := sorted(set(settings.options) - known):
        raise ValueError(
            f"options of {settings.learner} must be among {sorted(known)}; "
            f"got {unknown}"
        )
    return {
        "n_features": settings.features,
        "kind": settings.kind,
        "hidden": tuple(settings.hidden),
        "learning_rate": settings.learning_rate,
        "decay": settings.decay,
        "seed": settings.seed,
        **settings.options,
    }


def _pdgd(settings: LearnerSettings) -> Learner:
    own = ("counterfactual", "biased", "all_observed")
    return PdgdLearner(PdgdConfig(**_common(settings, *own)))


LEARNERS: dict[str, Callable[[LearnerSettings], Learner]] = {"pdgd": _pdgd}


def learner_of(settings: LearnerSettings) -> Learner:
    """The learner that settings name, at its beginning.

    Raises
    ------
    ValueError
        Where the name or what belongs to it is unknown.
    """
    if settings.learner not in LEARNERS:
        raise ValueError(
            f"learner must be one of {sorted(LEARNERS)}; got {settings.learner!r}"
        )
    return LEARNERS[settings.learner](settings)
