"""Who takes closed impressions inside the fold, beside the logs that leave it.

A consumer's state is written and restored with the fold's, in a topic of its own. A new
one is a file of its own and an entry of `consumers_of`; its topic goes to the fold's
row in `streams.topology`. As its fingerprint becomes a part of the fold's, the row's
`version` rises with it: a state of before is then refused instead of found broken.
"""

from collections.abc import Iterable, Mapping
from concurrent.futures import Executor
from typing import Protocol

from rankstream.settings import Settings
from streams.comparisons.preference_fold import PreferencesFold
from streams.fold.closed_impressions import Closed
from streams.fold.statistics_fold import StatisticsFold
from streams.stage import Change


class Consumer(Protocol):
    """One fold of closed impressions, for one partition of the canonical log.

    Attributes
    ----------
    topic
        Where its state lies.
    """

    topic: str

    def take(self, closed: Closed, /) -> None:
        """Take closed impressions, in closing order."""

    def advance(self, watermark_ms: int, /) -> None:
        """Hear of the watermark, after all that it closed was taken."""

    def settle(self) -> None:
        """Do pending numeric work that holds no lock (may run in a thread)."""

    def changes(self, outcomes: Mapping[str, int], /) -> Iterable[Change]:
        """State that changed since the last call.

        Parameters
        ----------
        outcomes
            Of all events of the partition.
        """

    def restore(self, items: Iterable[Change], /) -> None:
        """Take back what `changes` gave; items of other topics are passed over."""

    def fingerprint(self) -> bytes:
        """A few bytes that two equal states share."""

    def counters(self) -> dict[str, int]:
        """Counts and sizes, by metric name."""


def consumers_of(
    settings: Settings, partition: int, beside: Executor | None = None
) -> tuple[Consumer, ...]:
    """New consumers of one partition; state and fingerprint keep this order.

    Parameters
    ----------
    beside
        Counts while the log is read on.
    """
    return (
        StatisticsFold(settings.limits, settings.time.keep_ms, beside),
        PreferencesFold(settings.experiments, partition),
    )


def preferences_among(consumers: Iterable[Consumer]) -> PreferencesFold:
    """The one that compares rankers, for whoever shows comparisons."""
    return next(each for each in consumers if isinstance(each, PreferencesFold))
