"""Models: their form, their learner, and what that learner needs."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from rankstream.configuration.cluster import KafkaSettings
from rankstream.configuration.section import Fault, PositiveFloat, Section
from rankstream.configuration.training import (
    TrainingSettings,
    plan_faults,
    schedule_faults,
)
from rankstream.ranking.learner_options import EXAMINATION, TRAINED, check_learner
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.envelope import (
    KINDS,
    NORMALISATIONS,
    fault_of_names,
    n_weights,
)
from rankstream.wire.routing import partition_of_model


class ModelSettings(Section, frozen=True):
    """A ranker that learns, or a curve: its form, its learner, what that learner needs.

    `feature_names` are in the order of the features, or none. With `log_candidates`
    rankers log the features of all candidates. The `learner` of a model that nothing
    learns online is "trained", that of a curve of bias "examination"; `training` is of
    such models alone, and a curve has no features. `learns_from` names models whose
    lists it learns from, with none its own; with none a curve is of all lists.
    """

    features: Annotated[int, msgspec.Meta(ge=0)] = 0
    feature_names: list[str] = []
    kind: str = "linear"
    hidden: list[int] = []
    normalisation: str = "min-max"
    learner: str = "pdgd"
    learning_rate: PositiveFloat = 0.1
    decay: PositiveFloat = 1.0
    seed: int = 0
    options: dict[str, Any] = {}
    log_candidates: bool = False
    learns_from: list[str] = []
    training: TrainingSettings = TrainingSettings()

    @property
    def is_trained(self) -> bool:
        """Whether its versions come from training alone."""
        return self.learner == TRAINED

    @property
    def is_curve(self) -> bool:
        """Whether it is a curve of bias, which ranks nothing."""
        return self.learner == EXAMINATION

    @property
    def learns_online(self) -> bool:
        """Whether a learner takes each list as it comes."""
        return not (self.is_trained or self.is_curve)

    @property
    def logs_candidates(self) -> bool:
        """Whether rankers log the features of all candidates; training needs them."""
        return self.log_candidates or self.is_trained

    def sources_of(self, name: str) -> list[str]:
        """Names of the models whose lists the model of this name learns from."""
        return self.learns_from or [name]


def model_faults(
    name: str, model: ModelSettings, kafka: KafkaSettings
) -> Iterator[Fault]:
    """Each setting of the model of a name that cannot be so."""
    place = f"models.{name}"
    yield from _of_form(place, model)
    yield from _of_sources(f"{place}.learns_from", model, kafka)
    yield from _of_training(f"{place}.training", model)


def _of_form(place: str, model: ModelSettings) -> Iterator[Fault]:
    for option, known in (("kind", KINDS), ("normalisation", NORMALISATIONS)):
        value = getattr(model, option)
        if value not in known:
            setting = f"{place}.{option}"
            yield setting, f"{setting} must be one of {list(known)}; got {value!r}"
    yield from _of_layers(place, model)
    if not model.features and not model.is_curve:
        setting = f"{place}.features"
        yield setting, f"{setting} must be set, 1 or more; got 0"
    if model.feature_names and not model.is_curve:
        wrong = fault_of_names(model.feature_names, model.features)
        if wrong:
            yield f"{place}.feature_names", f"{place}.feature_names: {wrong}"
    try:
        check_learner(model.learner, model.options)
    except ValueError as error:
        setting, _, _ = str(error).partition(" ")  # learner or options
        yield f"{place}.{setting}", f"{place}.{error}"


def _of_layers(place: str, model: ModelSettings) -> Iterator[Fault]:
    setting = f"{place}.hidden"
    if any(size < 1 for size in model.hidden):
        yield setting, f"{setting} must be sizes of 1 or more; got {model.hidden}"
        return
    if (model.kind == "linear") == bool(model.hidden):
        yield (
            setting,
            f"{setting} must name the layers of a network, and none of a linear "
            f"ranker; got {model.hidden} for {model.kind!r}",
        )
    n_bytes = 4 * n_weights(model.features, model.hidden) if model.features else 0
    if n_bytes > MODEL_BYTES:
        # Before anything of that size is made.
        yield (
            place,
            f"{place} must have at most {MODEL_BYTES // 4} weights, as a snapshot is "
            f"one record; got {n_bytes // 4}: take fewer features or hidden units",
        )


def _of_training(setting: str, model: ModelSettings) -> Iterator[Fault]:
    if model.is_trained:
        yield from plan_faults(setting, model.training)
    elif model.is_curve:
        yield from schedule_faults(setting, model.training)
    elif model.training != TrainingSettings():
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
