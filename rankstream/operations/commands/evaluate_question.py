"""What `rankstream evaluate` was asked: policies, the curve, and whose clicks."""

import argparse
import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from models.estimators.adaptivity import Basis
from models.estimators.bias_curve import BiasCurve, position_curve
from models.estimators.policy_reward import (
    RankWeights,
    click_weights_of,
    dcg_weights,
    look_weights,
    relevant_click_weights,
)
from models.estimators.splits import Shares
from producers.stop_signal import Stop
from rankstream.operations.commands.evaluate_rankings import rankings_of
from rankstream.operations.commands.evaluate_source import Source
from rankstream.operations.commands.log_asked import has_files
from rankstream.operations.commands.newest_curve import OPTION, curve_asked
from rankstream.operations.commands.statistics_curve import curve_columns
from rankstream.operations.terminal.progress_line import ProgressLine
from rankstream.settings import Settings
from rankstream.wire.envelope import Pointer, is_pointer, pointer_from, pointer_of
from streams.estimation.curve_replicates import (
    GIVEN,
    CurveReplicates,
    published_replicates,
    replicated_curve,
)
from streams.estimation.evaluation import LOGGED, Question
from streams.estimation.targets import RankingTarget, SnapshotTarget, Target
from streams.estimation.valuation_basis import valuation_basis_of
from streams.training.bias_told import bias_told
from streams.training.feature_records import FeatureRecords

JSONL = ".jsonl"

WEIGHTS: Mapping[str, Callable[[BiasCurve], RankWeights]] = MappingProxyType(
    {
        "clicks": click_weights_of,
        "relevant-clicks": relevant_click_weights,
        "looks": look_weights,
        "dcg": lambda curve: dcg_weights(curve.n_ranks),
    }
)
"""What an item at a rank is worth, by name."""


class Stopped(Exception):
    """Who asked does not wait for the answer."""


class Policies(NamedTuple):
    """What is to be valued.

    Parameters
    ----------
    targets
        By name.
    base
        The name of what they are compared with.
    fitted_on
        Groups whose clicks versions came from, by name; None where that is not known.
        Versions that no click has moved are not there.
    models
        Whose versions they are.
    """

    targets: dict[str, Target]
    base: str
    fitted_on: dict[str, frozenset[int] | None]
    models: set[str]


class Asked(NamedTuple):
    """A question, and on whose clicks it is answered."""

    question: Question
    basis: Basis


def files_named(words: Iterable[str]) -> dict[str, Target]:
    """Policies of files among the words, by word.

    Raises
    ------
    ValueError, OSError
        As `rankings_of`.
    """
    return {
        word: RankingTarget(rankings_of(_path(word)))
        for word in words
        if word.endswith(JSONL)
    }


def policies_of(
    arguments: argparse.Namespace, source: Source, rankings: Mapping[str, Target]
) -> Policies:
    """All policies that are named, those of files as they were read.

    Raises
    ------
    ValueError
        Where a model or a version is not there, or names are not what they must be.
    """
    names: dict[str, str] = {}
    found = Policies({}, "", {}, set())
    lists: dict[tuple[bytes, int], FeatureRecords] = {}
    for word in arguments.policies:
        if word in rankings:
            name, target = _name_of_file(word), rankings[word]
        else:
            model, place = _version(word)
            snapshot = source.snapshot(model, place)
            name = f"{model}@{pointer_of(snapshot)}"
            key = snapshot.features_hash, snapshot.n_features
            if key not in lists:
                lists[key] = source.features_for(snapshot)
            target = SnapshotTarget(snapshot, lists[key], arguments.temperature)
            found.models.add(model)
            if snapshot.groups or snapshot.updates:
                found.fitted_on[name] = frozenset(snapshot.groups) or None
        if name in found.targets or name == LOGGED:
            raise ValueError(
                f"each policy must have a name of its own, other than {LOGGED!r}; got "
                f"{name!r}: name files NAME=FILE{JSONL}"
            )
        found.targets[name] = target
        names[word] = name
    against = names.get(arguments.against, arguments.against)
    if against not in (LOGGED, *found.targets):
        raise ValueError(
            f"--against must be one of {', '.join((LOGGED, *found.targets))}; got "
            f"{against!r}"
        )
    return found._replace(base=against)


