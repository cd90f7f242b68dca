"""What settings that are read may not be: malformed, or at odds with each other."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from rankstream.curve_rules import curve_faults
from rankstream.format_rules import format_faults
from rankstream.ranking.learner_options import check_learner
from rankstream.ranking.methods import METHODS
from rankstream.ranking.scored_beside import scored_methods
from rankstream.sections import (
    LEAST_TO_SPLIT,
    MAX_RANKERS,
    MOST_CLASSES,
    SPLIT_SHARES,
    ExperimentSettings,
    FormatSettings,
    KafkaSettings,
    LimitSettings,
    ModelSettings,
    RedisSettings,
    Settings,
    SourceSettings,
    StatisticsSettings,
    TimeSettings,
)
from rankstream.serve_rules import serve_faults
from rankstream.source_rules import source_faults
from rankstream.training_rules import training_faults
from rankstream.wire.bounds import (
    CLICK_OVERHEAD_BYTES,
    MAX_CLICK_BYTES,
    MAX_CLICKS_BYTES,
    MODEL_BYTES,
)
from rankstream.wire.envelope import (
    KINDS,
    NORMALISATIONS,
    fault_of_names,
    n_weights,
)
from rankstream.wire.nearest_name import meant
from rankstream.wire.topics import LEAST_DAYS

RENAMED = {
    "delivery.checkpoint_s": "delivery.commit_s",
    "kafka.front_door_partitions": "kafka.input_partitions",
}

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

GONE = {"limits.list_masks": "clicked ranks are always kept by list now"}

NAMED_TABLES: dict[str, type[msgspec.Struct]] = {
    "models": ModelSettings,
    "experiments": ExperimentSettings,
    "sources": SourceSettings,
    "formats": FormatSettings,
}

WORDS = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}
BOUNDS = {">=": "{} or more", ">": "more than {}", "<=": "{} or less", "<": "below {}"}

_expected = re.compile(r"Expected `(\w+)`(?: (>=|>|<=|<) ([\d.]+))?(?:, got `(\w+)`)?$")


def renamed(tree: dict[str, Any]) -> list[tuple[str, str]]:
    """Old names that are set, each with what to say of it."""
    said = {old: f"{old} is called {new} now" for old, new in RENAMED.items()}
    said |= {old: f"{old} has gone: {why}" for old, why in GONE.items()}
    found = []
    for old, fact in said.items():
        section, name = old.split(".")
        if isinstance(tree.get(section), dict) and name in tree[section]:
            found.append((old, fact))
    return found


def fault(tree: dict[str, Any], error: Exception) -> tuple[str, str]:
    """The full name of the setting that is malformed, and a sentence about it."""
    fact, _, place = str(error).partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    for table, form in NAMED_TABLES.items():
        if place.startswith(f"{table}[...]"):
            # The library does not say which of the tables it is.
            for name, value in tree[table].items():
                try:
                    msgspec.convert(value, form)
                except msgspec.ValidationError as inner:
                    said = _said(f"{table}.{name}", form, str(inner))
                    return _with_number(tree, *said)
    told = f"{fact} - at `$.{place}`" if place else fact
    return _with_number(tree, *_said("", Settings, told))


def _said(above: str, form: type[msgspec.Struct], told: str) -> tuple[str, str]:
    """As `fault`, of what the library told of a section at a place."""
    fact, _, place = told.partition(" - at ")
    place = place.strip("`").removeprefix("$").removeprefix(".")
    setting = ".".join(filter(None, (above, place)))
    named = re.search(r"(unknown|required) field `(.*?)`", fact)
    if named:
        setting = ".".join(filter(None, (setting, named[2])))
        if named[1] == "required":
            return setting, f"{setting} must be set; it is missing"
        return setting, f"{setting} is no setting; {_meant(named[2], form, place)}"
    found = _expected.match(fact)
    if not found:
        return setting, f"{setting}: {fact}"
    kind, comparison, bound, got = found.groups()
    must = f"{setting} must be {WORDS.get(kind, kind)}"
    if comparison:
        must += f", {BOUNDS[comparison].format(bound)}"
    return setting, f"{must}; got {WORDS.get(got, got)}" if got else must


def _with_number(tree: dict[str, Any], setting: str, fact: str) -> tuple[str, str]:
    """The same, with the number that is set, which the library leaves out."""
    value: Any = tree
    for part in setting.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if ";" in fact or not isinstance(value, int | float):
        return setting, fact
    return setting, f"{fact}; got {value}"


def _meant(name: str, form: type[msgspec.Struct], place: str) -> str:
    """What a name that is not known may have meant."""
    for part in filter(None, place.split(".")):
        form = next(f.type for f in msgspec.structs.fields(form) if f.name == part)
    known = [field.name for field in msgspec.structs.fields(form)]
    section, _, rest = name.partition("_")
    if not place and section in known and rest:
        setting = f"RANKSTREAM_{section}__{rest}".upper()
        return f"a variable has two underscores between: {setting}"
    return meant(name, known)


def contradiction(settings: Settings) -> tuple[str, str] | None:
    """A setting that cannot be so, and why; None where all is well."""
    return next(_contradictions(settings), None)


def _contradictions(settings: Settings) -> Iterator[tuple[str, str]]:
    yield from _of_namespace(settings.namespace)
    yield from _of_time(settings.time)
    yield from _of_limits(settings.limits)
    yield from _of_statistics(settings.statistics)
    for name, model in settings.models.items():
        yield from _of_model(f"models.{name}", model)
        yield from training_faults(name, model, settings.kafka)
    yield from curve_faults(settings)
    for name, experiment in settings.experiments.items():
        yield from _of_experiment(f"experiments.{name}", experiment)
    yield from format_faults(settings.formats)
    yield from source_faults(settings.sources)
    yield from _of_kafka(settings.kafka)
    yield from _of_retention(settings.kafka)
    yield from _of_redis(settings.redis)
    yield from serve_faults(settings.serve)


def _of_namespace(namespace: str) -> Iterator[tuple[str, str]]:
    if not re.fullmatch(r"[a-zA-Z0-9._-]{0,100}", namespace):
        yield (
            "namespace",
            "namespace must hold letters, digits, dots, dashes and underscores only; "
            f"got {namespace!r}",
        )


def _of_time(time: TimeSettings) -> Iterator[tuple[str, str]]:
    if time.remember_ms < time.disorder_ms:
        # A click waits no longer when its impression is forgotten.
        yield (
            "time.remember_ms",
            "time.remember_ms must be time.disorder_ms or more; "
            f"got {time.remember_ms}, which is less than {time.disorder_ms}",
        )
    if time.keep_ms < time.click_window_ms:
        # An era would leave before its last lists are counted.
        yield (
            "time.keep_ms",
            "time.keep_ms must be time.click_window_ms or more; "
            f"got {time.keep_ms}, which is less than {time.click_window_ms}",
        )


def _of_limits(limits: LimitSettings) -> Iterator[tuple[str, str]]:
    least = MAX_CLICK_BYTES + CLICK_OVERHEAD_BYTES
    if not least <= limits.click_bytes <= MAX_CLICKS_BYTES:
        # Any click that is taken fits; a list and its clicks leave as one record.
        yield (
            "limits.click_bytes",
            f"limits.click_bytes must be {least} to {MAX_CLICKS_BYTES}; "
            f"got {limits.click_bytes}",
        )


def _of_statistics(statistics: StatisticsSettings) -> Iterator[tuple[str, str]]:
    click, *others = classes = statistics.classes()
    if len(classes) > MOST_CLASSES:
        yield (
            "statistics.actions",
            f"statistics.actions must name {MOST_CLASSES - 1} classes at most beside "
            f"{click!r}; got {others}",
        )
    if "" in others:
        action = next(key for key, name in statistics.actions.items() if not name)
        yield (
            "statistics.actions",
            f"statistics.actions must name a class for each action; got '' for "
            f"{action!r}",
        )
    if statistics.reward not in classes:
        yield (
            "statistics.reward",
            f"statistics.reward must be {click!r} or a class of statistics.actions, "
            f"one of {[click, *others]}; got {statistics.reward!r}",
        )
    yield from _of_splits(statistics)


def _of_splits(statistics: StatisticsSettings) -> Iterator[tuple[str, str]]:
    setting, shares = "statistics.split_shares", statistics.split_shares
    is_split = len(shares) == len(SPLIT_SHARES) and all(share > 0 for share in shares)
    # Not a number is no sum of 1 either.
    if not (is_split and abs(sum(shares) - 1.0) <= 1e-9):
        yield (
            setting,
            f"{setting} must be three numbers above 0 with a sum of 1, for training, "
            f"validation and selection; got {shares}",
        )
    elif statistics.groups < LEAST_TO_SPLIT and shares != [*SPLIT_SHARES]:
        yield (
            setting,
            f"{setting} must be left out with statistics.groups below "
            f"{LEAST_TO_SPLIT}, as each split has two groups; got {shares} for "
            f"{statistics.groups}",
        )


def _of_kafka(kafka: KafkaSettings) -> Iterator[tuple[str, str]]:
    if "@" in kafka.bootstrap:
        yield (
            "kafka.bootstrap",
            "kafka.bootstrap must not carry credentials; set kafka.username and "
            "RANKSTREAM_KAFKA_PASSWORD or kafka.password_file",
        )
    protocol = kafka.security_protocol
    if protocol not in PROTOCOLS:
        setting = "kafka.security_protocol"
        yield setting, f"{setting} must be one of {list(PROTOCOLS)}; got {protocol!r}"
    for name in ("ca_file", "certificate_file"):
        if getattr(kafka, name) and not protocol.endswith("SSL"):
            # Whoever names one believes that nobody listens.
            setting = f"kafka.{name}"
            yield (
                setting,
                f"{setting} must be set with security_protocol SSL or SASL_SSL only; "
                f"got {protocol}",
            )
    for name in ("key_file", "key_password_file"):
        if getattr(kafka, name) and not kafka.certificate_file:
            setting = f"kafka.{name}"
            yield (
                setting,
                f"{setting} must be set with kafka.certificate_file; it is missing",
            )


def _of_retention(kafka: KafkaSettings) -> Iterator[tuple[str, str]]:
    for name in ("events_days", "interactions_days"):
        days = getattr(kafka, name)
        if 0 < days < LEAST_DAYS:
            # A worker that ended on a Friday evening is seen on Monday.
            yield (
                f"kafka.{name}",
                f"kafka.{name} must be {LEAST_DAYS} or more, 0 or -1; got {days}",
            )


def _of_redis(redis: RedisSettings) -> Iterator[tuple[str, str]]:
    if redis.ca_file and not redis.url.startswith("rediss://"):
        yield (
            "redis.ca_file",
            f"redis.ca_file must be set with a url of rediss:// only; got {redis.url}",
        )
    if "@" in redis.url or re.search(r"[?&](username|password)=", redis.url):
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


def _of_layers(place: str, model: ModelSettings) -> Iterator[tuple[str, str]]:
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
