"""Models: their form, their learner, and what that learner needs."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from rankstream.configuration.canary import CanarySettings, canary_faults
from rankstream.configuration.cluster import KafkaSettings
from rankstream.configuration.counting import StatisticsSettings
from rankstream.configuration.section import Fault, PositiveFloat, Section
from rankstream.configuration.training import TrainingSettings, plan_faults
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.envelope import (
    KINDS,
    NORMALISATIONS,
    fault_of_names,
    n_weights,
)
from rankstream.wire.routing import partition_of_model

ONLINE = "online"
"""Versions are what a learner makes of each list as it comes."""

TRAINED = "trained"
"""Versions are trained from sums, and nothing is learned online."""

PROMOTED = "promoted"
"""Versions are those of other models that were promoted, and nothing else."""

VERSIONS = (ONLINE, TRAINED, PROMOTED)

EVERY = ("optimiser",)
"""Options of every learner."""

LEARNERS: dict[str, tuple[str, ...]] = {
    "pdgd": (*EVERY, "counterfactual", "biased", "all_observed"),
    "dbgd": (*EVERY, "comparison", "unit", "tau"),
    "mgd": (*EVERY, "n_candidates", "comparison", "unit", "tau"),
    "pairwise": EVERY,
    "coltr": (*EVERY, "n_candidates", "unit", "variance_weight"),
    "pl-rank": (*EVERY, "n_samples", "cutoff", "examination"),
}
"""Options by name; the same as those of `models.learners.registry`.

