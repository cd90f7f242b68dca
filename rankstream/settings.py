"""Settings: one frozen object from a TOML file and `RANKSTREAM_*` variables."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from rankstream.configuration.bandits import BanditSettings, bandit_faults
from rankstream.configuration.cluster import (
    DeliverySettings,
    KafkaSettings,
    MetricsSettings,
    RedisSettings,
    delivery_faults,
    kafka_faults,
    redis_faults,
)
from rankstream.configuration.counting import (
    ExcludeSettings,
    IngestionSettings,
    LimitSettings,
    StatisticsSettings,
    TimeSettings,
    ingestion_faults,
    limits_faults,
    statistics_faults,
    time_faults,
)
from rankstream.configuration.curves import CurveSettings, curve_faults
from rankstream.configuration.decisions import DecisionSettings, decision_faults
from rankstream.configuration.experiments import (
    ExperimentSettings,
    experiment_faults,
    ranker_faults,
)
from rankstream.configuration.former import former_models
from rankstream.configuration.logging_policies import logging_faults, with_policies
from rankstream.configuration.malformed import fault, renamed
from rankstream.configuration.models import ONLINE, TRAINED, ModelSettings, model_faults
from rankstream.configuration.section import Fault, Section
from rankstream.configuration.serve import ServeSettings, serve_faults
from rankstream.configuration.sources import (
    FormatSettings,
    SourceSettings,
    TableSettings,
    format_faults,
    source_faults,
)
from rankstream.configuration.training import Schedule, TrainingSettings, TrainSettings

__all__ = [
    "BanditSettings",
    "CurveSettings",
    "DecisionSettings",
    "DeliverySettings",
    "ExcludeSettings",
    "ExperimentSettings",
    "FormatSettings",
    "IngestionSettings",
    "KafkaSettings",
    "LimitSettings",
    "MetricsSettings",
    "ModelSettings",
    "RedisSettings",
    "ServeSettings",
    "Settings",
    "SettingsError",
    "SourceSettings",
    "StatisticsSettings",
    "TableSettings",
    "TimeSettings",
    "TrainSettings",
    "TrainingSettings",
    "load_settings",
    "secret",
    "with_namespace",
]

ENVIRONMENT_PREFIX = "RANKSTREAM_"


class Settings(Section, frozen=True):
    """Everything that can be set; `file` names the source, and cannot be set."""

    namespace: str = ""
    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    time: TimeSettings = TimeSettings()
    limits: LimitSettings = LimitSettings()
    statistics: StatisticsSettings = StatisticsSettings()
    ingestion: IngestionSettings = IngestionSettings()
    exclude: ExcludeSettings = ExcludeSettings()
    delivery: DeliverySettings = DeliverySettings()
    metrics: MetricsSettings = MetricsSettings()
    train: TrainSettings = TrainSettings()
    serve: ServeSettings = ServeSettings()
    models: dict[str, ModelSettings] = {}
    curves: dict[str, CurveSettings] = {}
    experiments: dict[str, ExperimentSettings] = {}
    decisions: dict[str, DecisionSettings] = {}
    bandits: dict[str, BanditSettings] = {}
    sources: dict[str, SourceSettings] = {}
    formats: dict[str, FormatSettings] = {}
    file: str = ""

    @property
    def online(self) -> dict[str, ModelSettings]:
        """Models that learn online, by name."""
        return {k: x for k, x in self.models.items() if x.versions == ONLINE}

    @property
    def trained(self) -> dict[str, ModelSettings]:
        """Models that are trained, by name."""
        return {k: x for k, x in self.models.items() if x.versions == TRAINED}

    @property
    def deployed(self) -> dict[str, ModelSettings]:
        """Models whose versions are deployed one by one: trained or promoted."""
        return {k: x for k, x in self.models.items() if x.versions != ONLINE}

    @property
    def schedules(self) -> dict[str, Schedule]:
        """When the role `train` makes what, by name; curves first, as others take them.

        Examples
        --------
        >>> from rankstream.configuration.curves import PositionCurve
        >>> trained = ModelSettings(features=1, versions="trained")
        >>> models = {"a": trained, "c": ModelSettings(features=1)}
        >>> [*Settings(models=models, curves={"b": PositionCurve()}).schedules]
        ['b', 'a']
        """
        curves = {k: x.schedule for k, x in sorted(self.curves.items())}
        return curves | {k: x.training for k, x in sorted(self.trained.items())}

    def curve_for(self, model: ModelSettings) -> str:
        """The curve whose newest version a training of a model takes; "" for none.

        That which it names, else the only one that there is, unless its settings give
        a curve.
        """
        if model.training.examination or model.training.curve:
            return model.training.curve
        return self.only_curve

    @property
    def decided(self) -> dict[str, DecisionSettings | BanditSettings]:
        """Rules of decisions and bandits, which the role `decide` writes, by name."""
        return {**self.decisions, **self.bandits}

    @property
    def between_commits_s(self) -> float:
        """Seconds between the commits of a stage.

        They are more where nothing that is served or told follows from what is counted:
        then only windows read it, and these are minutes long.

        Examples
        --------
        >>> Settings().between_commits_s
        5.0
        >>> Settings(models={"a": ModelSettings(features=1)}).between_commits_s
        1.0
        """
        is_watched = self.models or self.experiments or self.decided
        delivery = self.delivery
        return delivery.commit_s if is_watched else delivery.unwatched_commit_s

    def with_kafka(self, **n_partitions: int) -> "Settings":
        """The same, with other numbers of partitions."""
        kafka = msgspec.structs.replace(self.kafka, **n_partitions)
        return msgspec.structs.replace(self, kafka=kafka)

    @property
    def only_curve(self) -> str:
        """The curve, where there is exactly one; else ""."""
        names = [*self.curves]
        return names[0] if len(names) == 1 else ""


class SettingsError(ValueError):
    """A setting is missing, unknown or malformed.

    Operator action: correct the named setting and start again.
    """


def load_settings(
    path: Path | None = None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Settings from a file, overridden by variables.

    `RANKSTREAM_KAFKA__BOOTSTRAP` sets `bootstrap` in `[kafka]`; values are read as
    TOML where they parse as such, else as text. `RANKSTREAM_CONFIG` names the file
    where `path` is not given.

    Raises
    ------
    SettingsError
        With the name of the setting that is wrong.
    """
    named = path or _path_of(environment.get(f"{ENVIRONMENT_PREFIX}CONFIG"))
    tree = _read_toml(named) if named else {}
    variables = {
        name: value
        for name, value in sorted(environment.items())
        if name.startswith(ENVIRONMENT_PREFIX) and name not in _NOT_SETTINGS
    }
    for name, value in variables.items():
        _set(tree, name, value)
    if "file" in tree:
        raise SettingsError(
            f"settings must be known; file is not; {_origin('file', named, variables)}"
        )
    former = [*former_models(tree)]
    old = [*renamed(tree), *((setting, fact) for setting, _, fact in former)]
    if old:
        told = "; ".join(f"{x}, {_origin(name, named, variables)}" for name, x in old)
        anew = "\n".join(section for _, section, _ in former)
        raise SettingsError(f"{told}: write instead\n\n{anew}" if anew else told)
    try:
        settings = msgspec.convert(tree | {"file": str(named or "")}, Settings)
    except msgspec.ValidationError as error:
        setting, fact = fault(tree, error, Settings)
        raise SettingsError(f"{fact}; {_origin(setting, named, variables)}") from error
    experiments = with_policies(settings.experiments, settings.models)
    settings = msgspec.structs.replace(settings, experiments=experiments)
    found = contradiction(settings)
    if found:
        setting, fact = found
        raise SettingsError(f"{fact}; {_origin(setting, named, variables)}")
    return settings


