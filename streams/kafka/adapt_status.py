"""How the role `adapt` fares: for its page, and once a minute for its log."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping

from aiokafka import TopicPartition
from prometheus_client.core import GaugeMetricFamily, Metric

from streams.adaptation.adapted import Refusal
from streams.kafka.metrics import family_of

TELL_EVERY_S = 60.0

log = logging.getLogger("rankstream.adapter")


class AdaptStatus:
    """Is told by the role what happens.

    Attributes
    ----------
    trouble
        What keeps the role from its work; "" for nothing.
    """

    def __init__(self, role: str) -> None:
        self.trouble = "it starts"
        self._role = role
        self._counts: dict[tuple[str, str], int] = {}
        self._lags: dict[TopicPartition, int] = {}
        self._told: Counter[tuple[str, str]] = Counter()
        self._told_s = time.monotonic()
        self._wrote_s: float | None = None
        self._refusals: set[tuple[str, str]] = set()

    def wrote(
        self,
        counts: Mapping[tuple[str, str], int],
        lags: Mapping[TopicPartition, int],
    ) -> None:
        """Hear of a transaction, and of all counts and lags after it."""
        self._counts, self._lags = dict(counts), dict(lags)
        self._wrote_s = time.monotonic()

    def lag(self, lags: Mapping[TopicPartition, int]) -> None:
        """Hear how far the reading is behind; of no partition where others read."""
        self._lags = dict(lags)

    def tell_refusals(self, refusals: list[Refusal]) -> None:
        """Log the first document of each source that was refused for a reason."""
        for each in refusals:
            known = each.source, each.code
            if known not in self._refusals:
                self._refusals.add(known)
                log.warning(
                    "event=not-adapted source=%s document=%s code=%s reason=%s (the "
                    "first; see `rankstream dlq list --code not-adapted`)",
                    each.source, each.origin, each.code, ascii(each.words),
                )  # fmt: skip

    def tell(self) -> None:
        """Log the counts of the last minute, where there are any."""
        if time.monotonic() - self._told_s < TELL_EVERY_S:
            return
        self._told_s = time.monotonic()
        for source in sorted({source for _, source in self._counts}):
            grown = {
                name: count - self._told[name, own]
                for (name, own), count in self._counts.items()
                if own == source
            }
            if any(grown.values()):
                words = " ".join(f"{name}={n}" for name, n in sorted(grown.items()))
                log.info("event=adapted source=%s %s", source, words)
        self._told = Counter(self._counts)

    def collect(self) -> Iterator[Metric]:
        """Counts by source, and how far each partition is behind, for Prometheus."""
        families = {}
        for (name, source), count in self._counts.items():
            if name not in families:
                families[name] = family_of(name, ("role", "source"))
            families[name].add_metric((self._role, source), count)
        yield from families.values()
        lags = GaugeMetricFamily(
            "rankstream_source_lag_records",
            "offsets that were not adapted yet",
            labels=("role", "topic", "partition"),
        )
        for (topic, partition), lag in self._lags.items():
            lags.add_metric((self._role, topic, str(partition)), lag)
        yield lags
        if self._wrote_s is not None:
            age = GaugeMetricFamily(
                "rankstream_last_written_age_seconds",
                "since the last event",
                labels=("role",),
            )
            age.add_metric((self._role,), time.monotonic() - self._wrote_s)
            yield age