What a learner can learn from stands on its class there, which is not imported here: a
service has no numba. A test holds both to the same rows.
"""


class ModelSettings(Section, frozen=True):
    """A ranker that learns: its form, what makes its versions, and what that needs.

    `feature_names` are in the order of the features, or none. `versions` are "online",
    by the `learner`, "trained", as `training` says, or "promoted" from other models.
    With `log_candidates` rankers log the features of all candidates. `learns_from`
    names models whose lists it learns from, with none its own; `learns_from_groups` the
    groups of the statistics whose lists it learns online from, with none all: what it
    learns can be judged on the others. With a `canary` versions go out to a share of
    sessions first.
    """

    features: Annotated[int, msgspec.Meta(ge=0)] = 0
    feature_names: list[str] = []
    kind: str = "linear"
    hidden: list[int] = []
    normalisation: str = "min-max"
    versions: str = ONLINE
    learner: str = "pdgd"
    learning_rate: PositiveFloat = 0.1
    decay: PositiveFloat = 1.0
    seed: int = 0
    options: dict[str, Any] = {}
    log_candidates: bool = False
    learns_from: list[str] = []
    learns_from_groups: list[int] = []
    training: TrainingSettings = TrainingSettings()
    canary: CanarySettings | None = None

    @property
    def logs_candidates(self) -> bool:
        """Whether rankers log the features of all candidates; training needs them."""
        return self.log_candidates or self.versions == TRAINED

    def sources_of(self, name: str) -> list[str]:
        """Names of the models whose lists the model of this name learns from."""
        return self.learns_from or [name]


def model_faults(
    name: str,
    model: ModelSettings,
    kafka: KafkaSettings,
    statistics: StatisticsSettings,
) -> Iterator[Fault]:
    """Each setting of the model of a name that cannot be so."""
    place = f"models.{name}"
    yield from _of_form(place, model)
    yield from _of_learner(place, model)
    yield from _of_sources(f"{place}.learns_from", model, kafka)
    yield from _of_groups(f"{place}.learns_from_groups", model, statistics.groups)
    yield from _of_canary(f"{place}.canary", model, statistics)
    yield from _of_training(f"{place}.training", model)


def _of_form(place: str, model: ModelSettings) -> Iterator[Fault]:
    for option, known in (
        ("kind", KINDS), ("normalisation", NORMALISATIONS), ("versions", VERSIONS),
    ):  # fmt: skip
        value = getattr(model, option)
        if value not in known:
            setting = f"{place}.{option}"
            yield setting, f"{setting} must be one of {list(known)}; got {value!r}"
    yield from _of_layers(place, model)
    if not model.features:
        setting = f"{place}.features"
        yield setting, f"{setting} must be set, 1 or more; got 0"
    if model.feature_names:
        wrong = fault_of_names(model.feature_names, model.features)
        if wrong:
            yield f"{place}.feature_names", f"{place}.feature_names: {wrong}"


def _of_learner(place: str, model: ModelSettings) -> Iterator[Fault]:
    setting, name, default = f"{place}.learner", model.learner, ModelSettings()
    if model.versions in (TRAINED, PROMOTED):
        own = ("learns_from",) if model.versions == PROMOTED else ()
        for each in ("learner", "options", "learns_from_groups", *own):
            if (value := getattr(model, each)) != getattr(default, each):
                yield (
                    f"{place}.{each}",
                    f"{place}.{each} must be left out where versions are "
                    f"{model.versions!r}, as nothing is learned online; got {value!r}: "
                    "take it out",
                )
    elif name not in LEARNERS:
        yield setting, f"{setting} must be one of {sorted(LEARNERS)}; got {name!r}"
    elif unknown := sorted(set(model.options) - set(LEARNERS[name])):
        setting = f"{place}.options"
        yield (
            setting,
            f"{setting} of {name} must be among {sorted(LEARNERS[name])}; got "
            f"{unknown}",
        )


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
    if model.versions == TRAINED:
        yield from plan_faults(setting, model.training)
    elif model.training != TrainingSettings():
        yield (
            setting,
            f"{setting} must be set where versions are 'trained' only; got it with "
            f"{model.versions!r}: take it out, or set versions = 'trained'",
        )


def _of_canary(
    setting: str, model: ModelSettings, statistics: StatisticsSettings
) -> Iterator[Fault]:
    if model.canary is None:
        return
    if model.versions == ONLINE:
        yield (
            setting,
            f"{setting} must be left out where versions are {ONLINE!r}, as each list "
            "makes another one: take it out, or set versions = 'promoted' and promote "
            "from this model under another name",
        )
    others = [each for each in statistics.classes() if each != statistics.reward]
    yield from canary_faults(setting, model.canary, others)


def _of_groups(setting: str, model: ModelSettings, n_groups: int) -> Iterator[Fault]:
    groups = model.learns_from_groups
    if not groups:
        return
    if len(set(groups)) < len(groups) or not 0 <= min(groups) <= max(groups) < n_groups:
        yield (
            setting,
            f"{setting} must be groups of the statistics, each once, from 0 to "
            f"{n_groups - 1}; got {groups}",
        )
    elif len(groups) == n_groups:
        yield (
            setting,
            f"{setting} must leave groups on which what is learned can be judged; got "
            f"all {n_groups}: leave some out, or take the setting out",
        )


def each_once(setting: str, sources: list[str]) -> Iterator[Fault]:
    """That names of sources repeat."""
    if len(set(sources)) < len(sources):
        yield setting, f"{setting} must be names, each once; got {sources}"


def _of_sources(
    setting: str, model: ModelSettings, kafka: KafkaSettings
) -> Iterator[Fault]:
    sources = model.learns_from
    yield from each_once(setting, sources)
    if model.versions != ONLINE:
        return
    if not all(sources):
        yield (
            setting,
            f"{setting} must be names of models, as an online learner goes by them; "
            f"got {sources}: take '' out, or set versions = 'trained', which can learn "
            "from lists of no model",
        )
    else:
        at = [partition_of_model(each, kafka.learner_partitions) for each in sources]
        if len(set(at)) > 1:
            yield (
                setting,
                f"{setting} must be models of one partition of interactions, as an "
                f"online learner reads one; got {sources} in {at}: set "
                "kafka.learner_partitions = 1 in another namespace, or name one",
            )
