"""How long commits of a stage take, and how long lists wait to be joined."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.kafka.append_time import wall_ms
from streams.series import COMMIT_S, JOIN_S, SecondsHistogram


@dataclass
class StageTimes:
    """Of all partitions of one stage that a process has.

    Parameters
    ----------
    has_joins
        Whether the stage joins lists with their clicks.
    """

    has_joins: bool = False
    commits: SecondsHistogram = field(
        default_factory=lambda: SecondsHistogram(COMMIT_S)
    )
    joins: SecondsHistogram = field(default_factory=lambda: SecondsHistogram(JOIN_S))

    def histograms(self) -> dict[str, SecondsHistogram]:
        """By the name of the metric."""
        found = {"commit_duration_seconds": self.commits}
        return found | ({"join_delay_seconds": self.joins} if self.has_joins else {})

    def counted(self, before: Mapping[str, int], after: Mapping[str, int]) -> None:
        """Hear of what a commit has counted: lists whose windows the watermark closed.

        Each of them closed at the watermark or before it.
        """
        n = after.get("applied_impressions", 0) - before.get("applied_impressions", 0)
        if n > 0:
            self.joins.observe((wall_ms() - after["watermark_ms"]) / 1_000.0, n)
