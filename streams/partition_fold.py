"""The fold of one partition of the canonical log, with all that takes what closes.

A new consumer is a file of its own and an entry of `consumers_of`; its topics go to
the fold's row in `streams.topology`. The row's `version` rises with it, as builds of
before would pass over what it takes. Where a state of before is one that it took
nothing of, `since` of the row stays.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from streams.comparisons.canary_lists import CanaryLists
from streams.comparisons.preference_fold import PreferencesFold
from streams.fold.candidates_fold import CandidatesFold
from streams.fold.canonical_fold import CanonicalFold
from streams.fold.consumer import Consumer
from streams.fold.statistics_fold import StatisticsFold
from streams.native.intervention_lists import Rules

if TYPE_CHECKING:
    from rankstream.settings import Settings


def partition_fold(partition: int, settings: "Settings") -> CanonicalFold:
    """A new fold of one partition of `events`."""
    return CanonicalFold(
        partition,
        settings.time,
        settings.limits,
        settings.kafka.learner_partitions,
        consumers_of(settings, partition),
    )


def consumers_of(settings: "Settings", partition: int) -> tuple[Consumer, ...]:
    """New consumers of one partition; state and fingerprint keep this order."""
    keep_ms = settings.time.keep_ms
    statistics = StatisticsFold(
        settings.limits, settings.statistics, keep_ms, partition
    )
    deployed = [*settings.deployed]
    preferences = PreferencesFold(
        settings.experiments,
        partition,
        trained_rules(settings),
        CanaryLists(deployed, settings.statistics, partition) if deployed else None,
    )
    return (
        statistics,
        preferences,
        CandidatesFold(partition, keep_ms, statistics.has_set),
    )


def trained_rules(settings: "Settings") -> Rules | None:
    """Whose lists are counted by version; None where none is trained or promoted."""
    models = sorted(settings.deployed)
    if not models:
        return None
    statistics = settings.statistics
    return Rules(
        models,
        settings.limits.interventions,
        {
            action: name == statistics.reward
            for action, name in sorted(statistics.actions.items())
        },
        counts_others=statistics.classes()[0] == statistics.reward,
    )


def preferences_among(consumers: Iterable[Consumer]) -> PreferencesFold:
    """The one that compares rankers, for whoever shows comparisons."""
    return next(each for each in consumers if isinstance(each, PreferencesFold))
