"""When a model is trained from sums, and how; and the role that trains."""

import math
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from typing import Annotated

import msgspec

from rankstream.configuration.section import (
    Fault,
    NotNegative,
    Positive,
    PositiveFloat,
    Section,
    Share,
)
from rankstream.configuration.trees import TreesSettings
from rankstream.ranking.logging_options import FLOOR

Moment = Annotated[int, msgspec.Meta(ge=0)] | Annotated[datetime, msgspec.Meta(tz=True)]

LOSSES = (
    "truncated-lambda",
    "lambda-loss-at-k",
    "lambda-loss",
    "lambda-rank",
    "arp-linear",
    "arp-logistic",
    "dcg-linear",
    "dcg-logistic",
    "dcg-at-k-linear",
    "dcg-at-k-logistic",
    "precision-at-k-linear",
    "precision-at-k-logistic",
    "policy-gradient",
    "proximal",
)
"""Those of `models.losses`, which services do without."""

ESTIMATORS = (
    "naive",
    "oblivious",
    "rerank",
    "policy-aware",
    "affine",
    "affine-shown",
    "intervention-oblivious",
    "intervention-aware",
    "self-normalised",
    "doubly-robust",
)
"""Those of `models.estimators`, which services do without."""

PROXIMAL, PROXIMAL_RATIO = "proximal", 1.25
"""The loss that takes a ratio, and which one where none is set."""

SELECTED = "selected"
"""No loss of its own: the best of several, by held-out queries."""


LOGGING_LOSS = "logging-policy"
"""The variance of lists that compare two rankers, in place of a loss of rankings."""


class Schedule(Section, frozen=True):
    """When something is made of what is counted.

    `after` are numbers of interactions, `first` and `last` the ends of a log scale on
    which so many `interventions` lie evenly, `at` event times (RFC 3339, or epoch
    milliseconds).
    """

    after: list[Positive] = []
    first: Positive = 10_000
    last: Annotated[int, msgspec.Meta(ge=0)] = 0
    interventions: Annotated[int, msgspec.Meta(ge=0, le=1_000)] = 0
    at: list[Moment] = []

    @property
    def at_ms(self) -> list[int]:
        """`at` as epoch milliseconds, in its order."""
        return [
            moment if isinstance(moment, int) else round(moment.timestamp() * 1_000)
            for moment in self.at
        ]

    @property
    def has_points(self) -> bool:
        """Whether anything but a request makes it."""
        return bool(self.after or self.at or self.interventions)


class TrainingSettings(Schedule, frozen=True):
    """When a model is trained from sums, and how; of models that are "trained".

    `loss` is one of `LOSSES`, or "selected": the best of `losses`; or "logging-policy",
    where versions draw lists that compare rankers, see `rankstream.logging_lists`.
    `examination` are probabilities by rank, `curve` names the curve of bias whose
    newest version is taken; with neither it is that of the only curve, else one that is
    estimated from the validation groups. `estimator` is one of `ESTIMATORS`; with none
    the log says which. `proximal_ratio` is of the loss "proximal" only, above 1.
    `largest_loss` bounds how far a version can fall behind its parent, in expected
    looks of a list. `floor` is of the loss "logging-policy" only, as `cutoff` is in
    its lists: the least P(looked at) of an item that compared rankers differ in.
    `trees` are of models of that kind, in the place of `epochs`, `batch`,
    `learning_rate` and `patience`.
    """

    cutoff: Positive = 10
    epochs: Positive = 50
    batch: Positive = 16
    learning_rate: PositiveFloat = 0.01
    patience: Positive = 5
    loss: str = "truncated-lambda"
    losses: list[str] = []
    least_gain: NotNegative = 1e-4
    seed: Annotated[int, msgspec.Meta(ge=0)] = 0
    temperature: PositiveFloat = 1.0
    exposure_floor: Share = 0.0
    least_support: NotNegative = 25.0
    most_unsupported: Share = 0.05
    examination: list[PositiveFloat] = []
    curve: str = ""
    estimator: str = ""
    held_out: Annotated[float, msgspec.Meta(gt=0, lt=1)] = 0.2
    proximal_ratio: Annotated[float, msgspec.Meta(gt=1)] = PROXIMAL_RATIO
    largest_loss: PositiveFloat | None = None
    floor: PositiveFloat = FLOOR
    trees: TreesSettings = TreesSettings()

    @property
    def takes_ratio(self) -> bool:
        """Whether a loss that it trains by does."""
        return PROXIMAL in (self.loss, *self.losses)


