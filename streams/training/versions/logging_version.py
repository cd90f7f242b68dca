"""A version that draws lists of a comparison: LogOpt in place of a loss of rankings.

A column of the features says how much more likely one ranker's list has the item looked
at than the other's. So the rankers themselves are not needed, and may be the service's.
"""

import math
from collections.abc import Callable, Sequence

import numpy as np

from models.arrays import Floats
from models.estimators.bias_curve import BiasCurve
from models.logging_policy.policy_network import (
    ComparedQueries,
    NetworkPlan,
    trained_policy,
)
from models.optimisers.optimiser import OptimiserConfig
from models.training.exploration import Exploration, least_exposure
from models.training.query_chunk import QueryChunk
from models.training.ranker_training import Epoch, Trained
from rankstream.configuration.models import ModelSettings
from rankstream.configuration.training import LOGGING_LOSS
from rankstream.ranking.logging_options import LoggingOptions
from rankstream.ranking.logging_policy import EXTRAS
from rankstream.ranking.methods import LOGGING_POLICY
from rankstream.settings import Settings
from streams.native.placing import placements_of_scores
from streams.training.curves.known_curve import KnownCurve
from streams.training.gathering import Gathered
from streams.training.versions.fitted_ranker import Fitted, ranker_of_model

APART = 0.1
"""By which share numbers differ, where nobody knows how well they are known."""


def logging_version(
    model: ModelSettings,
    start: Floats,
    gathered: Gathered,
    curve: BiasCurve,
    on_epoch: Callable[[Epoch], object],
) -> tuple[Fitted, Exploration]:
    """Train a policy whose lists tell most of a difference in clicks.

    Scores are served as they come: how far a policy explores is what was optimised.

    Parameters
    ----------
    start : [n_parameters]
        Of the parent; where hidden units of it are all alike, as before the first
        training, new ones are drawn from the seed.
    curve
        What P(looked at | rank) are; no curve of trust bias. In ratios to rank 1 it
        will do: E[x^2] is the same for all multiples of it.
    on_epoch
        Takes each pass: its loss is the mean of E[x^2], and no DCG is told.

    Raises
    ------
    ValueError
        Where rankers differ in no query, differences are none, or the curve has trust
        bias or too few ranks.
    """
    ranker, plan = ranker_of_model(model), model.training
    if curve.has_trust_bias or curve.n_ranks < plan.cutoff:
        got = "trust bias" if curve.has_trust_bias else f"{curve.n_ranks} ranks alone"
        raise ValueError(
            "a logging policy needs a curve of position bias alone, of each of the "
            f"{plan.cutoff} ranks of its lists; got one with {got}: set `examination` "
            "of the training"
        )
    training, held_out = gathered.chunks(plan.least_support)
    read = [
        each[number] for each in (training, held_out) for number in range(len(each))
    ]
    queries, features = compared_queries(
        read, curve.alpha[: plan.cutoff], model.features - len(EXTRAS)
    )
    rng = np.random.default_rng(plan.seed)
    begin = start if start.any() else ranker.initial_parameters(rng=rng)
    optimiser = OptimiserConfig("adam", plan.learning_rate)
    epochs: list[Epoch] = []

    def take(number: int, moment: float) -> None:
        epochs.append(Epoch(number, moment, math.nan))
        on_epoch(epochs[-1])

    found = trained_policy(
        ranker,
        begin,
        features,
        queries,
        NetworkPlan(
            epochs=plan.epochs,
            batch=plan.batch,
            least_first=plan.floor / float(curve.alpha[0]),
            optimiser=optimiser,
        ),
        rng=rng,
        on_epoch=take,
    )
    served = found.astype(np.float32).astype(np.float64)
    least = least_exposure(
        served, training, cutoff=plan.cutoff, placements=placements_of_scores,
        ranker=ranker,
    )  # fmt: skip
    trained = Trained(found, plan.epochs, epochs)
    fitted = Fitted(trained, LOGGING_LOSS, [], ranker, begin)
    return fitted, Exploration(served, 1.0, 1.0, least)


def as_credited(name: str, settings: Settings, known: KnownCurve) -> KnownCurve:
    """The same curve, with a warning where lists are credited by another one.

    An experiment has numbers of its own, which must not change while it runs; a curve
    is fitted again and again. What is credited stays unbiased for the experiment's
    numbers, and policies are then trained for other users than those. Another one is
    outside the curve's interval, or apart by a tenth where there is none.

    Parameters
    ----------
    name
        Of the model of policies.
    """
    alpha, told = known.curve.alpha, [known.warning] if known.warning else []
    low, high = (1.0 - APART) * alpha, (1.0 + APART) * alpha
    if known.ends is not None:
        low, high = (
            np.where(np.isnan(end), other, end)
            for end, other in zip(known.ends[:2], (low, high), strict=True)
        )
    for experiment, one in settings.experiments.items():
        if one.method != LOGGING_POLICY or one.options.get("model") != name:
            continue
        theta = np.array(LoggingOptions.of(one).examination[: one.length])
        theta = theta[: len(alpha)] * alpha[0] / theta[0]
        is_outside = (theta < low[: len(theta)]) | (theta > high[: len(theta)])
        is_outside[0] = False  # the unit
        if is_outside.any():
            ranks = ", ".join(map(str, np.flatnonzero(is_outside) + 1))
            told.append(
                f"experiments.{experiment} credits lists by an examination that is "
                f"another at ranks {ranks}"
            )
    return known._replace(warning="; ".join(told))


def compared_queries(
    chunks: Sequence[QueryChunk], examination: Floats, column: int
) -> tuple[ComparedQueries, Floats]:
    """All queries of chunks, and the features of their items, [n_items, n_features].

    Parameters
    ----------
    chunks
        At least one. Values are P(click | looked at), brought into [0, 1]. Items of
        unknown value are taken for never clicked: the floor keeps them seen.
    examination : [n_ranks]
    column
        Of the features, that is the difference.

    Raises
    ------
    ValueError
        Where a difference is outside [-1, 1].
    """
    sizes = np.concatenate([np.diff(chunk.offsets) for chunk in chunks])
    features = np.concatenate([chunk.features for chunk in chunks]).astype(np.float64)
    values = np.concatenate([np.where(c.is_kept, c.values, 0.0) for c in chunks])
    differences = np.ascontiguousarray(features[:, column])
    if not (np.abs(differences) <= 1.0).all():
        raise ValueError(
            f"differences must lie in [-1, 1]; got {np.abs(differences).max():g}: "
            "draw lists by `rankstream.logging_lists`, which logs them"
        )
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    theta = np.ascontiguousarray(examination, np.float64)
    relevance = np.clip(values, 0.0, 1.0)
    return ComparedQueries(offsets, relevance, differences, theta), features
