"""What statistics hold, in plain dictionaries: scopes, their cells, and totals."""

from dataclasses import dataclass, field
from typing import NamedTuple

OPEN_SET = bytes(16)
OVERFLOW_SET = b"\xff" * 16

CAPPED, OVERFLOWED, CONVERTED = 1, 2, 8
"""Flags of a stored scope."""

Place = tuple[str, int]
"""Item and 1-based rank."""

RowKey = tuple[int, int, bytes, tuple[str, ...]]
"""Policy, length of the list, material, candidates where the set is open."""

MaskKey = tuple[RowKey | int, tuple[str, ...], tuple[int, ...]]
"""Exposure row, or policy where there is none; items as shown; clicked ranks."""


class ScopeKey(NamedTuple):
    """Where a scope of a query is; a set is its items, or the name of a growing one."""

    candidate_set: tuple[str, ...] | bytes
    intervention: str
    era: int


@dataclass
class Cell:
    """What a group of a scope counted, and how much follows from inexact placements.

    `pairs` by (item, rank): shown, clicked, first_click, shown_to_first,
    shown_to_last. `exposures` by (item, rank): fixed point, of impressions without
    a row. `expected` is the same not rounded, and `loose` how many placements in it are
    not certain, so that fixed point rounds them. `sums` by item: plus, minus, inverse,
    inverse squared. `rewards` by class, item, rank. `slack`: by how much a number may
    be off.
    """

    totals: dict[str, int] = field(default_factory=dict)
    pairs: dict[Place, list[int]] = field(default_factory=dict)
    exposures: dict[Place, int] = field(default_factory=dict)
    expected: dict[Place, float] = field(default_factory=dict)
    loose: dict[Place, int] = field(default_factory=dict)
    sums: dict[str, list[int]] = field(default_factory=dict)
    click_pairs: dict[tuple[Place, Place], int] = field(default_factory=dict)
    rows: dict[RowKey, int] = field(default_factory=dict)
    masks: dict[MaskKey, int] = field(default_factory=dict)
    rewards: dict[tuple[int, str, int], int] = field(default_factory=dict)
    slack: dict[object, float] = field(default_factory=dict)

    def add_total(self, name: str, count: int) -> None:
        """Count one of the totals."""
        self.totals[name] = self.totals.get(name, 0) + count

    def add_slack(self, what: object, size: float) -> None:
        """Say that a number may be off by so much more."""
        self.slack[what] = self.slack.get(what, 0.0) + size


@dataclass
class Scope:
    """Cells by group; the latest time of an impression; kept rows, in their order."""

    last_ms: int
    flags: int = 0
    cells: dict[int, Cell] = field(default_factory=dict)
    rows: list[RowKey] = field(default_factory=list)


Scopes = dict[ScopeKey, Scope]
"""Of one query."""


@dataclass
class Counted:
    """What the record `counted` says of one partition of the log.

    `n_left` impressions were in eras that left; `oldest` is the least era of a
    living scope. `capped`, `clipped` and `without_exposure` count since the beginning
    of the log. `settings` are groups, keep_ms, classes and reward. `watermark_ms` is
    None before every source has spoken.
    """

    interactions: int = 0
    watermark_ms: int | None = None
    n_left: int = 0
    oldest: int | None = None
    capped: int = 0
    clipped: int = 0
    without_exposure: int = 0
    clipped_slack: float = 0.0
    settings: tuple[object, ...] = ()
