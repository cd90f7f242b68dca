"""What settings of training, and of whose lists a model learns from, may not be."""

from collections.abc import Iterator
from itertools import pairwise

from rankstream.sections import (
    KafkaSettings,
    ModelSettings,
    TrainingSettings,
)
from rankstream.wire.routing import partition_of_model

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

SELECTED = "selected"
"""No loss of its own: the best of several, by held-out queries."""

Fault = tuple[str, str]
"""The full name of a setting, and a sentence about it."""


def training_faults(
    name: str, model: ModelSettings, kafka: KafkaSettings
) -> Iterator[Fault]:
    """What is wrong with these settings of the model of a name."""
    place = f"models.{name}"
    yield from _of_sources(f"{place}.learns_from", model, kafka)
    if model.is_trained:
        yield from _of_schedule(f"{place}.training", model.training)
        yield from _of_examination(f"{place}.training", model.training)
        yield from _of_losses(f"{place}.training", model.training)
        yield from _of_estimator(f"{place}.training", model.training)
    elif model.is_curve:
        yield from _of_schedule(f"{place}.training", model.training)
    elif model.training != TrainingSettings():
        setting = f"{place}.training"
        yield (
            setting,
            f"{setting} must be set where learner is 'trained' or 'examination' only; "
            f"got it with {model.learner!r}: take it out, or set the learner",
        )


def _of_sources(
    setting: str, model: ModelSettings, kafka: KafkaSettings
) -> Iterator[Fault]:
    sources = model.learns_from
    if len(set(sources)) < len(sources):
        yield setting, f"{setting} must be names, each once; got {sources}"
    elif model.learns_online and not all(sources):
        yield (
            setting,
            f"{setting} must be names of models, as an online learner goes by them; "
            f"got {sources}: take '' out, or set learner = 'trained', which can learn "
            "from lists of no model",
        )
    elif model.learns_online:
        at = [partition_of_model(each, kafka.learner_partitions) for each in sources]
        if len(set(at)) > 1:
            yield (
                setting,
                f"{setting} must be models of one partition of interactions, as an "
                f"online learner reads one; got {sources} in {at}: set "
                "kafka.learner_partitions = 1 in another namespace, or name one",
            )


def _of_schedule(place: str, training: TrainingSettings) -> Iterator[Fault]:
    after = training.after
    if any(later <= earlier for earlier, later in pairwise(after)):
        setting = f"{place}.after"
        yield setting, f"{setting} must ascend; got {after}"
    at = training.at_ms
    if any(later <= earlier for earlier, later in pairwise(at)):
        setting = f"{place}.at"
        yield setting, f"{setting} must ascend; got {[str(x) for x in training.at]}"
    setting, first, last = f"{place}.last", training.first, training.last
    if training.interventions > 1 and last <= first:
        yield (
            setting,
            f"{setting} must be more than first, {first}, for {training.interventions} "
            f"interventions between; got {last}",
        )
    elif training.interventions > 1 and last - first < training.interventions - 1:
        yield (
            setting,
            f"{setting} must be {first + training.interventions - 1} or more, for "
            f"{training.interventions} interventions from {first} on; got {last}",
        )


def _of_estimator(place: str, training: TrainingSettings) -> Iterator[Fault]:
    if training.estimator not in ("", *ESTIMATORS):
        setting = f"{place}.estimator"
        yield (
            setting,
            f"{setting} must be one of {', '.join(ESTIMATORS)}, or empty, so that the "
            f"log says which; got {training.estimator!r}",
        )


def _of_losses(place: str, training: TrainingSettings) -> Iterator[Fault]:
    setting, losses = f"{place}.loss", training.losses
    if training.loss not in (*LOSSES, SELECTED):
        known = ", ".join((*LOSSES, SELECTED))
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


def _of_examination(place: str, training: TrainingSettings) -> Iterator[Fault]:
    if any(each > 1 for each in training.examination):
        setting = f"{place}.examination"
        yield (
            setting,
            f"{setting} must be probabilities by rank, above 0 and at most 1; got "
            f"{training.examination}",
        )
