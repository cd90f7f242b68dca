"""Models: their form, their learner, and what that learner needs."""

from collections.abc import Iterator
from typing import Annotated, Any

import msgspec

from rankstream.configuration.canary import CanarySettings, canary_faults
from rankstream.configuration.counting import StatisticsSettings
from rankstream.configuration.section import Fault, PositiveFloat, Section
from rankstream.configuration.training import SELECTED, TrainingSettings, plan_faults
from rankstream.configuration.trees_faults import trees_faults
from rankstream.wire.bounds import MODEL_BYTES
from rankstream.wire.envelope import (
    KINDS,
    NETWORKS,
    NORMALISATIONS,
    TREES,
    n_weights,
    names_of,
)
from rankstream.wire.feature_names import fault_of_names
from rankstream.wire.routing import partition_of_model
from rankstream.wire.topics import MIB

ONLINE = "online"
"""Versions are what a learner makes of each list as it comes."""

TRAINED = "trained"
"""Versions are trained from sums, and nothing is learned online."""

PROMOTED = "promoted"
"""Versions are those of other models that were promoted, and nothing else."""

VERSIONS = (ONLINE, TRAINED, PROMOTED)

LARGEST = 3.4e38
"""Of single precision, in which features are."""

FIXED = "fixed"
"""How features are normalised: by ranges that are the same for all queries."""

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

    `feature_names` are in the order of the features, or none. With the `kind`
    "selected" each version is linear or of trees, and `normalisation` is that of the
    linear ones. `versions` are "online",
    by the `learner`, "trained", as `training` says, or "promoted" from other models.
    Snapshots of trees take `snapshot_bytes` at most.
    With the normalisation "fixed" `feature_ranges`, the least and the most of each
    feature, become 0 and 1; without them a first training takes those of the log.
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
    feature_ranges: list[tuple[float, float]] = []
    snapshot_bytes: Annotated[int, msgspec.Meta(ge=1, le=MODEL_BYTES)] = 4 * MIB
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
    def normalises_queries(self) -> str:
        """How the candidates of each query are normalised, as snapshots say it."""
        return "none" if self.normalisation == FIXED else self.normalisation

    @property
    def logs_candidates(self) -> bool:
        """Whether rankers log the features of all candidates; training needs them."""
        return self.log_candidates or self.versions == TRAINED

    @property
    def forms(self) -> tuple["ModelSettings", ...]:
        """The same of each kind that a version may be of: itself where that is set."""
        if self.kind != SELECTED:
            return (self,)
        return (
            msgspec.structs.replace(self, kind="linear"),
            msgspec.structs.replace(self, kind=TREES, normalisation="none"),
        )

    @property
    def grows_trees(self) -> bool:
        """Whether a version may be of trees."""
        return self.kind in (TREES, SELECTED)

    def sources_of(self, name: str) -> list[str]:
        """Names of the models whose lists the model of this name learns from."""
        return self.learns_from or [name]


def model_faults(
    name: str,
    model: ModelSettings,
    n_partitions: int,
    statistics: StatisticsSettings,
) -> Iterator[Fault]:
    """Each setting of the model of a name that cannot be so.

    `n_partitions` are those that learners are spread over.
    """
    place = f"models.{name}"
    yield from _of_form(place, model)
    if model.kind == TREES:
        yield from _of_trees(place, model)
    if model.kind == SELECTED and model.versions != TRAINED:
        yield (
            f"{place}.versions",
            f"{place}.versions must be 'trained' where kind is 'selected', as a "
            f"training chooses it; got {model.versions!r}: write versions = "
            f'"{TRAINED}", or a kind',
        )
    yield from _of_learner(place, model)
    yield from _of_sources(f"{place}.learns_from", model, n_partitions)
    yield from _of_groups(f"{place}.learns_from_groups", model, statistics.groups)
    yield from _of_canary(f"{place}.canary", model, statistics)
    yield from _of_training(f"{place}.training", model)


