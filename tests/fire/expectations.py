"""What must become of everything that was sent, as its sender knows."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

LetterKey = tuple[str, int, int, int]
"""Input topic, partition, offset, place in the record."""

Mark = tuple[int, int, str]
"""A click that counts: time, position, action."""


@dataclass
class Shown:
    """An impression that must be applied, and the clicks that must be with it.

    `era` is that of its time, and the partition of the log that it is in.
    """

    query: str
    intervention: str
    items: tuple[str, ...]
    era: tuple[int, int] = (0, 0)
    marks: list[Mark] = field(default_factory=list)


@dataclass(frozen=True)
class Letter:
    """A dead letter that must be there."""

    value: bytes | None
    code: str
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    is_of_join: bool = False


@dataclass
class Expected:
    """Closed form of the whole run.

    `aside` counts what must lie in `late`: outcome and event, where an event is the
    id of an impression or the bytes of a click.
    """

    shown: dict[str, Shown] = field(default_factory=dict)
    duplicates: int = 0
    aside: Counter[tuple[str, str | bytes]] = field(default_factory=Counter)
    letters: dict[LetterKey, Letter] = field(default_factory=dict)

    def outcomes(self) -> dict[str, int]:
        """Counters of the fold, all partitions together."""
        counts = {
            "applied_impressions": len(self.shown),
            "applied_clicks": sum(len(one.marks) for one in self.shown.values()),
            "duplicate": self.duplicates,
            "late": sum(n for (kind, _), n in self.aside.items() if kind == "late"),
            "orphan": sum(n for (kind, _), n in self.aside.items() if kind == "orphan"),
            "dead_letter": sum(one.is_of_join for one in self.letters.values()),
            "pending": 0,
        }
        return {"consumed": sum(counts.values()), **counts}

    def ingestion(self) -> dict[str, int]:
        """Counters of ingest, all partitions together."""
        passed = self.outcomes()["consumed"]
        dead = sum(not one.is_of_join for one in self.letters.values())
        return {"consumed": passed + dead, "passed": passed, "dead_letter": dead}


def query_counts(
    expected: Expected, oldest: Mapping[int, int], actions: Mapping[str, str]
) -> dict[tuple[str, str], Counter[object]]:
    """Totals and places of each query and intervention, all that live together.

    Keys of the counters are names of totals, (name, item, rank), and (class, item,
    rank) of actions that are no clicks.

    Parameters
    ----------
    oldest
        The least era that still lives, by partition of the log.
    actions
        Classes of actions that are no clicks.
    """
    found: dict[tuple[str, str], Counter[object]] = {}
    for one in expected.shown.values():
        era, partition = one.era
        if era < oldest[partition]:
            continue
        counts = found.setdefault((one.query, one.intervention), Counter())
        others = {(actions.get(action), rank) for _, rank, action in one.marks}
        ranks = {rank for name, rank in others if name is None}
        for name, rank in others:
            if name is not None:
                counts[name, one.items[rank - 1], rank] += 1
        first, last = min(ranks, default=0), max(ranks, default=0)
        counts["impressions"] += 1
        counts["without_click"] += not ranks
        counts["clicks"] += len(ranks)
        counts["clicks_squared"] += len(ranks) ** 2
        for rank, item in enumerate(one.items, 1):
            counts["shown", item, rank] += 1
            counts["clicked", item, rank] += rank in ranks
            counts["first_click", item, rank] += rank == first
            counts["shown_to_first", item, rank] += not first or rank <= first
            counts["shown_to_last", item, rank] += rank <= last
    return found
