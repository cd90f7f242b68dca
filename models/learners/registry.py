"""Learners by the name that settings use; where a new one is entered."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from models.learners.coltr import ColtrConfig, ColtrLearner
from models.learners.duel_learner import MGD_CANDIDATES, DuelConfig, DuelLearner
from models.learners.learner import Learner
from models.learners.pairwise import PairwiseConfig, PairwiseLearner
from models.learners.parameters import FixedLearner, LearnerConfig
from models.learners.pdgd import PdgdConfig, PdgdLearner
from models.learners.pl_rank import PlRankConfig, PlRankLearner


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


class Entry(NamedTuple):
    """A learner by name: its class, how it is made, and what settings may say of it.

    `options` are those beside the ones of every learner; `given` holds what this name
    means where settings are silent.
    """

    learner: type[Any]
    config: Callable[..., LearnerConfig]
    options: tuple[str, ...] = ()
    given: Mapping[str, Any] = MappingProxyType({})


OPTIONS = ("optimiser",)
"""Of every learner."""

LEARNERS: dict[str, Entry] = {
    "pdgd": Entry(
        PdgdLearner, PdgdConfig, ("counterfactual", "biased", "all_observed")
    ),
    "dbgd": Entry(DuelLearner, DuelConfig, ("comparison", "unit", "tau")),
    "mgd": Entry(
        DuelLearner,
        DuelConfig,
        ("n_candidates", "comparison", "unit", "tau"),
        {"n_candidates": MGD_CANDIDATES},
    ),
    "pairwise": Entry(PairwiseLearner, PairwiseConfig),
    "coltr": Entry(
        ColtrLearner, ColtrConfig, ("n_candidates", "unit", "variance_weight")
    ),
    "pl-rank": Entry(
        PlRankLearner, PlRankConfig, ("n_samples", "cutoff", "examination")
    ),
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
    entry = LEARNERS[settings.learner]
    known = {*OPTIONS, *entry.options}
    if unknown := sorted(set(settings.options) - known):
        raise ValueError(
            f"options of {settings.learner} must be among {sorted(known)}; "
            f"got {unknown}"
        )
    return _made(entry, settings, {**entry.given, **settings.options})


def fixed_ranker_of(settings: LearnerSettings) -> Learner:
    """A learner that learns nothing, of a model whose versions come from elsewhere."""
    return _made(Entry(FixedLearner, LearnerConfig), settings, {})


def _made(entry: Entry, settings: LearnerSettings, given: dict[str, Any]) -> Learner:
    learner: Learner = entry.learner(
        entry.config(
            n_features=settings.features,
            kind=settings.kind,
            hidden=tuple(settings.hidden),
            learning_rate=settings.learning_rate,
            decay=settings.decay,
            seed=settings.seed,
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in given.items()
            },
        )
    )
    return learner
