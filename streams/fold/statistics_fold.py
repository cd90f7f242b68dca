"""The fold of closed impressions into statistics that everything else reads.

What is counted, per query, candidate set, intervention, era and group, is said in
`models.counts.definition`; the counting is compiled (`native/counting.c`), and this
module holds its state. The result is a function of the impressions, their order, and
the watermark; when `changes` is called changes nothing.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rankstream.configuration.counting import LimitSettings, StatisticsSettings
from rankstream.wire.topics import STATISTICS
from streams.native.closed_impressions import Closed
from streams.native.counting import N_KEPT, Apart, NativeCounts
from streams.stage import Change, LogRefused, Output
from streams.state_pieces import Parts
from streams.statistics import keys

KINDS = ("set", "row", "scope", "piece", "lists")
"""Of records, in the order in which they are taken back."""


class Pieces(NamedTuple):
    """Which lists of a scope lie apart from its head.

    Those of more than `head_bytes`; `lists` of them lie in a record then. A state
    with another number of them in a record is refused.
    """

    head_bytes: int = 4_096
    lists: int = 2


PIECES = Pieces()

_SETTINGS = (
    "statistics.groups",
    "time.keep_ms",
    "statistics.actions (the classes)",
    "statistics.reward",
    "statistics.actions",
)
"""What is compared with the settings of a state."""


class StatisticsRefused(LogRefused):
    """State of statistics that these settings, or this release, cannot go on from.

    Operator action: as the message says; the state is untouched.
    """


class StatisticsFold:
    """Statistics of one partition of the canonical log."""

    topic = STATISTICS

    def __init__(
        self,
        limits: LimitSettings,
        statistics: StatisticsSettings,
        keep_ms: int,
        partition: int,
        pieces: Pieces | None = None,
    ) -> None:
        pieces = pieces or PIECES
        classes = statistics.classes()
        reward = classes.index(statistics.reward)
        self._apart = Apart(
            groups=statistics.groups,
            keep_ms=keep_ms,
            sets=limits.candidate_sets,
            interventions=limits.interventions,
            rows=limits.exposure_rows,
            lists=limits.lists,
            reward=reward,
            head_bytes=pieces.head_bytes,
            piece_lists=pieces.lists,
        )
        actions = {
            action: classes.index(name) for action, name in statistics.actions.items()
        }
        self._actions = tuple(sorted(statistics.actions.items()))
        self._settings = statistics.groups, keep_ms, classes, statistics.reward
        self._counts = NativeCounts(self._apart, actions)
        self._partition = partition
        self._watermark_ms: int | None = None
        self._parts = Parts()

    def take(self, closed: Closed) -> None:
        """Take closed impressions, in closing order."""
        self._counts.count(closed.encoded, closed.ends)

    def advance(self, watermark_ms: int) -> None:
        """Hear of the watermark, after all that it closed was taken."""
        self._counts.leave(watermark_ms)
        self._watermark_ms = watermark_ms

    def settle(self) -> None:
        """Nothing is left to do: counting is done as it comes."""

    def outputs(self) -> list[Output]:
        """All that is counted is state."""
        return []

    def has_set(self, query: str, name: bytes) -> bool:
        """Whether a living era has a scope of a query and the set of a name."""
        return self._counts.has_set(query, name)

    def changes(self, _outcomes: Mapping[str, int] | None = None) -> list[Change]:
        """What changed since the last call; where a key comes twice the last holds."""
        records: list[Change] = []
        for key, value in self._counts.changes():
            if self._parts.is_plain(key, value):
                records.append(Change(STATISTICS, key, value or None))
            else:
                parts = self._parts.split(key, value or None)
                records += [Change(STATISTICS, *part) for part in parts]
        records.append(
            Change(
                STATISTICS,
                keys.counted_key(self._partition),
                keys.encode_counted(self._counted()),
            )
        )
        return records

    def restore(self, items: Iterable[Change]) -> None:
        """Take back what `changes` gave, into a fold that took nothing yet.

        Raises
        ------
        SchemaRefused
            Where another release wrote it.
        StatisticsRefused
            Where it was counted under other settings, or is not whole.
        """
        try:
            self._restore(_latest(items))
        except ValueError as error:
            raise StatisticsRefused(
                f"the state in the topic {STATISTICS}, partition {self._partition}, "
                f"must be whole; it is not ({error}): begin anew in another --namespace"
            ) from error

    def _restore(self, latest: Mapping[bytes, bytes]) -> None:
        by_kind: dict[str, list[tuple[bytes, bytes]]] = {kind: [] for kind in KINDS}
        counted = None
        for key, value in self._parts.joined(latest).items():
            kind = str(keys.decode(key)[0])
            keys.check_value(kind, key, value)
            if kind == "counted":
                counted = keys.decode_counted(value)
            else:
                by_kind[kind].append((key, value))
        if counted is not None:
            self._take_back(counted)
        by_kind["lists"].sort(key=lambda record: int(keys.decode(record[0])[-1]))
        for kind in KINDS:
            self._counts.restore(by_kind[kind])
        self._counts.restored()

    def fingerprint(self) -> bytes:
        """What two equal states share: how much was taken, and what it made."""
        numbers = self._counts.numbers()
        return struct.pack("<7q", *numbers[:N_KEPT], numbers.lists, numbers.scopes)

    def counters(self) -> dict[str, int]:
        """Counts since the beginning of the log, and sizes."""
        numbers = self._counts.numbers()
        return {
            "statistics_impressions": numbers.taken,
            "statistics_left": numbers.left,
            "statistics_capped": numbers.capped,
            "statistics_clipped": numbers.clipped,
            "statistics_without_exposure": numbers.without_exposure,
            "statistics_scopes": numbers.scopes,
            "statistics_lists": numbers.lists,
            "statistics_exposure_rows": numbers.rows,
            "statistics_bytes": self._counts.n_bytes(),
        }

    def _counted(self) -> keys.Counted:
        """What the columns hold, by name."""
        numbers = self._counts.numbers()
        return keys.Counted(
            *self._settings,
            watermark_ms=self._watermark_ms,
            sources={self._partition: numbers.taken},
            n_left=numbers.left,
            oldest=numbers.oldest if numbers.has_era else None,
            capped=numbers.capped,
            clipped=numbers.clipped,
            without_exposure=numbers.without_exposure,
            actions=self._actions,
        )

    def _take_back(self, counted: keys.Counted) -> None:
        was_counted = *counted[:4], counted.actions
        settings = *self._settings, self._actions
        for name, was, now in zip(_SETTINGS, was_counted, settings, strict=True):
            if was != now:
                raise StatisticsRefused(
                    f"{name} must be what statistics were counted under, {was!r}; "
                    f"got {now!r}: set it back, or begin anew in another --namespace"
                )
        self._watermark_ms = counted.watermark_ms
        taken = sum(counted.sources.values())
        numbers = (counted.n_left, counted.capped, counted.clipped)
        self._counts.set_numbers((taken, *numbers, counted.without_exposure))


def _latest(items: Iterable[Change]) -> dict[bytes, bytes]:
    """The last value of each key of the topic."""
    latest: dict[bytes, bytes] = {}
    for topic, key, value in items:
        if topic != STATISTICS:
            continue
        if value is None:
            latest.pop(key, None)
        else:
            latest[key] = value
    return latest
