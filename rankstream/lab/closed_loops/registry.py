"""Closed loops by the configuration of their learner."""

from typing import Any

import numpy as np

from models.click_models.click_model import ClickModel
from models.learners.duel_learner import DuelConfig
from models.learners.pairwise import PairwiseConfig
from models.learners.parameters import ExampleLearner, LearnerConfig
from models.learners.pdgd import PdgdConfig
from models.learners.registry import LEARNERS
from rankstream.lab.closed_loops.delayed_pdgd_loop import LaggingLoop
from rankstream.lab.closed_loops.duel_loop import DuelLoop
from rankstream.lab.closed_loops.linear_pdgd_loop import LinearPdgdLoop
from rankstream.lab.closed_loops.pair_loop import PairLoop
from rankstream.lab.closed_loops.ranker_loop import ExampleLoop
from rankstream.lab.closed_loops.world import Loop, World


def loop_of(
    config: LearnerConfig,
    world: World,
    users: ClickModel,
    *,
    lag: int = 0,
    cutoff: int = 10,
    rng: np.random.Generator,
) -> Loop:
    """The learner among its users, at its beginning.

    Parameters
    ----------
    lag
        Impressions that served parameters lack, for PDGD.

    Raises
    ------
    ValueError
        Where no loop knows such a learner, or the world does not fit.
    """
    if config.n_features != world.features.shape[1]:
        raise ValueError(
            f"the world must have {config.n_features} features; "
            f"got {world.features.shape[1]}"
        )
    if lag and not isinstance(config, PdgdConfig):
        raise ValueError(f"lag must be 0 but for PDGD; got {lag}")
    if isinstance(config, PdgdConfig) and (lag or config.counterfactual):
        return LaggingLoop(config, world, users, lag=lag, cutoff=cutoff, rng=rng)
    if isinstance(config, PdgdConfig) and _is_plain(config):
        return LinearPdgdLoop(config, world, users, cutoff=cutoff, rng=rng)
    if isinstance(config, PdgdConfig | PairwiseConfig):
        return PairLoop(config, world, users, cutoff=cutoff, rng=rng)
    if isinstance(config, DuelConfig):
        return DuelLoop(config, world, users, cutoff=cutoff, rng=rng)
    learner = _learner_of(config)
    return ExampleLoop(learner, world, users, cutoff=cutoff, rng=rng)


def _learner_of(config: LearnerConfig) -> ExampleLearner[Any]:
    """The learner that lives by its own verbs: any that learns by examples."""
    for entry in LEARNERS.values():
        if entry.config is type(config) and issubclass(entry.learner, ExampleLearner):
            learner: ExampleLearner[Any] = entry.learner(config)
            return learner
    raise ValueError(f"no loop is known for {type(config).__name__}")


def _is_plain(config: PdgdConfig) -> bool:
    """Whether the fast loop of linear PDGD does just this."""
    is_sgd = config.kind == "linear" and config.optimiser == "sgd"
    return is_sgd and not (config.biased or config.all_observed)
