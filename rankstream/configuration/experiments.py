"""Experiments: rankers that are compared on users."""

from collections.abc import Collection, Iterator, Mapping
from typing import Annotated, Any

import msgspec

from rankstream.configuration.counting import StatisticsSettings
from rankstream.configuration.section import Fault, Positive, Section
from rankstream.ranking.logging_options import LoggingOptions
from rankstream.ranking.methods import LOGGING_POLICY, METHODS
from rankstream.ranking.scored_beside import scored_methods
from rankstream.wire.envelope import is_pointer

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


def experiment_faults(
    name: str, experiment: ExperimentSettings, statistics: StatisticsSettings
) -> Iterator[Fault]:
    """Each setting of the experiment of a name that cannot be so."""
    place = f"experiments.{name}"
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
    if experiment.method == LOGGING_POLICY:
        yield from _of_logging(f"{place}.options", experiment, statistics)
    try:
        scored_methods(experiment)
    except ValueError as error:
        yield place, f"{place}: {error}"
        return
    if METHODS[experiment.method].is_for_two and n_rankers > 2:
        setting, names = f"{place}.rankers", sorted(experiment.rankers)
        yield setting, f"{setting} must be two for {experiment.method}; got {names}"


def _of_logging(
    setting: str, experiment: ExperimentSettings, statistics: StatisticsSettings
) -> Iterator[Fault]:
    """What a logging policy cannot be, or be judged by."""
    try:
        options = LoggingOptions.of(experiment)
    except ValueError as error:
        yield setting, f"{setting}: {error}"
        return
    if options.groups not in (0, statistics.groups):
        yield (
            f"{setting}.groups",
            f"{setting}.groups must be statistics.groups, {statistics.groups}, or 0 "
            f"for policies that are fixed beforehand; got {options.groups}",
        )
    apart = max(2, int(statistics.split_shares[2] * statistics.groups + 1e-9))
    if options.groups and options.selection > apart:
        yield (
            f"{setting}.selection",
            f"{setting}.selection must be at most {apart}, the groups that no policy "
            f"is fitted on; got {options.selection}: raise statistics.split_shares or "
            "lower it",
        )


def ranker_faults(
    experiments: Mapping[str, ExperimentSettings], curves: Collection[str]
) -> Iterator[Fault]:
    """Each ranker of an experiment that is a curve."""
    for name, experiment in experiments.items():
        for ranker, source in experiment.rankers.items():
            above, mark, pointer = source.rpartition("@")
            made_by = above if mark and is_pointer(pointer.encode()) else source
            if made_by in curves:
                setting = f"experiments.{name}.rankers"
                yield (
                    setting,
                    f"{setting} must be models that rank; got {source!r} for "
                    f"{ranker!r}, which is a curve: name another",
                )
