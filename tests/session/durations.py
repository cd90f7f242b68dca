"""How long tests took in the last full run: a table that is kept in the tree.

Its first rows are the longest, so that it is read from the top. `make durations`
writes it anew; the scheduler begins with what took longest.
"""

import csv
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

TABLE = Path(__file__).with_name("durations.csv")

LEAST_S = 0.5
"""Tests below it have no row: their file has."""


@dataclass
class Taken:
    """What a file, or a test with all its cases, took.

    Attributes
    ----------
    seconds
        Wall time with fixtures, summed over cases.
    cpu_s
        Of processors: the test's process and those that it waited for.
    longest_s
        Wall time of the longest case alone, without fixtures.
    """

    seconds: float = 0.0
    cpu_s: float = 0.0
    longest_s: float = 0.0
    cases: set[str] = field(default_factory=set)

    def add(self, case: str, phase: str, seconds: float, cpu_s: float) -> None:
        """One phase of one case."""
        self.cases.add(case)
        self.seconds += seconds
        self.cpu_s += cpu_s
        if phase == "call":
            self.longest_s = max(self.longest_s, seconds)


def file_of(test: str) -> str:
    """The file of a test.

    Examples
    --------
    >>> file_of("tests/laws/test_duels.py::test_it[1-a::b]")
    'tests/laws/test_duels.py'
    """
    return test.partition("::")[0]


def function_of(test: str) -> str:
    """A test without the name of its case.

    Examples
    --------
    >>> function_of("tests/laws/test_duels.py::test_it[1-a::b]")
    'tests/laws/test_duels.py::test_it'
    """
    return test.partition("[")[0]


def room_of(test: str) -> str:
    """The folder of a test, three deep at most.

    Examples
    --------
    >>> room_of("tests/streams/kafka/takeover/test_it.py::test_it")
    'tests/streams/kafka'
    """
    return "/".join(file_of(test).split("/")[:-1][:3])


class Durations:
    """What the tests of a run took."""

    def __init__(self) -> None:
        self.files: defaultdict[str, Taken] = defaultdict(Taken)
        self.functions: defaultdict[str, Taken] = defaultdict(Taken)

    def add(self, test: str, phase: str, seconds: float, cpu_s: float) -> None:
        """One phase of one test."""
        for taken in (self.files[file_of(test)], self.functions[function_of(test)]):
            taken.add(test, phase, seconds, cpu_s)

    def by_room(self) -> dict[str, Taken]:
        """Sums, the longest first."""
        rooms: defaultdict[str, Taken] = defaultdict(Taken)
        for file, taken in self.files.items():
            room = rooms[room_of(file)]
            room.seconds += taken.seconds
            room.cpu_s += taken.cpu_s
            room.cases |= taken.cases
        return dict(sorted(rooms.items(), key=lambda row: -row[1].seconds))

    def write(self, path: Path = TABLE) -> None:
        """All files, and the tests that are worth a row."""
        worth = {k: v for k, v in self.functions.items() if v.seconds >= LEAST_S}
        rows = sorted([*self.files.items(), *worth.items()], key=_longest_first)
        with path.open("w", newline="", encoding="ascii") as file:
            table = csv.writer(file, lineterminator="\n")
            table.writerow(("test", "cases", "seconds", "cpu_s", "longest_s"))
            for name, taken in rows:
                numbers = (taken.seconds, taken.cpu_s, taken.longest_s)
                table.writerow(
                    (name, len(taken.cases), *(f"{number:.1f}" for number in numbers))
                )


def _longest_first(row: tuple[str, Taken]) -> tuple[float, str]:
    return -round(row[1].seconds, 1), row[0]


class Kept(NamedTuple):
    """A row of the table; `fixtures_s` are those that were set up for this test."""

    seconds: float
    cpu_s: float
    fixtures_s: float = 0.0

    @property
    def waits(self) -> bool:
        """Whether it leaves its processor to others for most of the time."""
        return self.cpu_s < self.seconds / 2


UNKNOWN = Kept(1.0, 1.0)
"""A file without a row is new, and mostly short."""


def kept(path: Path = TABLE) -> Mapping[str, Kept]:
    """The table, by file and by test; nothing where there is none."""
    if not path.is_file():
        return {}
    with path.open(newline="", encoding="ascii") as file:
        return {
            row["test"]: Kept(float(row["seconds"]), float(row["cpu_s"]), _before(row))
            for row in csv.DictReader(file)
        }


def quicker(
    tests: Iterable[str], table: Mapping[str, Kept], under: float
) -> dict[str, bool]:
    """Whether each test took less than `under` seconds, all its cases together.

    Where the fixtures of a file took ten times as long, none of its tests is quick: the
    first of them that is left pays.
    """
    slow = {
        file_of(name) for name, row in table.items()
        if name != file_of(name) and row.fixtures_s >= 10 * under
    }  # fmt: skip
    quick = {}
    for test in tests:
        row = table.get(function_of(test))
        is_short = row is None or row.seconds < under
        quick[test] = is_short and file_of(test) not in slow
    return quick


def _before(row: Mapping[str, str]) -> float:
    """Seconds that cannot be those of its cases."""
    cases_s = int(row["cases"]) * float(row["longest_s"])
    return round(max(0.0, float(row["seconds"]) - cases_s), 1)


def above(durations: Iterable[tuple[str, Taken]], seconds: float) -> list[str]:
    """Names of what took longer, with how long."""
    return [
        f"{name} {taken.seconds:.0f} s"
        for name, taken in sorted(durations, key=_longest_first)
        if taken.seconds > seconds
    ]
