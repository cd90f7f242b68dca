"""Differences between the recount and what was counted."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams.recount.scopes import (
    CAPPED,
    CONVERTED,
    OVERFLOW_SET,
    OVERFLOWED,
    Cell,
    Counted,
    Scope,
    ScopeKey,
    Scopes,
)
from streams.recount.weights import RELATIVE, ItemWeights

MOST_DIFFERENCES = 20


@dataclass
class Verdict:
    """Four numbers, all of them 0 where everything is as it must be.

    `lost`: counted too little or not at all; `double`: counted too much; `wrong`:
    another value; `extra`: counted although it never happened. `differences` tells of
    the first ones. `accepted_losses` are what never reached the log; no count can miss
    them.
    """

    lost: int = 0
    double: int = 0
    wrong: int = 0
    extra: int = 0
    n_events: int = 0
    differences: list[str] = field(default_factory=list)
    accepted_losses: list[str] = field(default_factory=list)

    @property
    def is_clean(self) -> bool:
        """Whether nothing is amiss."""
        return not (self.lost or self.double or self.wrong or self.extra)

    def find(self, kind: str, where: str, count: int = 1) -> None:
        """Note something that is amiss."""
        setattr(self, kind, getattr(self, kind) + count)
        if len(self.differences) < MOST_DIFFERENCES:
            self.differences.append(f"{kind}: {where}")

    def compare(self, where: str, expected: int, found: int) -> None:
        """Note a count that is not as it must be."""
        if found != expected:
            kind = "lost" if found < expected else "double"
            amount = abs(found - expected)
            self.find(kind, f"{where}: expected {expected}, found {found}", amount)

    def compare_all(
        self, where: str, expected: Mapping[str, int], found: Mapping[str, int]
    ) -> None:
        """Note every named count that is not as it must be."""
        for name in expected.keys() | found.keys():
            of_it = expected.get(name, 0), found.get(name, 0)
            self.compare(f"{where} {name}", *of_it)

    def add(self, other: "Verdict") -> None:
        """Take over what another verdict found."""
        for kind in ("lost", "double", "wrong", "extra"):
            setattr(self, kind, getattr(self, kind) + getattr(other, kind))
        room = MOST_DIFFERENCES - len(self.differences)
        self.differences += other.differences[:room]

    def as_dict(self) -> dict[str, object]:
        """For JSON."""
        return {
            "lost": self.lost,
            "double": self.double,
            "wrong": self.wrong,
            "extra": self.extra,
            "events": self.n_events,
            "differences": self.differences,
            "accepted_losses": self.accepted_losses,
        }


def compare_scopes(
    query: str, expected: Scopes, found: Scopes, verdict: Verdict
) -> None:
    """Note every count of a query's scopes that is not as it must be."""
    for key in expected.keys() | found.keys():
        where = f"{query!r:.60} {named(key)}"
        if key not in expected:
            verdict.find("extra", f"scope {where}")
        elif key not in found:
            cells = expected[key].cells.values()
            n_lost = sum(cell.totals["impressions"] for cell in cells)
            verdict.find("lost", f"scope {where}", n_lost)
        else:
            _compare_scope(where, expected[key], found[key], verdict)


def named(key: ScopeKey) -> str:
    """A scope as differences name it."""
    candidates = key.candidate_set
    if isinstance(candidates, tuple):
        candidates_named = f"{','.join(candidates):.60}"
    else:
        candidates_named = "capped" if candidates == OVERFLOW_SET else "open"
    return f"[{candidates_named}] {key.intervention!r:.60} era {key.era}"


def _compare_scope(where: str, expected: Scope, found: Scope, verdict: Verdict) -> None:
    if found.flags & CONVERTED:
        reason = "came from an older release and cannot be counted again"
        verdict.find("wrong", f"{where}: {reason}")
        return
    if found.last_ms != expected.last_ms:
        verdict.find(
            "wrong",
            f"{where}: must be shown last at {expected.last_ms}; got {found.last_ms}",
        )
    if (found.flags ^ expected.flags) & CAPPED:
        verdict.find("wrong", f"{where}: flags {found.flags}, capped is wrong")
    if expected.flags & OVERFLOWED and not found.flags & OVERFLOWED:
        verdict.find("wrong", f"{where}: flags {found.flags}, must have overflowed")
    for group in expected.cells.keys() | found.cells.keys():
        label = f"{where} group {group}"
        if group not in expected.cells:
            verdict.find("extra", f"cell {label}")
            continue
        ours, theirs = expected.cells[group], found.cells.get(group, Cell())
        compare_cells(label, ours, theirs, verdict)
        has_room = not found.flags & (CAPPED | OVERFLOWED)
        _compare_masks(label, (ours, theirs), verdict, has_room=has_room)


def _compare_masks(
    where: str, both: tuple[Cell, Cell], verdict: Verdict, *, has_room: bool
) -> None:
    """Never more than there were, and all of them where nothing overflowed."""
    expected, found = both[0].masks, both[1].masks
    for key in expected.keys() | found.keys():
        ours, theirs = expected.get(key, 0), found.get(key, 0)
        label = f"{where} mask {key!r:.160}"
        if not ours:
            verdict.find("extra", label, theirs)
        elif has_room or theirs > ours:
            verdict.compare(label, ours, theirs)


