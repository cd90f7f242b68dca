"""How far roles without stages have read, and what they wait for and count."""

import logging
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from aiokafka import TopicPartition
from prometheus_client.core import GaugeMetricFamily, Metric

from streams.adaptation.adapted import Refusal
from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.status.metrics import family_of

UNHEARD_S = 60.0
"""After so long without a record, or word that there is none, reading has ceased."""

TELL_EVERY_S = 60.0
"""Counts of the role `adapt` are logged so often."""

SourceName = tuple[str, int]

log = logging.getLogger("rankstream.adapter")


class RoleStatus:
    """Is told by the loop of a role what happens; tells the role's page.

    Attributes
    ----------
    away
        What does not answer, with its error; "" where a turn came through.
    """

    def __init__(self, role: str, sources: Sequence[SourceName]) -> None:
        self.away = ""
        self._role = role
        self._behind = dict.fromkeys(sources, 0)
        self._unread = set(sources)
        self._heard_s = dict.fromkeys(sources, time.monotonic())
        self._counts: dict[str, int] = {}
        self._wrote_s: float | None = None

    def take(self, source: SourceName, batch: CommittedBatch) -> None:
        """Hear of what was read."""
        self._behind[source] = batch.n_behind
        if batch.at_end:
            self._unread.discard(source)
        elif batch.is_first:
            self._unread.add(source)
        if batch.records or batch.is_settled:
            self._heard_s[source] = time.monotonic()

    def count(self, counts: Mapping[str, int], wrote_s: float | None) -> None:
        """Take what the role has counted, and when it last wrote (monotonic, s)."""
        self._counts, self._wrote_s = dict(counts), wrote_s

    def troubles(self) -> Iterator[str]:
        """What keeps the role from its work."""
        now_s = time.monotonic()
        for source, heard_s in self._heard_s.items():
            name = f"{source[0]}[{source[1]}]"
            if now_s - heard_s > UNHEARD_S:
                yield f"{name}: the broker has said nothing for {now_s - heard_s:.0f} s"
            elif source in self._unread:
                yield f"{name} is not read to its end yet"
        if self.away:
            yield self.away

    def collect(self) -> Iterator[Metric]:
        """Counts, and how far the role is behind, for Prometheus."""
        role = (self._role,)
        for name, count in self._counts.items():
            family = family_of(name, ("role",))
            family.add_metric(role, count)
            yield family
        yield _gauge(
            "caught_up", "every source was read to its end", ("role",),
            [(role, not self._unread)],
        )  # fmt: skip
        yield _gauge(
            "source_lag_records", "offsets that were not read yet",
            ("role", "topic", "partition"),
            [((*role, topic, str(n)), at) for (topic, n), at in self._behind.items()],
        )  # fmt: skip
        if self._wrote_s is not None:
            help_ = "since the last snapshot or verdict"
            yield _age(help_, self._role, self._wrote_s)


class AdaptStatus:
    """Is told by the role `adapt` what happens: for its page and its log.

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
        yield _gauge(
            "source_lag_records", "offsets that were not adapted yet",
            ("role", "topic", "partition"),
            [((self._role, *map(str, at)), lag) for at, lag in self._lags.items()],
        )  # fmt: skip
        if self._wrote_s is not None:
            yield _age("since the last event", self._role, self._wrote_s)


def _age(help_: str, role: str, wrote_s: float) -> Metric:
    age_s = time.monotonic() - wrote_s
    return _gauge("last_written_age_seconds", help_, ("role",), [((role,), age_s)])


def _gauge(
    name: str,
    help_: str,
    labels: Sequence[str],
    values: Sequence[tuple[tuple[str, ...], float]],
) -> Metric:
    family = GaugeMetricFamily(f"rankstream_{name}", help_, labels=labels)
    for at, value in values:
        family.add_metric(at, value)
    return family
