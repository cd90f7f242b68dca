"""How far a role that folds nothing has read, what it waits for, what it counted."""

import time
from collections.abc import Iterator, Mapping, Sequence

from prometheus_client.core import GaugeMetricFamily, Metric

from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.metrics import family_of

UNHEARD_S = 60.0
"""After so long without a record, or word that there is none, reading has ceased."""

SourceName = tuple[str, int]


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
            yield _gauge(
                "last_written_age_seconds", "since the last snapshot or verdict",
                ("role",), [(role, time.monotonic() - self._wrote_s)],
            )  # fmt: skip


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
