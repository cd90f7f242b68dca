"""Settings: one frozen object from a TOML file and `RANKSTREAM_*` variables."""

import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from rankstream.ranking.learner_options import check_learner
from rankstream.ranking.methods import METHODS
from rankstream.ranking.scored_beside import scored_methods
from rankstream.wire.bounds import (
    CLICK_OVERHEAD_BYTES,
    MAX_CLICK_BYTES,
    MAX_CLICKS_BYTES,
)
from rankstream.wire.envelope import KINDS, NORMALISATIONS

ENVIRONMENT_PREFIX = "RANKSTREAM_"

Positive = Annotated[int, msgspec.Meta(gt=0)]
PositiveFloat = Annotated[float, msgspec.Meta(gt=0)]


class SettingsError(ValueError):
    """A setting is missing, unknown or malformed.

    Operator action: correct the named setting and start again.
    """


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A section of the settings; unknown names are refused."""


class KafkaSettings(Section, frozen=True):
    """The cluster. Passwords come from a variable or a file only."""

    bootstrap: str = "127.0.0.1:9092"
    security_protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    input_partitions: Positive = 4
    partitions: Positive = 4
    learner_partitions: Positive = 4
    replication_factor: Positive = 1


class RedisSettings(Section, frozen=True):
    """Where snapshots lie for rankers."""

    url: str = "redis://127.0.0.1:6379/0"
    username: str = ""
    password_file: str = ""
    keep_versions: Positive = 50


class TimeSettings(Section, frozen=True):
    """Event time, in milliseconds. See `streams.event_time` for the meaning."""

    disorder_ms: Positive = 30_000
    click_window_ms: Positive = 300_000
    remember_ms: Positive = 300_000
    ahead_ms: Positive = 300_000
    idle_ms: Positive = 10_000
    lead_ms: Positive = 1_800_000
    keep_ms: Positive = 90 * 86_400_000


class LimitSettings(Section, frozen=True):
    """What ingestion accepts and what statistics keep apart."""

    documents: Positive = 10_000
    clicks: Positive = 1_000
    click_bytes: Positive = 1 << 20
    candidate_sets: Positive = 64
    interventions: Positive = 64
    exposure_rows: Positive = 16
    list_masks: int = 0


class DeliverySettings(Section, frozen=True):
    """How often stages commit, and how often the fold writes its state."""

    commit_s: PositiveFloat = 0.1
    state_s: PositiveFloat = 5.0
    state_records: Positive = 2_000
    transaction_timeout_ms: Positive = 60_000
    session_timeout_s: PositiveFloat = 10.0
    instance_id: str = ""


class ModelSettings(Section, frozen=True):
    """A ranker that learns: its form, its learner, and what that learner needs."""

    features: Positive
    kind: str = "linear"
    hidden: list[int] = []
    normalisation: str = "min-max"
    learner: str = "pdgd"
    learning_rate: PositiveFloat = 0.1
    decay: PositiveFloat = 1.0
    seed: int = 0
    options: dict[str, Any] = {}


MAX_RANKERS = 256
"""Of one experiment."""


class ExperimentSettings(Section, frozen=True):
    """Rankers that are compared on users; a change needs the next `epoch`.

    `rankers` names them, each with the model (or MODEL@EPOCH.VERSION) that makes its
    lists, or with nothing where the service makes them. `also` names what else the
    same lists are scored by; see `rankstream.ranking.scored_beside`. `share` is that
    of the sessions that take part, `end_ms` 0 means no end. Intervals are narrowest at
    `planned_impressions`.
    """

    rankers: dict[str, str]
    epoch: Positive = 1
    method: str = "pairwise-preference"
    options: dict[str, Any] = {}
    also: dict[str, dict[str, Any]] = {}
    length: Positive = 10
    share: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1.0
    start_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    end_ms: Annotated[int, msgspec.Meta(ge=0)] = 0
    planned_impressions: Positive = 10_000


class MetricsSettings(Section, frozen=True):
    """The Prometheus page of a worker; port 0 means none."""

    host: str = "127.0.0.1"
    port: int = 0


class Settings(Section, frozen=True):
    """Everything that can be set; `file` names the source, and cannot be set."""

    namespace: str = ""
    kafka: KafkaSettings = KafkaSettings()
    redis: RedisSettings = RedisSettings()
    time: TimeSettings = TimeSettings()
    limits: LimitSettings = LimitSettings()
    delivery: DeliverySettings = DeliverySettings()
    metrics: MetricsSettings = MetricsSettings()
    models: dict[str, ModelSettings] = {}
    experiments: dict[str, ExperimentSettings] = {}
    file: str = ""


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
    try:
        settings = msgspec.convert(tree | {"file": str(named or "")}, Settings)
    except msgspec.ValidationError as error:
        setting, fact = _fault(tree, error)
        raise SettingsError(
            f"settings must be known and well-formed; {setting}: {fact}; "
            f"{_origin(setting, named, variables)}"
        ) from error
    found = _contradiction(settings)
    if found:
        setting, fact = found
        raise SettingsError(f"{fact}; {_origin(setting, named, variables)}")
    return settings


_NOT_SETTINGS = {
    f"{ENVIRONMENT_PREFIX}{name}"
    for name in (
        "CACHE",
        "CONFIG",
        "FAULTS",
        "KAFKA_PASSWORD",
        "REDIS_PASSWORD",
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
            f"a settings file must be readable; got {path}: {error.strerror}"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"a settings file must be TOML; {path}: {error}") from error


def _fault(tree: dict[str, Any], error: Exception) -> tuple[str, str]:
    """The full name of the setting that is wrong, and what is wrong with it."""
    fact, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    for table, form in _NAMED_TABLES.items():
        if place.startswith(f"{table}[...]"):
            # The library does not say which of the tables it is.
            for name, value in tree[table].items():
                try:
                    msgspec.convert(value, form)
                except msgspec.ValidationError as inner:
                    below, fact = _fault({}, inner)
                    return f"{table}.{name}" + (f".{below}" if below else ""), fact
    unknown = re.search(r"(?:unknown|required) field `(.*?)`", fact)
    if unknown:
        setting = ".".join(filter(None, (place, unknown[1])))
        renamed = _RENAMED.get(setting)
        return setting, f"it is called {renamed} now" if renamed else fact
    return place, fact


_RENAMED = {
    "delivery.checkpoint_s": "delivery.commit_s",
    "kafka.front_door_partitions": "kafka.input_partitions",
}

_NAMED_TABLES = {"models": ModelSettings, "experiments": ExperimentSettings}


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


def _contradiction(settings: Settings) -> tuple[str, str] | None:
    """A setting that cannot be so, and why; None where all is well."""
    return next(_contradictions(settings), None)


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{0,100}", settings.namespace):
        yield (
            "namespace",
            "namespace must hold letters, digits, dots, dashes and underscores only; "
            f"got {settings.namespace!r}",
        )
    time = settings.time
    if time.remember_ms < time.disorder_ms:
        # A click waits no longer when its impression is forgotten.
        yield (
            "time.remember_ms",
            "time.remember_ms must be time.disorder_ms or more; "
            f"got {time.remember_ms}, which is less than {time.disorder_ms}",
        )
    least = MAX_CLICK_BYTES + CLICK_OVERHEAD_BYTES
    if not least <= settings.limits.click_bytes <= MAX_CLICKS_BYTES:
        # Any click that is taken fits; a list and its clicks leave as one record.
        yield (
            "limits.click_bytes",
            f"limits.click_bytes must be {least} to {MAX_CLICKS_BYTES}; "
            f"got {settings.limits.click_bytes}",
        )
    for name, model in settings.models.items():
        yield from _of_model(f"models.{name}", model)
    for name, experiment in settings.experiments.items():
        yield from _of_experiment(f"experiments.{name}", experiment)
    if "@" in settings.redis.url:
        yield (
            "redis.url",
            "redis.url must not carry credentials; set the username setting and "
            "RANKSTREAM_REDIS_PASSWORD or redis.password_file",
        )


def _of_model(place: str, model: ModelSettings) -> Iterator[tuple[str, str]]:
    for option, known in (("kind", KINDS), ("normalisation", NORMALISATIONS)):
        value = getattr(model, option)
        if value not in known:
            setting = f"{place}.{option}"
            yield setting, f"{setting} must be one of {list(known)}; got {value!r}"
    try:
        check_learner(model.learner, model.options)
    except ValueError as error:
        setting, _, _ = str(error).partition(" ")  # learner or options
        yield f"{place}.{setting}", f"{place}.{error}"


def _of_experiment(
    place: str, experiment: ExperimentSettings
) -> Iterator[tuple[str, str]]:
    n_rankers = len(experiment.rankers)
    if n_rankers < 2:
        setting, names = f"{place}.rankers", sorted(experiment.rankers)
        yield setting, f"{setting} must be two or more; got {names}"
    if n_rankers > MAX_RANKERS:
        setting = f"{place}.rankers"
        yield setting, f"{setting} must be {MAX_RANKERS} at most; got {n_rankers}"
    if 0 < experiment.end_ms <= experiment.start_ms:
        yield (
            f"{place}.end_ms",
            f"{place}.end_ms must be 0 or after start_ms, {experiment.start_ms}; got "
            f"{experiment.end_ms}",
        )
    try:
        scored_methods(experiment)
    except ValueError as error:
        yield place, f"{place}: {error}"
        return
    if METHODS[experiment.method].is_for_two and n_rankers > 2:
        setting, names = f"{place}.rankers", sorted(experiment.rankers)
        yield setting, f"{setting} must be two for {experiment.method}; got {names}"


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
    found = _contradiction(changed)
    if found:
        raise SettingsError(f"{found[1]}; in --namespace")
    return changed
