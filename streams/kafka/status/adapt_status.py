"""What becomes of documents of other systems: for the page and the log of `adapt`."""

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from aiokafka import TopicPartition
from prometheus_client.core import Metric

from streams.adaptation.adapted import COUNTED, Refusal
from streams.kafka.status.metrics import families_of
from streams.kafka.status.role_status import Lag, Lags, age_of
from streams.series import Series

TELL_EVERY_S = 60.0
"""Counts are logged so often."""

log = logging.getLogger("rankstream.adapter")


class AdaptStatus:
    """Is told by the role `adapt` what happens: for its page and its log.

    Parameters
    ----------
    sources
        Their names: of each there are counts before its first document.

    Attributes
    ----------
    trouble
        What keeps the role from its work; "" for nothing.
    """

    def __init__(self, role: str, sources: Iterable[str] = ()) -> None:
        self.trouble = "it starts"
        self._role = role
        self._counts = {(name, source): 0 for source in sources for name in COUNTED}
        self._lags = Lags(())
        self._told: Counter[tuple[str, str]] = Counter()
        self._told_s = time.monotonic()
        self._wrote_s: float | None = None
        self._refusals: set[tuple[str, str]] = set()

    def wrote(
        self,
        counts: Mapping[tuple[str, str], int],
        lags: Mapping[TopicPartition, Lag],
    ) -> None:
        """Hear of a transaction, and of all counts and lags after it."""
        self._counts |= counts
        self.lag(lags)
        self._wrote_s = time.monotonic()

    def lag(self, lags: Mapping[TopicPartition, Lag]) -> None:
        """Hear how far the reading is behind; of no partition where others read."""
        self._lags.keep(lags)
        self._lags.take(lags)

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
        yield from families_of(
            [
                *(
                    Series(name, {"source": source}, count)
                    for (name, source), count in self._counts.items()
                ),
                *(Series(name, {}, age) for name, age in age_of(self._wrote_s).items()),
                *self._lags.series(),
            ],
            self._role,
        )
