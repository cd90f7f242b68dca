"""Some scopes of a query, and what they counted together."""

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from models.counts.cells import CellSummary, merge
from models.counts.scope_record import CONVERTED
from streams.statistics.keys import Counted, ScopeName
from streams.statistics.reader import Statistics

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


class ShownScope(NamedTuple):
    """What is printed of a scope."""

    name: ScopeName
    flags: int
    cell: CellSummary
    exposures: dict[Place, float]


class Together(NamedTuple):
    """Several scopes as one; how many of them have each flag."""

    n_scopes: int
    flags: Counter[int]
    cell: CellSummary
    exposures: dict[Place, float]


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


def shown_scope(statistics: Statistics, name: ScopeName) -> ShownScope:
    """A scope with all its groups; without exposures where those are refused."""
    scope, cell = statistics.scope(name), statistics.summary(name)
    expected: dict[Place, float] = {}
    if not scope.flags & CONVERTED:
        expected = statistics.exposures(*name[:3], cell, name.era)
    return ShownScope(name, scope.flags, cell, expected)


def together(scopes: Sequence[ShownScope]) -> Together:
    """The sums of scopes, one or more.

    Expected exposures are only of places of which every scope knows one: a sum of some
    would pass for that of all.
    """
    exposures: dict[Place, float] = defaultdict(float)
    flags: Counter[int] = Counter()
    for one in scopes:
        for place, expected in one.exposures.items():
            exposures[place] += expected
        flags.update(1 << bit for bit in range(8) if one.flags >> bit & 1)
    for one in scopes:
        for item, rank in one.cell.pairs[:, :2].tolist():
            place = one.cell.items[item], rank
            if place not in one.exposures:
                exposures.pop(place, None)
    cell = merge([one.cell for one in scopes])
    return Together(len(scopes), flags, cell, dict(exposures))
