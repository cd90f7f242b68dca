"""The fold of one partition of the canonical log, with all that takes what closes.

A new consumer is a file of its own and an entry of `consumers_of`; its topic goes to
the fold's row in `streams.topology`. As its fingerprint becomes a part of the fold's,
the row's `version` rises with it: a state of before is then refused instead of found
broken.
"""

from collections.abc import Iterable
from concurrent.futures import Executor

from rankstream.sections import Settings
from streams.comparisons.preference_fold import PreferencesFold
from streams.fold.canonical_fold import CanonicalFold
from streams.fold.consumer import Consumer
from streams.fold.statistics_fold import StatisticsFold


def partition_fold(
    partition: int, settings: Settings, beside: Executor | None = None
) -> CanonicalFold:
    """A new fold of one partition of `events`.

    Parameters
    ----------
    beside
        Counts while the log is read on.
    """
    return CanonicalFold(partition, settings, consumers_of(settings, partition, beside))


def consumers_of(
    settings: Settings, partition: int, beside: Executor | None = None
) -> tuple[Consumer, ...]:
    """New consumers of one partition; state and fingerprint keep this order."""
    return (
        StatisticsFold(settings.limits, settings.time.keep_ms, beside),
        PreferencesFold(settings.experiments, partition),
    )


def preferences_among(consumers: Iterable[Consumer]) -> PreferencesFold:
    """The one that compares rankers, for whoever shows comparisons."""
    return next(each for each in consumers if isinstance(each, PreferencesFold))
