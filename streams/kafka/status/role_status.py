"""How far roles without stages have read, and what they wait for and count."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from prometheus_client.core import Metric

from streams.kafka.committed_reader import CommittedBatch
from streams.kafka.status.metrics import families_of
from streams.series import MOST, Series

UNHEARD_S = 60.0
"""After so long without a record, or word that there is none, reading has ceased."""

SourceName = tuple[str, int]

END_EVERY_S, MOST_ENDS = 1.0, 600
"""Of a partition that is behind, ends are noted so often, and at most so many."""


class Lag(NamedTuple):
    """How many records a partition is behind, and the offset that is read next."""

    n_records: int
    position: int


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
        self._lags = Lags(sources)
        self._unread = set(sources)
        self._heard_s = dict.fromkeys(sources, time.monotonic())
        self._counts: dict[str, int] = {}
        self._series: tuple[Series, ...] = ()
        self._wrote_s: float | None = None

    def take(self, source: SourceName, batch: CommittedBatch) -> None:
        """Hear of what was read."""
        self._lags.take({source: Lag(batch.n_behind, batch.position)})
        if batch.at_end:
            self._unread.discard(source)
        elif batch.is_first:
            self._unread.add(source)
        if batch.records or batch.is_settled:
            self._heard_s[source] = time.monotonic()

    def count(
        self,
        counts: Mapping[str, int],
        wrote_s: float | None,
        series: Iterable[Series] = (),
    ) -> None:
        """Take what the role has counted, and when it last wrote (monotonic, s)."""
        self._counts, self._wrote_s = dict(counts), wrote_s
        self._series = tuple(series)

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
        told = {**self._counts, "caught_up": not self._unread} | age_of(self._wrote_s)
        yield from families_of(
            [
                *(Series(name, {}, count) for name, count in told.items()),
                *self._lags.series(),
            ],
            self._role,
        )
        yield from families_of(self._series, self._role, most=MOST)


class _Ends:
    """Where the end of a partition was when: so when the next record was there."""

    def __init__(self) -> None:
        self._ends: list[tuple[int, float]] = []

    def waited_since_s(self, lag: Lag, now_s: float) -> float:
        """Since when the next record has waited, at most; now where there is none."""
        end, ends = lag.position + lag.n_records, self._ends
        while ends and ends[0][0] <= lag.position:
            del ends[0]
        if not lag.n_records:
            ends.clear()
            return now_s
        if not ends or now_s - ends[-1][1] >= END_EVERY_S:
            ends.append((end, now_s))
        elif end > ends[-1][0]:
            ends[-1] = end, ends[-1][1]
        if len(ends) > MOST_ENDS:
            # Of two neighbours the later end and the earlier time: never too little.
            pairs = zip(ends[::2], ends[1::2], strict=False)
            self._ends = [(later, at_s) for (_, at_s), (later, _) in pairs]
            self._ends += ends[len(ends) // 2 * 2 :]
        return self._ends[0][1]


class Lags:
    """How far partitions are behind, and for how long the next record waits."""

    def __init__(self, places: Iterable[SourceName]) -> None:
        now_s = time.monotonic()
        self._behind: dict[SourceName, tuple[int, float]] = dict.fromkeys(
            places, (0, now_s)
        )
        self._ends: dict[SourceName, _Ends] = {}

    def take(self, lags: Mapping[Any, Lag]) -> None:
        """Hear of some of them."""
        now_s = time.monotonic()
        for place, lag in lags.items():
            ends = self._ends.setdefault(place, _Ends())
            self._behind[place] = lag.n_records, ends.waited_since_s(lag, now_s)

    def keep(self, places: Collection[Any]) -> None:
        """Forget all others."""
        self._behind = {at: lag for at, lag in self._behind.items() if at in places}
        self._ends = {at: ends for at, ends in self._ends.items() if at in places}

    def series(self) -> Iterator[Series]:
        """By topic and partition."""
        now_s = time.monotonic()
        for (topic, number), (n_records, since_s) in list(self._behind.items()):
            labels = {"topic": topic, "partition": str(number)}
            yield Series("source_lag_records", labels, n_records)
            behind_s = now_s - since_s if n_records else 0.0
            yield Series("source_lag_seconds", labels, behind_s)


def age_of(wrote_s: float | None) -> dict[str, float]:
    """Seconds since something was written; nothing before."""
    if wrote_s is None:
        return {}
    return {"last_written_age_seconds": time.monotonic() - wrote_s}
