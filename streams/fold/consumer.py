"""The protocol of what counts closed impressions inside the fold.

A consumer's state is written and restored with the fold's, in a topic of its own.
`streams.partition_fold` lists those that there are.
"""

from collections.abc import Iterable, Mapping
from typing import Protocol

from streams.native.closed_impressions import Closed
from streams.stage import Change, Output


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

    def outputs(self) -> list[Output]:
        """Records that it writes beside its state, since the last call."""

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
        """A few bytes that two equal states share.

        Empty where it took nothing: a consumer that is new then changes no fingerprint
        of a log that gives it nothing.
        """

    def counters(self) -> dict[str, int]:
        """Counts and sizes, by metric name."""
