"""Which faults are drawn: some of each room, more of larger ones, of all kinds.

A room's chance is the square root of how many faults it has room for, so that the
small ones are seen too. Within it a kind is drawn first, then a place. No line is
drawn twice.
"""

import ast
import bisect
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.mutants.c_sites import c_sites
from tests.mutants.mutant import MODULE, Mutant, scopes
from tests.mutants.python_sites import Site, changed, python_sites

ROOMS = (
    "models", "streams/ingest", "streams/fold", "streams/native", "streams/statistics",
    "streams/comparisons", "streams/decisions",
    "streams/learning", "streams/training", "streams/estimation",
    "streams/adaptation", "streams/event_time.py", "streams/dead_letter.py",
    "streams/partition_fold.py", "streams/source_records.py",
    "streams/state_pieces.py", "rankstream/wire",
    "rankstream/ranking", "rankstream/adapters", "rankstream/operations/serving",
)  # fmt: skip
"""What is drawn from."""

BUILDING = {
    "streams/native/build_backend.py",
    "streams/native/compiler.py",
    "streams/native/write_fields.py",
}
"""What makes the core, and is no part of it."""


class Place(NamedTuple):
    """A fault that could be drawn."""

    path: str
    site: Site


def room_of(path: str) -> str:
    """The room that a file belongs to: its folder, at most three deep; C by itself."""
    if path.endswith(".c"):
        return "streams/native"
    folder = Path(path).parent
    return folder.as_posix() if folder.as_posix() != "streams" else path


def sources(tree: Path) -> list[Path]:
    """The files that are drawn from."""
    found: list[Path] = []
    for room in ROOMS:
        at = tree / room
        found += [at] if at.is_file() else [*at.rglob("*.py"), *at.rglob("*.c")]
    return sorted(
        one for one in found if one.relative_to(tree).as_posix() not in BUILDING
    )


def places(tree: Path) -> dict[str, dict[str, list[Place]]]:
    """All that could be drawn, by room and kind."""
    found: dict[str, dict[str, list[Place]]] = {}
    for file in sources(tree):
        path, text = file.relative_to(tree).as_posix(), file.read_text()
        sites = python_sites(text) if path.endswith(".py") else c_sites(text)
        kinds = found.setdefault(room_of(path), defaultdict(list))
        for site in sites:
            kinds[site.kind].append(Place(path, site))
    return {room: kinds for room, kinds in found.items() if kinds}


def draw(
    tree: Path, n: int, *, rng: np.random.Generator, besides: tuple[Mutant, ...] = ()
) -> list[Mutant]:
    """Draw faults that a tree has room for.

    Parameters
    ----------
    tree
        Its root.
    n
        How many; fewer where there are not so many lines.
    besides
        Entries that are there already: their lines are left alone.
    """
    rooms = places(tree)
    names = sorted(rooms)
    sizes = [sum(map(len, rooms[name].values())) for name in names]
    chances = np.sqrt(sizes) / np.sqrt(sizes).sum()
    drawn: list[Mutant] = []
    taken = {(one.path, one.within, one.was, one.nth) for one in besides}
    for room in rng.choice(len(names), size=20 * n, p=chances):
        if len(drawn) == n:
            break
        kinds = rooms[names[room]]
        kind = sorted(kinds)[rng.integers(len(kinds))]
        mutant = described(tree, kinds[kind][rng.integers(len(kinds[kind]))])
        line = mutant.path, mutant.within, mutant.was, mutant.nth
        if line not in taken and is_whole(mutant, (tree / mutant.path).read_text()):
            taken.add(line)
            drawn.append(mutant)
    return drawn


def described(tree: Path, place: Place) -> Mutant:
    """The entry for a place."""
    text = (tree / place.path).read_text()
    lines, site = text.splitlines(), place.site
    within, begin = MODULE, 0
    # The innermost begins last.
    by_begin = sorted((span, name) for name, span in scopes(place.path, text).items())
    for (first, end), name in by_begin[: bisect.bisect(by_begin, ((site.line + 1,),))]:
        if first <= site.line < end:
            within, begin = name, first
    was = lines[site.line].strip()
    nth = sum(line.strip() == was for line in lines[begin : site.line + 1])
    now = changed(lines[site.line], site).strip()
    return Mutant(place.path, within, site.kind, was, now, nth)


def is_whole(mutant: Mutant, source: str) -> bool:
    """Whether the source can be read with the fault in it, and is another one then."""
    if mutant.was == mutant.now:
        return False
    changed_source = mutant.applied_to(source)
    if not mutant.path.endswith(".py"):
        return True
    try:
        other = ast.parse(changed_source)
    except SyntaxError:
        return False
    return ast.dump(other) != ast.dump(ast.parse(source))