def question_of(
    arguments: argparse.Namespace,
    settings: Settings,
    source: Source,
    policies: Policies,
    stop: Stop,
) -> Asked | None:
    """What is asked of the log; None where clicks do not tell the curve.

    Raises
    ------
    ValueError
        Where models have several curves in the settings.
    Stopped
    """
    grounds = valuation_basis_of(
        source.statistics, *source.trust, policies.fitted_on, arguments.estimator
    )
    curve = _curve_of(arguments, settings, source, policies, stop)
    if curve is None:
        return None
    question = Question(
        grounds.choice,
        curve,
        WEIGHTS[arguments.weights],
        grounds.n_groups,
        grounds.basis.groups,
        policies.base,
        arguments.ranks,
        has_classes=arguments.classes,
    )
    return Asked(question, grounds.basis)


def _curve_of(
    arguments: argparse.Namespace,
    settings: Settings,
    source: Source,
    policies: Policies,
    stop: Stop,
) -> CurveReplicates | None:
    if arguments.examination is not None:
        return CurveReplicates(arguments.examination, GIVEN)
    if arguments.curve is not None:
        return _published(arguments, settings, source, stop)
    told = {
        (*settings.models[model].training.examination,): model
        for model in sorted(policies.models & settings.models.keys())
        if settings.models[model].training.examination
    }
    if len(told) > 1:
        raise ValueError(
            "models that are valued side by side must have one curve; settings of "
            f"{', '.join(told.values())} have several: give --examination"
        )
    for examination, model in told.items():
        where = f"{GIVEN} by models.{model}.training"
        return CurveReplicates(position_curve(examination), where)
    published = _published(arguments, settings, source, stop)
    if published is not None:
        return published
    counts = source.statistics.counted
    shares = Shares(*settings.statistics.split_shares)
    columns = partial(curve_columns, source.statistics, has_classes=arguments.classes)
    with _fits_shown(stop) as on_fit:
        found = replicated_curve(
            columns,
            counts[0].groups if counts else 1,
            shares,
            on_fit,
            source.trust.models,
        )
    if found is None:
        return None
    bias = bias_told(columns(), found.groups, found.source, takes=found.takes)
    return found._replace(bias=bias)


def _published(
    arguments: argparse.Namespace, settings: Settings, source: Source, stop: Stop
) -> CurveReplicates | None:
    """The newest curve of a model; None where none was asked for and there is none.

    A log in files has no versions of models.
    """
    if has_files(arguments):
        if arguments.curve is None:
            return None
        raise ValueError(
            f"{OPTION} must go with Kafka or --local, which have its versions; got it "
            "with files of events: give --examination"
        )
    found = curve_asked(settings, arguments.curve, arguments.local)
    if found is None:
        return None
    with _fits_shown(stop) as on_fit:
        return published_replicates(
            settings, found, source.statistics, on_fit, source.trust.models
        )


@contextlib.contextmanager
def _fits_shown(stop: Stop) -> Iterator[Callable[[int], None]]:
    with ProgressLine("fitting the curve", total=None, unit="fits") as line:

        def on_fit(n: int) -> None:
            line.show(n)
            if stop.asked:
                raise Stopped

        yield on_fit


def _path(word: str) -> Path:
    _, mark, path = word.partition("=")
    return Path(path) if mark and not Path(word).exists() else Path(word)


def _name_of_file(word: str) -> str:
    name, mark, _ = word.partition("=")
    return name if mark and not Path(word).exists() else Path(word).stem


def _version(word: str) -> tuple[str, Pointer | None]:
    """A model, and which version of it."""
    model, mark, version = word.rpartition("@")
    if mark and is_pointer(version.encode()):
        return model, pointer_from(version.encode())
    return word, None