class TrainSettings(Section, frozen=True):
    """The role `train`; `memory_mb` bounds what a training holds.

    What is served is valued every `value_every_s`, 0 never.
    """

    memory_mb: Annotated[int, msgspec.Meta(ge=64)] = 512
    value_every_s: NotNegative = 600.0


def plan_faults(place: str, training: TrainingSettings) -> Iterator[Fault]:
    """Each setting of a training that cannot be so."""
    yield from schedule_faults(place, training)
    yield from _of_examination(place, training)
    yield from _of_losses(place, training)
    yield from _of_falls(place, training)
    if training.floor != FLOOR and training.loss != LOGGING_LOSS:
        setting = f"{place}.floor"
        yield (
            setting,
            f"{setting} must be set with the loss {LOGGING_LOSS!r} only; got "
            f"{training.floor} with {training.loss!r}: take it out, or set loss = "
            f"{LOGGING_LOSS!r}",
        )
    if training.estimator not in ("", *ESTIMATORS):
        setting = f"{place}.estimator"
        yield (
            setting,
            f"{setting} must be one of {', '.join(ESTIMATORS)}, or empty, so that the "
            f"log says which; got {training.estimator!r}",
        )


def schedule_faults(place: str, schedule: Schedule) -> Iterator[Fault]:
    """Each setting of a schedule that cannot be so."""
    after = schedule.after
    if any(later <= earlier for earlier, later in pairwise(after)):
        setting = f"{place}.after"
        yield setting, f"{setting} must ascend; got {after}"
    at = schedule.at_ms
    if any(later <= earlier for earlier, later in pairwise(at)):
        setting = f"{place}.at"
        yield setting, f"{setting} must ascend; got {[str(x) for x in schedule.at]}"
    setting, first, last = f"{place}.last", schedule.first, schedule.last
    if schedule.interventions > 1 and last <= first:
        yield (
            setting,
            f"{setting} must be more than first, {first}, for {schedule.interventions} "
            f"interventions between; got {last}",
        )
    elif schedule.interventions > 1 and last - first < schedule.interventions - 1:
        yield (
            setting,
            f"{setting} must be {first + schedule.interventions - 1} or more, for "
            f"{schedule.interventions} interventions from {first} on; got {last}",
        )


def _of_losses(place: str, training: TrainingSettings) -> Iterator[Fault]:
    setting, losses = f"{place}.loss", training.losses
    known_losses = (*LOSSES, SELECTED, LOGGING_LOSS)
    if training.loss not in known_losses:
        known = ", ".join(known_losses)
        yield setting, f"{setting} must be one of {known}; got {training.loss!r}"
    setting = f"{place}.losses"
    if training.loss != SELECTED:
        if losses:
            yield (
                setting,
                f"{setting} must be set where loss is 'selected' only; got {losses}: "
                "take it out, or set loss = 'selected'",
            )
        return
    unknown = [each for each in losses if each not in LOSSES]
    if unknown or len(losses) < 2 or len(set(losses)) < len(losses):
        yield (
            setting,
            f"{setting} must be two or more of {', '.join(LOSSES)}, each once, for "
            f"loss 'selected'; got {losses}",
        )


def _of_falls(place: str, training: TrainingSettings) -> Iterator[Fault]:
    setting, ratio = f"{place}.proximal_ratio", training.proximal_ratio
    if not 1.0 < ratio < math.inf:
        yield setting, f"{setting} must be a finite number above 1; got {ratio}"
    elif ratio != PROXIMAL_RATIO and not training.takes_ratio:
        yield (
            setting,
            f"{setting} must be set with the loss {PROXIMAL!r} only; got {ratio} with "
            f"{training.loss!r}: take it out, or set loss = {PROXIMAL!r}",
        )
    setting, most = f"{place}.largest_loss", training.largest_loss
    if most is not None and not 0.0 < most < math.inf:
        yield (
            setting,
            f"{setting} must be a finite number above 0, in expected looks of a list; "
            f"got {most}: leave it out for no bound",
        )


def _of_examination(place: str, training: TrainingSettings) -> Iterator[Fault]:
    if any(each > 1 for each in training.examination):
        setting = f"{place}.examination"
        yield (
            setting,
            f"{setting} must be probabilities by rank, above 0 and at most 1; got "
            f"{training.examination}",
        )