def contradiction(settings: Settings) -> Fault | None:
    """A setting that cannot be so, and why; None where all is well."""
    return next(_contradictions(settings), None)


def _contradictions(settings: Settings) -> Iterator[Fault]:
    yield from _of_namespace(settings.namespace)
    yield from time_faults(settings.time)
    yield from ingestion_faults(settings.ingestion)
    yield from limits_faults(settings.limits)
    yield from statistics_faults(settings.statistics)
    for name, model in settings.models.items():
        yield from model_faults(
            name, model, settings.kafka.learner_partitions, settings.statistics
        )
    yield from curve_faults(settings.curves, settings.models)
    yield from ranker_faults(settings.experiments, settings.curves)
    yield from logging_faults(settings.experiments, settings.models, settings.curves)
    for name, experiment in settings.experiments.items():
        yield from experiment_faults(name, experiment, settings.statistics)
    yield from decision_faults(settings.decisions, settings.models, settings.curves)
    yield from bandit_faults(
        settings.bandits,
        settings.models,
        settings.curves,
        settings.decisions,
        settings.curve_for,
    )
    yield from format_faults(settings.formats)
    yield from source_faults(settings.sources)
    yield from kafka_faults(settings.kafka)
    yield from redis_faults(settings.redis)
    yield from delivery_faults(settings.delivery)
    yield from serve_faults(settings.serve)