def compare_counted(
    where: str, expected: Counted, found: Counted, verdict: Verdict
) -> None:
    """Note what the record `counted` of a partition says amiss, but for its sums."""
    for name in ("watermark_ms", "oldest", "settings"):
        ours, theirs = getattr(expected, name), getattr(found, name)
        if ours != theirs:
            verdict.find("wrong", f"{where} {name}: must be {ours}; got {theirs}")


def compare_sums(
    parts: Sequence[tuple[str, Counted, Counted]], verdict: Verdict
) -> None:
    """Note what sums since the beginning of the log say amiss.

    Parameters
    ----------
    parts
        A partition, and all that were divided from it: place, expected and found. A
        partition that is divided keeps its sums, so that only those of all hold.
    """
    where = " and ".join(place for place, _, _ in parts)
    expected, found = [part[1] for part in parts], [part[2] for part in parts]
    for name in ("interactions", "n_left", "capped", "without_exposure"):
        verdict.compare(
            f"{where} {name}",
            sum(getattr(one, name) for one in expected),
            sum(getattr(one, name) for one in found),
        )
    clipped = sum(one.clipped for one in expected), sum(one.clipped for one in found)
    slack = sum(one.clipped_slack for one in expected)
    _compare_close(f"{where} clipped", clipped, slack, verdict)


def compare_cells(where: str, expected: Cell, found: Cell, verdict: Verdict) -> None:
    """Note every count of a cell that is not as it must be."""
    clipped = expected.totals.pop("clipped", 0), found.totals.pop("clipped", 0)
    _compare_close(
        f"{where} clipped", clipped, expected.slack.get("clipped", 0), verdict
    )
    verdict.compare_all(where, expected.totals, found.totals)
    _compare_pairs(where, expected, found, verdict)
    for place in expected.exposures.keys() | found.exposures.keys():
        both = expected.exposures.get(place, 0), found.exposures.get(place, 0)
        slack = expected.slack.get(place, 0)
        _compare_close(f"{where} exposure {place}", both, slack, verdict)
    nothing = [0, 0, 0, 0]
    for item in expected.sums.keys() | found.sums.keys():
        ours, theirs = expected.sums.get(item, nothing), found.sums.get(item, nothing)
        for column, name in enumerate(("plus", "minus", "inverse", "squared")):
            slack = expected.slack.get(("sum", item, column), 0)
            both = ours[column], theirs[column]
            _compare_close(f"{where} {name} of {item}", both, slack, verdict)
    for name in ("click_pairs", "rows", "rewards"):
        ours, theirs = getattr(expected, name), getattr(found, name)
        for key in ours.keys() | theirs.keys():
            label = f"{where} {name} {key!r:.120}"
            if key not in ours:
                verdict.find("extra", f"{label}: found {theirs[key]}")
            else:
                verdict.compare(label, ours[key], theirs.get(key, 0))


def compare_weights(
    where: str,
    expected: Mapping[str, ItemWeights],
    found: Mapping[str, ItemWeights],
    verdict: Verdict,
) -> None:
    """Note every field that corrects clicks and is not as it must be."""
    nothing = ItemWeights(0, 0, 0.0, 0.0)
    for item in expected.keys() | found.keys():
        ours = expected.get(item, nothing)
        theirs = found.get(item, nothing).fields()
        for name, number in ours.fields().items():
            is_quotient = name in ("weight", "value")
            if is_quotient and ours.alpha <= 4 * ours.slack:
                continue  # alpha is no more than what rounding leaves: any is right
            # What the sums may be off, the quotients are off by that over alpha.
            scale = (1 + abs(number)) / ours.alpha if is_quotient else 1
            size = max(abs(number), 1e-9)
            if name == "value":  # a difference, as exact as what it is taken of
                size = (ours.clicked + ours.beta) / ours.alpha
            slack = RELATIVE * size + 2 * ours.slack * scale
            if not abs(theirs.get(name, math.nan) - number) <= slack:
                verdict.find(
                    "wrong",
                    f"{where} {name} of {item!r:.60}: expected {number!r} within "
                    f"{slack:.3g}, found {theirs.get(name)!r}",
                )


def _compare_pairs(where: str, expected: Cell, found: Cell, verdict: Verdict) -> None:
    names = ("shown", "clicked", "first_click", "shown_to_first", "shown_to_last")
    for place in expected.pairs.keys() | found.pairs.keys():
        label = f"{where} {place}"
        if place not in expected.pairs:
            verdict.find("extra", label)
        elif place not in found.pairs:
            verdict.find("lost", label, expected.pairs[place][0])
        else:
            ours, theirs = expected.pairs[place], found.pairs[place]
            for column, name in enumerate(names):
                verdict.compare(f"{label} {name}", ours[column], theirs[column])


def _compare_close(
    where: str, both: tuple[int, int], slack: float, verdict: Verdict
) -> None:
    expected, found = both
    if abs(expected - found) > slack:
        verdict.find(
            "wrong", f"{where}: expected {expected} within {slack:.3g}, found {found}"
        )
