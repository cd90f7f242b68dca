"""How far a version may leave its parent: on the way to it where it could lose more."""

from collections.abc import Callable

import numpy as np

from models.estimators.bias_curve import BiasCurve
from models.training.bounded_step import N_HALVINGS, BoundedStep, bounded_step
from models.training.exploration import Exploration, least_exposure
from models.training.largest_loss import Falls
from rankstream.configuration.models import ModelSettings
from streams.native.placing import placements_of_scores
from streams.training.gathering import Gathered
from streams.training.inputs import TrainingRefused
from streams.training.versions.either_ranker import EitherRanker
from streams.training.versions.fitted_ranker import Fitted


def bounded_version(
    model: ModelSettings,
    fitted: Fitted,
    made: Exploration,
    gathered: Gathered,
    curve: BiasCurve,
    on_look: Callable[[], object],
) -> BoundedStep:
    """What is served: as made, or on the way to it where it could lose too much.

    From a parent of another kind there is no way: then it is served as it was.

    Parameters
    ----------
    on_look
        Is called before each look at all queries.

    Raises
    ------
    ValueError
        Where weights give scores that are not finite.
    """
    plan = model.training
    falls = Falls(
        fitted.start,
        gathered.shown(),
        curve.alpha[: plan.cutoff],
        placements=placements_of_scores,
        ranker=fitted.ranker,
    )
    most = np.inf if plan.largest_loss is None else plan.largest_loss
    return bounded_step(
        fitted.start,
        made.weights,
        falls,
        most,
        on_look=on_look,
        n_halvings=N_HALVINGS if _has_way(fitted, made) else 0,
    )


def _has_way(fitted: Fitted, made: Exploration) -> bool:
    """Whether there is anything between the parent and what was made."""
    ranker = fitted.ranker
    return not isinstance(ranker, EitherRanker) or ranker.has_way(
        fitted.start, made.weights
    )


def after_bound(
    name: str,
    model: ModelSettings,
    fitted: Fitted,
    bounded: BoundedStep,
    made: Exploration,
    gathered: Gathered,
) -> Exploration:
    """The policy at the weights that the bound left.

    Raises
    ------
    TrainingRefused
        Where it explores too little, as its parent does.
    """
    if bounded.step == 1.0:
        return made
    plan = model.training
    least = least_exposure(
        bounded.weights,
        gathered.chunks(plan.least_support)[0],
        cutoff=plan.cutoff,
        placements=placements_of_scores,
        ranker=fitted.ranker,
    )
    if least < plan.exposure_floor:
        raise TrainingRefused(
            f"a version of {name!r} within largest_loss, {plan.largest_loss:g}, must "
            f"have a mean least exposure of {plan.exposure_floor:g}; it has {least:g}, "
            "as its parent has less: raise largest_loss, or lower exposure_floor"
        )
    return made._replace(weights=bounded.weights, least_exposure=least)
