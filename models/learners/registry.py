"""Learners by the name that settings use; where a new one is entered."""

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from models.learners.coltr import ColtrConfig, ColtrLearner
from models.learners.duels import MGD_CANDIDATES, DuelConfig, DuelLearner
from models.learners.learner import Learner
from models.learners.pairwise import PairwiseConfig, PairwiseLearner
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.learners.pl_rank import PlRankConfig, PlRankLearner

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


def _dbgd(settings: LearnerSettings) -> Learner:
    own = ("comparison", "unit", "tau")
    return DuelLearner(DuelConfig(**_common(settings, *own)))


def _mgd(settings: LearnerSettings) -> Learner:
    own = ("n_candidates", "comparison", "unit", "tau")
    given = {"n_candidates": MGD_CANDIDATES, **_common(settings, *own)}
    return DuelLearner(DuelConfig(**given))


def _pairwise(settings: LearnerSettings) -> Learner:
    return PairwiseLearner(PairwiseConfig(**_common(settings)))


def _coltr(settings: LearnerSettings) -> Learner:
    own = ("n_candidates", "unit", "variance_weight")
    return ColtrLearner(ColtrConfig(**_common(settings, *own)))


def _pl_rank(settings: LearnerSettings) -> Learner:
    own = ("n_samples", "cutoff", "examination")
    given = _common(settings, *own)
    if "examination" in given:
        given["examination"] = tuple(given["examination"])
    return PlRankLearner(PlRankConfig(**given))


LEARNERS: dict[str, Callable[[LearnerSettings], Learner]] = {
    "pdgd": _pdgd,
    "dbgd": _dbgd,
    "mgd": _mgd,
    "pairwise": _pairwise,
    "coltr": _coltr,
    "pl-rank": _pl_rank,
}


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
