"""Faults that tests should see: `python -m tests.mutants`.

Exit status 0 where all was run and nothing that died in the record of `--against`
lives; 1 where something does, or was not run; 2 where what was asked for cannot be
done.
"""

import argparse
import hashlib
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from tests.mutants.drawing import draw, room_of
from tests.mutants.mutant import (
    LIST,
    ListUnreadable,
    Mutant,
    NotApplicable,
    list_text,
    read_list,
)
from tests.mutants.nearest_tests import Imports
from tests.mutants.records import Record, count_of, lines_of, now_alive
from tests.mutants.running import FolderInUse, Run

TREE = Path(__file__).resolve().parents[2]
EPILOG = """The list is tests/mutants/drawn.txt: one fault an entry, in the pure rooms,
ingestion, the fold and its core in C, the wire and serving. Each is planted in a copy
of the tree, and the nearest tests without a broker are run: those of the same room and
name, laws that import the module, then what imports it from further away, for about 40
seconds of processor. The tree itself is never changed.

outcomes
  killed     a test failed; the first one is named
  timeout    a test did not end, which counts as killed
  survived   all passed: say in the list why it is equivalent ("= why"), or write a test
  unseen     no test imports it
  gone       its line is no longer there, so that --redraw replaces it; or does not
             compile

before and after a change of the tests
  python -m tests.mutants --out before.jsonl
  ... change tests ...
  python -m tests.mutants --out after.jsonl --against before.jsonl
The second run begins with the test that saw a mutant before, and names each mutant that
died then and lives now: give its test back.

A run that was ended goes on from --out. What is in it already is run again only where
the module, the tests that see it or what they import has changed. A mutant can
also be run by its digest: --only 0a1b2c3d4e5f.

other examples
  python -m tests.mutants --only models/bias --workers 2
  python -m tests.mutants --only streams/fold --minutes 10
  python -m tests.mutants --list --only rankstream/wire   entries, and tests of each
  python -m tests.mutants --draw 7            300 others, of seed 7
  python -m tests.mutants --redraw 7          others for those that are gone
"""


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--draw", type=int, metavar="SEED", help="write the list anew")
    what.add_argument(
        "--redraw", type=int, metavar="SEED", help="replace entries that are gone"
    )
    what.add_argument("--list", action="store_true", help="print entries; run nothing")
    parser.add_argument("--count", type=int, default=300, help="with --draw")
    parser.add_argument(
        "--only", default="", help="a room, a file or a digest; all that begin so"
    )
    parser.add_argument(
        "--out", type=Path, default=TREE / "build/mutants.jsonl", help="the record"
    )
    parser.add_argument("--against", type=Path, help="an earlier record")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument(
        "--minutes", type=float, default=float("inf"), help="begin none after so many"
    )
    parser.add_argument(
        "--folder", type=Path, help="where copies of the tree and compiled kernels lie"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> int:
    """Do what was asked for."""
    asked = parsed(arguments)
    try:
        if asked.draw is not None:
            return _write([], asked.draw, asked.count)
        mutants = read_list(LIST.read_text())
        if asked.redraw is not None:
            kept = [one for one in mutants if _is_there(one)]
            return _write(kept, asked.redraw, len(mutants))
        mutants = [
            one
            for one in mutants
            if one.path.startswith(asked.only) or one.digest.startswith(asked.only)
        ]
        if not mutants:
            raise FileNotFoundError(
                f"--only must name what entries begin with; got {asked.only!r}: see "
                f"{LIST.name}"
            )
        if asked.against is not None and not asked.against.exists():
            raise FileNotFoundError(
                f"--against must name the record of a run; {asked.against} is missing"
            )
        return _list(mutants) if asked.list else _run(mutants, asked)
    except (ListUnreadable, FileNotFoundError, FolderInUse) as refused:
        _say(str(refused))
        return 2


def _run(mutants: list[Mutant], asked: argparse.Namespace) -> int:
    earlier = lines_of(asked.against) if asked.against else []
    killers = {
        one["name"]: one["by"].partition("::")[0]
        for one in earlier
        if one["what"] == "mutant" and one["outcome"] == "killed"
    }
    run = [one for one in mutants if not one.equivalent]
    record = Record(asked.out)
    until = time.monotonic() + 60.0 * asked.minutes
    folder = asked.folder or _folder()
    now = Run(TREE, folder, record, killers, until).run(run, asked.workers, _say)
    _summarise(mutants, now, record)
    alive = now_alive(earlier, now)
    if asked.against:
        _say(f"{len(alive)} died before and live now")
    for one in alive:
        _say(one)
    return 1 if alive or len(now) < len(run) else 0


def _summarise(mutants: list[Mutant], now: dict[str, dict], record: Record) -> None:
    by_room: dict[str, list[dict]] = {}
    for one in mutants:
        if one.digest in now:
            by_room.setdefault(room_of(one.path), []).append(now[one.digest])
        if now.get(one.digest, {}).get("outcome") in {"survived", "unseen", "gone"}:
            _say(f"{now[one.digest]['outcome']}: {one.digest} {one}")
    for room, results in sorted(by_room.items()):
        said = ", ".join(f"{n} {what}" for what, n in count_of(results).items())
        _say(f"{room}: {said}")
    if record.unfit():
        _say(f"fail or are slow without a fault, and were not used: {record.unfit()}")
    equivalent = sum(bool(one.equivalent) for one in mutants)
    said = ", ".join(f"{n} {what}" for what, n in count_of(now.values()).items())
    n_left = len(mutants) - equivalent - len(now)
    _say(f"{said}; {equivalent} equivalent and not run; {n_left} not run yet")


def _write(kept: list[Mutant], seed: int, n: int) -> int:
    rng = np.random.default_rng(seed)
    drawn = draw(TREE, n - len(kept), rng=rng, besides=tuple(kept))
    heading = (
        f"{n} faults that tests should see; see tests/mutants/mutant.py. Drawn by "
        f"`python -m tests.mutants --draw`; {len(drawn)} of them of seed {seed}."
    )
    LIST.write_text(list_text([*kept, *drawn], heading))
    _say(f"{LIST}: {len(kept)} kept, {len(drawn)} drawn")
    return 0


def _list(mutants: list[Mutant]) -> int:
    imports = Imports(TREE)
    for one in mutants:
        gone = "" if _is_there(one) else "GONE "
        _say(f"{gone}{one.digest} {one.kind} {one}")
        if one.equivalent:
            _say(f"    equivalent: {one.equivalent}")
        for file in imports.nearest_tests(one.path):
            _say(f"    {file}")
    return 0


def _is_there(mutant: Mutant) -> bool:
    """Whether the tree still has its line."""
    try:
        mutant.line_in((TREE / mutant.path).read_text())
    except (NotApplicable, FileNotFoundError):
        return False
    return True


def _folder() -> Path:
    """The same for each run of a tree, so that kernels stay compiled."""
    name = hashlib.blake2b(str(TREE).encode(), digest_size=4).hexdigest()
    return Path(tempfile.gettempdir()) / f"rankstream-mutants-{name}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
