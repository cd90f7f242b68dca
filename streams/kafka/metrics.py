"""What a worker's stages count, for Prometheus."""

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    Metric,
)

from rankstream.settings import MetricsSettings

log = logging.getLogger("rankstream.metrics")

GAUGES = (
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


class Gauges:
    """Shows what every open partition counted, as of its last commit.

    The page is served by another thread, which must not touch a stage.
    """

    def __init__(
        self, committers: Mapping[Any, Any], lag_of: Callable[[Any], int]
    ) -> None:
        self._committers = committers
        self._lag_of = lag_of
        self.registry = CollectorRegistry()
        self.registry.register(self)

    def serve(self, settings: MetricsSettings) -> None:
        """Offer the page if a port is set; if the port is in use, go on without."""
        if not settings.port:
            return
        try:
            start_http_server(settings.port, settings.host, self.registry)
        except OSError as error:
            log.warning(
                "event=no-metrics at=%s:%d reason=%s",
                settings.host, settings.port, error.strerror,
            )  # fmt: skip

    def collect(self) -> Iterator[Metric]:
        """One family for each count, labelled by stage and partition."""
        families: dict[str, Metric] = {}
        labels = ("stage", "partition")
        for place, committer in list(self._committers.items()):
            where = (committer.kind.name, str(committer.partition))
            counts: dict[str, float] = dict(committer.counts)
            counts["unacknowledged_records_pending"] = len(committer.backlog)
            counts["lag_records"] = self._lag_of(place)
            counts["folded_offset"] = committer.folded
            counts["commits"] = committer.position.number
            counts["commit_seconds"] = committer.seconds
            for name, count in counts.items():
                family = families.get(name)
                if family is None:
                    family = families[name] = _family(name, labels)
                family.add_metric(where, count)  # type: ignore[attr-defined]
        yield from families.values()


def _family(name: str, labels: tuple[str, str]) -> Metric:
    is_gauge = any(name.startswith(part) or name.endswith(part) for part in GAUGES)
    help_ = name.replace("_", " ")
    if is_gauge:
        return GaugeMetricFamily(f"rankstream_{name}", help_, labels=labels)
    return CounterMetricFamily(f"rankstream_{name}", help_, labels=labels)
