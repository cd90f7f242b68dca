"""How far two counts of the same thing are apart."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.recount.query_counts import Cell

MOST_DIFFERENCES = 20


@dataclass
class Verdict:
    """Four numbers, all of them 0 where everything is as it must be.

    `lost`: counted too little or not at all; `double`: counted too much; `wrong`:
    another value; `extra`: counted although it never happened. `differences` tells of
    the first ones.
    """

    lost: int = 0
    double: int = 0
    wrong: int = 0
    extra: int = 0
    n_events: int = 0
    differences: list[str] = field(default_factory=list)

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
        }


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
    for name in ("click_pairs", "rows", "masks"):
        ours, theirs = getattr(expected, name), getattr(found, name)
        for key in ours.keys() | theirs.keys():
            label = f"{where} {name} {key!r:.120}"
            if key not in ours:
                verdict.find("extra", f"{label}: found {theirs[key]}")
            else:
                verdict.compare(label, ours[key], theirs.get(key, 0))


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
            if ours[5] != theirs[5]:
                verdict.find("wrong", f"{label} last shown {ours[5]}, {theirs[5]}")


def _compare_close(
    where: str, both: tuple[int, int], slack: float, verdict: Verdict
) -> None:
    expected, found = both
    if abs(expected - found) > slack:
        verdict.find(
            "wrong", f"{where}: expected {expected} within {slack:.3g}, found {found}"
        )
