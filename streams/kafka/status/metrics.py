"""What a worker's stages count, for Prometheus."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

GAUGES = (
    "_in_force",
    "pending",
    "_ms",
    "_seconds",
    "lag_",
    "folded_",
    "open_",
    "known_",
    "statistics_scopes",
    "statistics_lists",
    "statistics_exposure_rows",
    "statistics_bytes",
)
"""Names that begin or end so are gauges: they may fall as well as rise."""


Family = CounterMetricFamily | GaugeMetricFamily


class Gauges:
    """Shows what every open partition counted, as of its last commit.

    The page is served by another thread, which must not touch a stage.
    """

    def __init__(
        self,
        committers: Mapping[Any, Any],
        lag_of: Callable[[Any], int],
        clock_difference_s: Callable[[Any], float | None],
    ) -> None:
        self._committers = committers
        self._lag_of = lag_of
        self._clock_difference_s = clock_difference_s

    def collect(self) -> Iterator[Metric]:
        """One family for each count, labelled by stage and partition."""
        families: dict[str, Family] = {}
        labels = ("stage", "partition")
        for place, committer in list(self._committers.items()):
            where = (committer.kind.name, str(committer.partition))
            counts: dict[str, float] = dict(committer.counts)
            counts["unacknowledged_records_pending"] = len(committer.backlog)
            counts["lag_records"] = self._lag_of(place)
            counts["folded_offset"] = committer.folded
            counts["commits"] = committer.position.number
            counts["commit_seconds"] = committer.seconds
            ahead_s = self._clock_difference_s(place)
            if ahead_s is not None:
                counts["clock_difference_seconds"] = ahead_s
            lost = sum(map(len, committer.position.losses))
            counts["accepted_loss_offsets"] = lost
            for name, count in counts.items():
                family = families.get(name)
                if family is None:
                    family = families[name] = family_of(name, labels)
                family.add_metric(where, count)
        yield from families.values()


def family_of(name: str, labels: Sequence[str]) -> Family:
    """The metric of a count, a gauge by the look of its name or else a counter."""
    is_gauge = any(name.startswith(part) or name.endswith(part) for part in GAUGES)
    help_ = name.replace("_", " ")
    if is_gauge:
        return GaugeMetricFamily(f"rankstream_{name}", help_, labels=labels)
    return CounterMetricFamily(f"rankstream_{name}", help_, labels=labels)