def _normalisations(kind: str) -> tuple[str, ...]:
    """Those of a kind; versions that may be of trees keep no ranges for the others."""
    return NORMALISATIONS if kind == SELECTED else (*NORMALISATIONS, FIXED)


def _of_form(place: str, model: ModelSettings) -> Iterator[Fault]:
    for option, known in (
        ("kind", (*KINDS, SELECTED)),
        ("normalisation", _normalisations(model.kind)),
        ("versions", VERSIONS),
    ):
        value = getattr(model, option)
        if value not in known:
            setting = f"{place}.{option}"
            yield setting, f"{setting} must be one of {list(known)}; got {value!r}"
    yield from _of_layers(place, model)
    yield from _of_ranges(f"{place}.feature_ranges", model)
    if not model.features:
        setting = f"{place}.features"
        yield setting, f"{setting} must be set, 1 or more; got 0"
    if model.feature_names:
        wrong = fault_of_names(model.feature_names, model.features)
        if wrong:
            yield f"{place}.feature_names", f"{place}.feature_names: {wrong}"


def _of_ranges(setting: str, model: ModelSettings) -> Iterator[Fault]:
    ranges, is_fixed = model.feature_ranges, model.normalisation == FIXED
    if ranges and not is_fixed:
        yield (
            setting,
            f"{setting} must be left out where normalisation is not {FIXED!r}; got it "
            f"with {model.normalisation!r}: take it out, or correct the normalisation",
        )
    elif is_fixed and not ranges and model.versions == ONLINE:
        yield (
            setting,
            f"{setting} must be given where versions are {ONLINE!r}, as the first list "
            f"is learned from before the log has others; got none: write the least and "
            "the most of each feature, as [[0, 1], ...]",
        )
    elif ranges and len(ranges) != model.features:
        yield (
            setting,
            f"{setting} must be as many as features, {model.features}; got "
            f"{len(ranges)}",
        )
    for least, most in ranges:
        if 0.0 < most - least < 1.0 / LARGEST:
            yield (
                setting,
                f"{setting} must be pairs that are {1.0 / LARGEST:.3g} apart or more, "
                "or the same, as single precision has no scale for less; got "
                f"{[least, most]}: let the service give larger numbers",
            )
        if not (abs(least) <= LARGEST and 0.0 <= most - least <= LARGEST):
            yield (
                setting,
                f"{setting} must be pairs of the least and the most, of single "
                f"precision; got {[least, most]}",
            )


def _of_trees(place: str, model: ModelSettings) -> Iterator[Fault]:
    if model.normalisation != "none":
        setting = f"{place}.normalisation"
        yield (
            setting,
            f"{setting} must be 'none' of trees, whose thresholds are of features as "
            f'they are; got {model.normalisation!r}: write normalisation = "none"',
        )
    if model.versions == ONLINE:
        setting = f"{place}.versions"
        yield (
            setting,
            f"{setting} must be {TRAINED!r} of trees, or {PROMOTED!r} where they are "
            f"imported, as no list makes another forest; got {ONLINE!r}: write "
            f'versions = "{TRAINED}"',
        )


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
    is_known = model.kind in (*KINDS, SELECTED)
    if is_known and (model.kind in NETWORKS) != bool(model.hidden):
        yield (
            setting,
            f"{setting} must name the layers of a network, and none of a linear "
            f"ranker or trees; got {model.hidden} for {model.kind!r}",
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
        names = names_of(model.feature_names or model.features)
        yield from trees_faults(setting, model.kind, names, model.training)
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
    setting: str, model: ModelSettings, n_partitions: int
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
        at = [partition_of_model(each, n_partitions) for each in sources]
        if len(set(at)) > 1:
            yield (
                setting,
                f"{setting} must be models of one partition of interactions, as an "
                f"online learner reads one; got {sources} in {at}: set "
                "kafka.learner_partitions = 1 in another namespace, or name one",
            )