def _of_namespace(namespace: str) -> Iterator[Fault]:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{0,100}", namespace):
        yield (
            "namespace",
            "namespace must hold letters, digits, dots, dashes and underscores only; "
            f"got {namespace!r}",
        )


_NOT_SETTINGS = {
    f"{ENVIRONMENT_PREFIX}{name}"
    for name in (
        "CACHE",
        "CONFIG",
        "FAULTS",
        "KAFKA_KEY_PASSWORD",
        "KAFKA_PASSWORD",
        "REDIS_KEY_PASSWORD",
        "REDIS_PASSWORD",
        "REDIS_SENTINEL_PASSWORD",
        "SERVE_KEY_PASSWORD",
        "TEST_KAFKA",
        "TEST_REDIS",
    )
}


def secret(
    variable: str, file: str, environment: Mapping[str, str] = os.environ
) -> str:
    """A password from a `RANKSTREAM_` variable, else from a file, else empty."""
    value = environment.get(f"{ENVIRONMENT_PREFIX}{variable}")
    if value:
        return value
    if not file:
        return ""
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(
            f"a password file must be readable; got {file}: {error.strerror}"
        ) from error


def _path_of(name: str | None) -> Path | None:
    return Path(name) if name else None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(
            f"a settings file must be readable; got {path}: {error.strerror}: correct "
            f"--config, or {ENVIRONMENT_PREFIX}CONFIG"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"a settings file must be TOML; {path}: {error}") from error


def _origin(setting: str, file: Path | None, variables: Mapping[str, str]) -> str:
    """Where the setting was made: the variable that speaks of it, else the file."""
    for name in variables:
        place = ".".join(_path_of_variable(name))
        if place == setting or setting.startswith((f"{place}.", f"{place}[")):
            return f"in {name}"
    if file is None:
        return f"in {', '.join(variables)}"
    return f"in {file}"


def _path_of_variable(name: str) -> list[str]:
    return name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__")


def _set(tree: dict[str, Any], name: str, value: str) -> None:
    *sections, leaf = _path_of_variable(name)
    place = tree
    for section in sections:
        place = place.setdefault(section, {})
        if not isinstance(place, dict):
            raise SettingsError(f"{name} must name a section; {section} is a value")
    place[leaf] = _toml_value(value)


def _toml_value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def with_namespace(settings: Settings, namespace: str | None) -> Settings:
    """The same settings, in another namespace where one is named.

    Raises
    ------
    SettingsError
        Where it holds what a topic may not.
    """
    if namespace is None:
        return settings
    changed: Settings = msgspec.structs.replace(settings, namespace=namespace)
    found = contradiction(changed)
    if found:
        raise SettingsError(f"{found[1]}; in --namespace")
    return changed
