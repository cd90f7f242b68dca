"""Settings of a model that is trained from files: given ones, else by the log."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from models.estimators.splits import LEAST_TO_SPLIT, Shares, split_groups
from rankstream.configuration.models import TRAINED
from rankstream.configuration.training import SELECTED
from rankstream.operations.terminal.words import counted
from rankstream.settings import ModelSettings, Settings, TrainingSettings
from rankstream.wire.candidates import decode_candidates, decode_candidates_key
from rankstream.wire.envelope import TREES, is_pointer
from rankstream.wire.envelope import features_hash as hash_of_list
from streams.statistics.keys import ScopeName
from streams.statistics.reader import Statistics
from streams.training.inputs import TrainingRefused, list_hash
from streams.training.model_lists import logged_by
from streams.training.recorded_inputs import Recorded

FEW_QUERIES = 1_000
"""With fewer an epoch makes so few updates that each is to be larger."""

FEW_LISTS = 200
"""Of a query: with fewer no item has the support that is asked for by default."""

HELD_OUT = (0.2, 0.3, 0.4, 0.5)
"""Shares of queries to hold out, the first by which there are enough."""

LEAST_HELD_OUT = 0.1
"""Of all queries."""

BY_THE_LOG = ("linear", TREES, SELECTED)
"""Kinds of a model without settings; a network has layers, which settings say."""

NO_FEATURES = (
    "a log must have features to train a ranker from; it has none: give a table of "
    "them with --features FILE, a row for each item, or for each query and item"
)

NO_LISTS = (
    "a log must have lists to train a ranker from; none was counted: `rankstream "
    "validate` says of each event why"
)


class Resolved(NamedTuple):
    """Settings with the model that is to be trained, and what was decided for it."""

    settings: Settings
    said: tuple[str, ...]


def check_model(settings: Settings, name: str, kind: str | None = None) -> None:
    """Refuse a model of the settings that cannot be trained, or not as this kind.

    Raises
    ------
    ValueError
    """
    if name in settings.curves:
        raise ValueError(
            f"--model must be a model; {name!r} is a curve, [curves.{name}]: give the "
            "model another name"
        )
    model = settings.models.get(name)
    if model is not None and model.versions != TRAINED:
        raise ValueError(
            f"--model must be one that is trained, or one that no settings have; "
            f"versions of {name!r} are {model.versions!r}: set versions = {TRAINED!r} "
            f"in [models.{name}], or give the new model another name"
        )
    if model is not None and kind not in (None, model.kind):
        raise ValueError(
            f"--kind must be that of models.{name}, {model.kind!r}; got {kind!r}: "
            f"leave it out, or give the new model another name"
        )


def resolved(
    settings: Settings,
    name: str,
    recorded: Recorded,
    names: Mapping[bytes, list[str]],
    *,
    kind: str = BY_THE_LOG[0],
) -> Resolved:
    """Settings in which the model of a name is whole.

    Parameters
    ----------
    names
        Names of features, by the hash of their list, where they are known.
    kind
        One of `BY_THE_LOG`, where there are no settings.

    Raises
    ------
    TrainingRefused
        Where the log has no lists, no features, or other ones than the model.
    """
    statistics = recorded.sums()
    if statistics.is_empty():
        raise TrainingRefused(NO_LISTS)
    lists = _lists_of_features(recorded)
    if not lists:
        raise TrainingRefused(NO_FEATURES)
    makers = _makers(statistics)
    known = settings.models.get(name)
    if known is None:
        model, said = _by_the_log(name, statistics, makers, lists, names, kind)
    else:
        model, said = _of_the_file(name, known, statistics, makers, lists, names)
    # Others stay: what they learned online is told from what was not.
    models = settings.models | {name: model}
    return Resolved(msgspec.structs.replace(settings, models=models), tuple(said))


def _lists_of_features(recorded: Recorded) -> dict[bytes, int]:
    """Hashes of lists of features and their numbers, the most common first."""
    found: Counter[bytes] = Counter()
    numbers: dict[bytes, int] = {}
    for key, value in recorded.candidates.items():
        features_hash = decode_candidates_key(key).features_hash
        found[features_hash] += 1
        if value and features_hash not in numbers:
            numbers[features_hash] = decode_candidates(value).n_features
    return {each: numbers[each] for each, _ in found.most_common() if each in numbers}


def _makers(statistics: Statistics) -> list[str]:
    """Names that lists were logged under, versions of a model as one, sorted."""
    logged = {scope.intervention for scope in statistics.scopes()}
    return sorted({_maker(each) for each in logged})


def _maker(intervention: str) -> str:
    model, mark, pointer = intervention.rpartition("@")
    return model if mark and is_pointer(pointer.encode()) else intervention


def _by_the_log(
    name: str,
    statistics: Statistics,
    makers: list[str],
    lists: Mapping[bytes, int],
    names: Mapping[bytes, list[str]],
    kind: str,
) -> tuple[ModelSettings, list[str]]:
    features_hash, n_features = next(iter(lists.items()))
    if features_hash not in names and features_hash != hash_of_list(n_features):
        raise TrainingRefused(
            f"names of the features must be known; the log says of their list only "
            f"that its hash is {features_hash.hex()}, of {n_features}: set "
            f"feature_names in [models.{name}] of a file, and name it with --config"
        )
    queries = statistics.queries()
    n_lists = sum(n for n, _ in queries.values())
    plan = _plan_by_the_log(statistics)
    if kind != BY_THE_LOG[0]:
        plan = _with_trees(plan, kind)
    told = [f"{each} {getattr(plan, each):g}" for each in chosen_of(kind)]
    if kind != BY_THE_LOG[0]:
        told += [f"{each} {getattr(plan.trees, each)}" for each in CHOSEN_OF_TREES]
    model = ModelSettings(
        features=n_features,
        feature_names=names.get(features_hash, []),
        kind=kind,
        normalisation="none" if kind == TREES else ModelSettings().normalisation,
        versions=TRAINED,
        learns_from=_sources(name, makers),
        training=plan,
    )
    kinds = [form.kind for form in model.forms]
    said = [
        f"no settings of {name!r}: {' or '.join(kinds)} of "
        f"{counted(n_features, 'feature')}, {', '.join(told)}, for "
        f"{counted(len(queries), 'query', 'queries')} of "
        f"{counted(n_lists, 'list')}; model.toml has them, to be changed with --config"
    ]
    if len(lists) > 1:
        said.append(
            f"the log has {len(lists)} lists of features; that of most records is "
            f"taken, {features_hash.hex()}"
        )
    return model, said


CHOSEN = ("least_support", "held_out")
"""What is chosen by the log where there are no settings of a model."""

CHOSEN_OF_LAYERS = ("batch", "learning_rate")
CHOSEN_OF_TREES = ("leaves", "least_items")
"""What of its kind is."""


def chosen_of(kind: str) -> tuple[str, ...]:
    """What is chosen for a training of a kind."""
    return CHOSEN if kind == TREES else (*CHOSEN_OF_LAYERS, *CHOSEN)


def _plan_by_the_log(statistics: Statistics) -> TrainingSettings:
    queries = statistics.queries()
    n_lists = sum(n for n, _ in queries.values())
    plan = TrainingSettings()
    if len(queries) < FEW_QUERIES:
        plan = msgspec.structs.replace(plan, batch=4, learning_rate=0.1)
    if n_lists < FEW_LISTS * len(queries):
        plan = msgspec.structs.replace(plan, least_support=1.0)
    return msgspec.structs.replace(plan, held_out=_held_out(statistics.scopes()))


def _with_trees(plan: TrainingSettings, kind: str) -> TrainingSettings:
    """The same for trees: smaller ones where few queries would make larger steps."""
    default, own = TrainingSettings(), dict[str, Any]()
    if plan.batch != default.batch:
        own["trees"] = msgspec.structs.replace(plan.trees, leaves=8, least_items=10)
    if kind == TREES:
        own |= {each: getattr(default, each) for each in CHOSEN_OF_LAYERS}
    return msgspec.structs.replace(plan, **own)


def _other_defaults(
    name: str, model: ModelSettings, statistics: Statistics
) -> list[str]:
    """That settings, or their defaults, are taken where the log suggests others.

    The role `train` takes the same, so that both make one snapshot.
    """
    own, suggested = model.training, _plan_by_the_log(statistics)
    taken, others = [], []
    for each in chosen_of(model.kind):
        mine, other = getattr(own, each), getattr(suggested, each)
        if mine != other:
            taken.append(f"{each} {mine:g}")
            others.append(f"{each} = {other:g}")
    if not taken:
        return []
    return [
        f"settings of {name!r} are taken, with their defaults: {', '.join(taken)}; of "
        f"this log without settings it would be {', '.join(others)} in "
        f"[models.{name}.training]"
    ]


def _held_out(scopes: Iterable[ScopeName]) -> float:
    """The share of queries to hold out, by which some are: a hash may take none.

    Queries that have no features, as their sets grow, are in no part.
    """
    queries = {scope.query for scope in scopes if not scope.is_growing}
    for share in HELD_OUT:
        splits = split_groups(LEAST_TO_SPLIT, Shares(held_out=share))
        n_held_out = sum(map(splits.is_held_out, queries))
        if LEAST_HELD_OUT * len(queries) <= n_held_out < len(queries):
            return share
    return HELD_OUT[0]


def _sources(name: str, makers: list[str]) -> list[str]:
    return [] if makers == [name] else makers


def _of_the_file(
    name: str,
    model: ModelSettings,
    statistics: Statistics,
    makers: list[str],
    lists: Mapping[bytes, int],
    names: Mapping[bytes, list[str]],
) -> tuple[ModelSettings, list[str]]:
    said = _other_defaults(name, model, statistics)
    if list_hash(model) not in lists:
        model = _with_names(name, model, lists, names)
        said.append(
            f"features of models.{name} are those of the table: "
            f"{', '.join(model.feature_names)}"
        )
    own = model.sources_of(name)
    if not model.learns_from and not any(logged_by(each, own) for each in makers):
        model = msgspec.structs.replace(model, learns_from=makers)
        told = ", ".join(each or "no model" for each in makers)
        said.append(
            f"no list is of {name!r} itself; it learns from those of {told}: "
            f"models.{name}.learns_from says which others"
        )
    return model, said


def _with_names(
    name: str,
    model: ModelSettings,
    lists: Mapping[bytes, int],
    names: Mapping[bytes, list[str]],
) -> ModelSettings:
    """The model with names of features of the log, where it has as many and no names.

    Raises
    ------
    TrainingRefused
    """
    found = [
        names[each]
        for each, number in lists.items()
        if each in names and number == model.features
    ]
    if found and not model.feature_names:
        return msgspec.structs.replace(model, feature_names=found[0])
    there = " or ".join(
        f"{number} ({', '.join(names[each])})" if each in names else f"{number}"
        for each, number in lists.items()
    )
    wanted = ", ".join(model.feature_names) or "without names"
    raise TrainingRefused(
        f"features of the log must be those of models.{name}, {model.features} "
        f"({wanted}); they are {there}: set features and feature_names so, or take "
        "another name for the model"
    )
