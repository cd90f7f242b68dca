"""What was counted of a query, scope by scope or all together, and what is missing."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import msgspec
import numpy as np

from models.counts.cells import CellSummary, merge
from models.counts.scope_record import CAPPED, CONVERTED, OVERFLOWED, TRUNCATED
from rankstream.operations.answers.as_builtins import Answer, as_builtins
from rankstream.operations.terminal.words import counted
from rankstream.settings import ModelSettings, Settings
from rankstream.wire.routing import partition_of_route, route_of_query
from streams.fold.candidates_fold import COUNTS, STATE_TOPIC
from streams.statistics.keys import Counted, ScopeName
from streams.statistics.reader import Statistics

_FLAGS = {
    CAPPED: "beyond the limits on sets and interventions: only shown and clicked "
    "are counted",
    OVERFLOWED: "more lists, masks or exposure rows than `limits` keeps apart: sums "
    "are exact, lists are not all kept",
    TRUNCATED: "some lists have more than 32 items: their masks are not kept",
    CONVERTED: "converted from an earlier release: exposures are refused",
}

DAY_MS = 86_400_000

Place = tuple[str, int]
"""Item and rank."""


class Wanted(NamedTuple):
    """What scopes are asked for; None where anything will do.

    Parameters
    ----------
    candidates
        How the hexadecimal name of the set begins.
    intervention
        Its whole name; empty for lists without one.
    era
        Its number, or a day (UTC) that it has a part of, such as 2025-09-09.
    """

    candidates: str | None = None
    intervention: str | None = None
    era: str | None = None


@dataclass(frozen=True)
class CountedQuery(Answer):
    """How often lists of a query were shown, and clicked in places."""

    query: str
    impressions: int
    clicks: int


@dataclass(frozen=True)
class CountedQueries(Answer):
    """Queries, the most shown first, of `n_queries`; `reward` is what clicks are."""

    n_queries: int
    reward: str
    queries: list[CountedQuery]


@dataclass(frozen=True)
class WrittenStatistics(Answer):
    """Numbers of rows by file, and whether there was a curve to correct them by."""

    files: dict[str, int]
    is_corrected: bool


@dataclass(frozen=True)
class ConvertedPart(Answer):
    """Statistics of before that were converted, or would be.

    Parameters
    ----------
    place
        The partition, or the file.
    leaves_ms
        When they leave, in event time.
    """

    place: str
    cells: int
    scopes: int
    impressions: int
    clicks: int
    exposure_rows: int
    leaves_ms: int


@dataclass(frozen=True)
class CountedPlace(Answer):
    """An item at a rank.

    Parameters
    ----------
    rewards
        Times by number of the class of actions; clicks are in `clicked`.
    exposure
        How often it was expected; None where nobody knows.
    """

    item: str
    rank: int
    shown: int
    clicked: int
    rewards: Mapping[int, int]
    exposure: float | None


@dataclass(frozen=True)
class CountedScopes(Answer):
    """What a scope counted with all its groups, or several as one.

    Parameters
    ----------
    name
        Of the scope; None of several.
    flags
        How many of the scopes have each flag.
    exposures
        Expected times by item and rank, where they are known.
    """

    name: ScopeName | None
    n_scopes: int
    flags: Counter[int]
    cell: CellSummary
    exposures: dict[Place, float]

    def places(self) -> list[CountedPlace]:
        """Every item and rank, rank by rank, the most shown first."""
        cell = self.cell
        counts = {
            (cell.items[item], rank): (n_shown, n_clicked)
            for item, rank, n_shown, n_clicked in cell.pairs[:, :4].tolist()
        }
        rewards: dict[Place, dict[int, int]] = defaultdict(dict)
        for which, item, rank, number in cell.rewards.tolist():
            rewards[cell.items[item], rank][which] = number
        found = [
            CountedPlace(
                item,
                rank,
                *counts.get((item, rank), (0, 0)),
                rewards.get((item, rank), {}),
                self.exposures.get((item, rank)),
            )
            for item, rank in counts.keys() | self.exposures.keys() | rewards.keys()
        ]
        return sorted(found, key=lambda each: (each.rank, -each.shown, each.item))

    def classes(self) -> list[int]:
        """Numbers of the classes of actions that were counted beside clicks."""
        return list(np.unique(self.cell.rewards[:, 0]).tolist())

    def remarks(self) -> list[str]:
        """What must be known about a scope, or about some of several."""
        if self.name is not None:
            return [words for flag, words in _FLAGS.items() if self.flags[flag]]
        return [
            f"in {self.flags[flag]:,} of {self.n_scopes:,} scopes: {words}"
            for flag, words in _FLAGS.items()
            if self.flags[flag]
        ]

    def to_dict(self) -> dict[str, Any]:
        """Its name, places and remarks."""
        return {
            "scope": as_builtins(self.name),
            "n_scopes": self.n_scopes,
            "lists": self.cell.total("impressions"),
            "clicks": self.cell.total("clicks"),
            "places": as_builtins(self.places()),
            "remarks": self.remarks(),
        }

    @classmethod
    def gives(cls) -> dict[str, Any]:
        """As `to_dict`."""
        return {
            "scope": ScopeName | None,
            "n_scopes": int,
            "lists": int,
            "clicks": int,
            "places": list[CountedPlace],
            "remarks": list[str],
        }


def chosen(
    names: Sequence[ScopeName], wanted: Wanted, settings: Counted | None
) -> list[ScopeName]:
    """Those that are asked for.

    Raises
    ------
    ValueError
        Where the era is neither a number nor a day, or a day of eras whose length
        nobody knows; where the candidates are no hexadecimal digits.
    """
    candidates = wanted.candidates or ""
    if not re.fullmatch(r"[0-9a-fA-F]*", candidates):
        raise ValueError(
            "--candidates must be how the hexadecimal name of a set begins, as the "
            f"table of scopes has it; got {candidates!r}"
        )
    eras = None if wanted.era is None else _eras(wanted.era, settings)
    return [
        name
        for name in names
        if wanted.intervention in (None, name.intervention)
        and name.candidate_set.hex().startswith(candidates.lower())
        and (eras is None or name.era in eras)
    ]


def _eras(told: str, settings: Counted | None) -> range:
    if re.fullmatch(r"-?\d+", told):
        return range(int(told), int(told) + 1)
    try:
        day = date.fromisoformat(told)
    except ValueError:
        raise ValueError(
            f"--era must be a number, or a day such as 2025-09-09; got {told!r}"
        ) from None
    if settings is None:
        raise ValueError(
            f"--era must be a number, as nothing says how long eras are; got {told!r}"
        )
    start = datetime(day.year, day.month, day.day, tzinfo=UTC)
    first_ms = int(start.timestamp()) * 1_000
    last_ms = first_ms + DAY_MS - 1
    return range(first_ms // settings.keep_ms, last_ms // settings.keep_ms + 1)


def counted_scope(statistics: Statistics, name: ScopeName) -> CountedScopes:
    """A scope with all its groups; without exposures where those are refused."""
    scope, cell = statistics.scope(name), statistics.summary(name)
    expected: dict[Place, float] = {}
    if not scope.flags & CONVERTED:
        expected = statistics.exposures(*name[:3], cell, name.era)
    flags = Counter(1 << bit for bit in range(8) if scope.flags >> bit & 1)
    return CountedScopes(name, 1, flags, cell, expected)


def together(scopes: Sequence[CountedScopes]) -> CountedScopes:
    """The sums of scopes, one or more.

    Expected exposures are only of places of which every scope knows one: a sum of some
    would pass for that of all.
    """
    exposures: dict[Place, float] = defaultdict(float)
    flags: Counter[int] = Counter()
    for one in scopes:
        for place, expected in one.exposures.items():
            exposures[place] += expected
        flags += one.flags
    for one in scopes:
        for item, rank in one.cell.pairs[:, :2].tolist():
            place = one.cell.items[item], rank
            if place not in one.exposures:
                exposures.pop(place, None)
    cell = merge([one.cell for one in scopes])
    return CountedScopes(None, len(scopes), flags, cell, dict(exposures))


def left_label(statistics: Statistics) -> str:
    """How much is not in the counts any more; empty where all is."""
    share = statistics.share_left()
    if not share:
        return ""
    before = ", or they left one by one before the conversion"
    return (
        f"{share:.1%} of all interactions that were counted have left: their era "
        "ended more than `time.keep_ms` ago"
        f"{before if statistics.n_converted() else ''}"
    )


def missing_label(n_missing: int, one: str, several: str) -> str:
    """That something is not in the topic any more; empty where all of it is."""
    if n_missing < 1:
        return ""
    are = "is" if n_missing == 1 else "are"
    return (
        f"{counted(n_missing, one, several)} {are} missing: records left the topic "
        "that should be there; `rankstream recount` says which"
    )


def sets_to_be_logged(
    names: Sequence[ScopeName], models: Mapping[str, ModelSettings]
) -> set[bytes]:
    """Candidate sets of lists by models whose rankers log features.

    Parameters
    ----------
    names
        Scopes of one query.
    """
    return {
        name.candidate_set
        for name in names
        if not name.is_growing and _logs(name.intervention, models)
    }


def _logs(intervention: str, models: Mapping[str, ModelSettings]) -> bool:
    """Whether it is a model, or a version of one, that logs them."""
    name = intervention if intervention in models else intervention.rpartition("@")[0]
    return name in models and models[name].logs_candidates


def sets_logged(settings: Settings, query: str) -> set[bytes]:
    """Candidate sets of a query with features in the topic `candidates`.

    As the fold knows it at its last checkpoint: features themselves are not read.
    """
    # Kafka's client is loaded only where it is needed.
    from producers.topic_reader import TopicReader  # noqa: PLC0415

    found: set[bytes] = set()
    with TopicReader(settings) as reader:
        n_partitions = len(reader.partitions(STATE_TOPIC))
        if not n_partitions:
            return found
        partition = partition_of_route(route_of_query(query), n_partitions)
        for record in reader.records(STATE_TOPIC, {partition: 0}):
            if record.key is None or record.key == COUNTS:
                continue
            of_query, name = msgspec.msgpack.decode(record.key)
            if of_query == query:
                (found.add if record.value else found.discard)(name)
    return found


def never_logged_label(wanted: Collection[bytes], logged: Collection[bytes]) -> str:
    """That features are missing; empty where all are there."""
    n_missing = len(set(wanted) - set(logged))
    if not n_missing:
        return ""
    return (
        f"features of candidates were never logged for "
        f"{counted(n_missing, 'candidate set')} of {len(wanted):,} that models with "
        "`log_candidates` ranked: nothing can be trained on these; rankers log them "
        "with the first list that they rank, once their snapshot says so"
    )
